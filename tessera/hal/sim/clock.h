// How long steps take, by what the chip's file says. Picoseconds.
#pragma once

#include "tessera/hal/sim/compute.h"

namespace tessera::hal::sim {

// What a core gets of what all share, in bytes a picosecond; 0: no bound.
struct Shares {
  double device = 0;
  double cache = 0;
  // Part of what is read that comes from the device's memory, the rest lies in its cache.
  double missed = 1;
};

// A copy: how long its engine is busy, and how long after that the last byte arrives.
struct CopyTime {
  double busy_ps = 0;
  double latency_ps = 0;
  int64_t device_bytes = 0;  // that move from or to the memory of the device
};
CopyTime copy_time(const Loaded& loaded, const EngineRate& engine, const engine::Step& step,
                   std::span<const int64_t> extents, const Shares& shares);

// A matrix step. `idle`: the unit had nothing to do just before, so that pipelines fill.
//
//   step        start + m n k / macs, sizes rounded up to the unit's step
//   systolic    ceil(K/R) ceil(N/C) pieces of max(M, R) cycles (weights stay; likewise for the
//   other
//               flows), and 2R + C - 2 to fill and drain
double matrix_time(const EngineRate& engine, std::string_view compute, const ProductShape& shape,
                   bool idle);

// A vector step over so many elements; of functions that the file does not name, the simple ones go
// at the rate of a multiply-add, others take kSlowFunction of them.
inline constexpr double kSlowFunction = 8;
double vector_time(const EngineRate& engine, tile::Function function, DType dtype, int64_t elements,
                   bool idle);

}  // namespace tessera::hal::sim
