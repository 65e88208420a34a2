// Closed forms: cycles that units and engines take for their work, by the figures of a chip's file.
#pragma once

#include <cstdint>

#include "tessera/chip/chip.h"

namespace tessera::cost {

// A product of (m, k) and (k, n) on one systolic array of R rows and C columns, fold after fold:
//   weights stay:  ceil(k/R) ceil(n/C) (m + 2R + C - 2) - 1
//   outputs stay:  ceil(m/R) ceil(n/C) (k + R + C - 2) - 1
//   inputs stay:   ceil(k/R) ceil(m/C) (n + 2R + C - 2) - 1
// Compute cycles as SCALE-Sim v3 reports them, stalls apart. 0 for empty products.
double systolic_cycles(chip::Dataflow dataflow, int64_t rows, int64_t columns, int64_t m, int64_t n,
                       int64_t k);

// Of a unit that multiplies in steps, one after the other: sizes rounded up to the step's, over
// multiply-adds a cycle. Ascend's Mmad: dt + ceil16(m) ceil16(n) ceil(k) / (16 16 k of the cube).
double step_cycles(const chip::Rate& rate, double m, double n, double k);
// The same with what the unit takes to start when it was idle.
double step_cycles(const chip::Unit& unit, const chip::Rate& rate, double m, double n, double k);

// One copy: start + (bytes + half) / rate, half being what short copies lose.
double route_cycles(const chip::Route& route, double bytes);

}  // namespace tessera::cost
