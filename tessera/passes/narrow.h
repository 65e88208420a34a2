// dot(x: f32, w: f32) -> dot(x: f16, w: f16): every tensor of f32 or f64, inputs and weights too,
// becomes one of f16 or bf16, as the model would be had it been exported so. An operator that does
// not take the narrower type keeps its own, between conversions.
#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

// Finite weights beyond the type's range become its largest number. Contents and symbols stay.
// @pre type is kF16 or kBF16  @post verify(result)
Result<ir::Graph> narrow(const ir::Graph& graph, DType type);

}  // namespace tessera::passes
