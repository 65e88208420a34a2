// dot(x, w) of f32 -> dot(x, w) {compute=bf16}: what a kernel may round inputs to before it
// multiplies them; so of conv and attention. Sums stay in f32, and so does every other operator;
// kernels that do not round still take the node, so that costs decide. Does not fire where f16
// cannot hold a weight.
#pragma once

#include <optional>
#include <string_view>

#include "tessera/ir/graph.h"

namespace tessera::passes {

struct Precision {
  DType type = DType::kF32;  // f32: as the model says; f16 or bf16
  bool forced = false;       // whatever it costs
};

// "f32", "bf16", "f16"; "bf16!" is forced. kInvalidArgument for others.
Result<Precision> precision_from_name(std::string_view name);

// Marks products, convolutions and attention, those in bodies included, and returns how many.
// @post verify(graph)
int precision(ir::Graph& graph, Precision wanted);

}  // namespace tessera::passes
