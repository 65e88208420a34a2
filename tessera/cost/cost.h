// What an operator costs on a chip that need not be here.
//
// Estimates rest on the chip's file alone (chip/chip.h): the same problem, chip file and version
// give the same estimate, bit for bit. Mechanisms are modelled, not measurements fitted; a constant
// that was fitted is one of the chip's `constants`, which says to what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/chip/chip.h"
#include "tessera/op/problem.h"

namespace tessera::cost {

// A time with how far it can be trusted: two in three measurements are meant to lie within
// [low, high].
struct Interval {
  Seconds low, expected, high;

  Interval& operator+=(const Interval& other);
};

struct Estimate {
  Interval time;   // launch included
  Seconds launch;  // its part of `time.expected`
  // What binds: "launch", a unit ("cube"), a memory ("gm") or an engine ("mte2") of the chip.
  std::string bound_by;
  double flops = 0;               // of the algorithm on the sizes as posed; a multiply-add is two
  double padded_flops = 0;        // with sizes rounded up to what the unit takes at once
  chip::Named<double> bytes;      // moved, by memory
  chip::Named<double> occupancy;  // share of `time.expected`, by unit and engine: 0 to 1
  std::string kernel;             // the family that was modelled: "matmul", "attention", "convert"
  std::string tile;               // "m128 n256 k64, 2 stages"; empty: the kernel has none
  double cycles = 0;  // of the matrix unit on the core that has most to do; 0: it has nothing to do
  std::string family;  // whose constants were used: "matmul", "attention", "softmax", "norm", ...
};

// The time of an operator, primitive or composite, or of a fused group (op::Problem::steps), with
// its operands in the layouts that the problem names: a copy that changes a layout on the way costs
// what its engine takes for that, and layouts that no route of the chip reads are refused.
// kUnimplemented: the chip has no unit for this type or function, or the operator has no model
// (host operators, control flow); the message says which.
Result<Estimate> estimate(const chip::Chip& chip, const op::Problem& problem);

// The same for one operator that a program calls through the vendor's framework and waits for, as
// most public measurements are taken: with what the call costs the host, as far as the device's
// work does not hide it (the chip's constants call_FAMILY_seconds and call_FAMILY_overlap_seconds).
// Chips without such constants: as estimate().
Result<Estimate> estimate_call(const chip::Chip& chip, const op::Problem& problem);

// The same problem with the operands that no route of the chip reads as they are in the layout of
// the first route that does. For problems whose layouts are nobody's wish.
op::Problem in_own_layouts(const chip::Chip& chip, op::Problem problem);

// A launch that writes `from` anew as `to`: same elements, other layout expressions (and strides).
Result<Estimate> conversion(const chip::Chip& chip, const op::Operand& from, const op::Operand& to);

// A copy between two chips over their host links (or, if both have one, the link named).
Interval transfer(const chip::Chip& from, const chip::Chip& to, Bytes bytes);

// Reads "matmul_f16_m3072n3072k3072", "attention_f16_b1h1s4096d128_causal",
// "conv_f16_n1c64h56w56_k64r3s3p1", "convert_f16_m4096n4096_nd_nz" and the like (docs/cli.md) as
// the problem that it stands for; kInvalidArgument tells what a string of its operator may hold.
Result<op::Problem> parse_problem(std::string_view text);
// The same string with letters and flags in the order of docs/cli.md and types by Tessera's names.
// @post canonical(canonical(text)) == canonical(text), and both parse to the same problem
Result<std::string> canonical(std::string_view text);

}  // namespace tessera::cost
