// dot(a, b) and conv(x, w) as programs for a matrix unit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/op/problem.h"
#include "tessera/tile/engine.h"

namespace tessera::codegen::sim {

// A product without the steps behind it, ready for a launch whose ranges are a, b and c.
struct Multiplication {
  tile::engine::Program program;
  bool packs_b = false;  // b comes packed, as pack() makes it
  // Inputs that must be converted to this type ahead, packed row-major; f32 where nothing need be.
  std::optional<DType> convert_a = {}, convert_b = {};
  Bytes packed_size;
  double flops = 0;
};

// How the unit takes operands of these types: itself, or what the problem's attribute "compute"
// allows. kUnimplemented with the reason.
Result<std::string> compute_type(const chip::Chip& chip, const op::Problem& problem);

// c in the type of the anchor's result, laid as `out` says.
Result<Multiplication> dot(const chip::Chip& chip, const op::Problem& problem,
                           const op::Operand& out);
Result<Multiplication> conv(const chip::Chip& chip, const op::Problem& problem,
                            const op::Operand& out);
// b of a dot, row-major and k outermost, or the weights of a conv in the order of its k, in the
// type that the unit takes.
Status pack_dot(const op::Problem& problem, DType to, const std::byte* source, std::byte* target);
Status pack_conv(const op::Problem& problem, DType to, const std::byte* source, std::byte* target);

}  // namespace tessera::codegen::sim
