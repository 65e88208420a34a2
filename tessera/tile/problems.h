// Programs for problems: what a kernel would be asked to do, as a tile program that is the same for
// all sizes, with the sizes and strides of the problem at hand beside it. Steps of a fused group
// are part of the program, where its anchor's result is made.
#pragma once

#include "tessera/tile/program.h"

namespace tessera::tile {

// A program for the problem, by its anchor; kUnimplemented with the reason if there is none.
Result<Instance> instance_of(const op::Problem& problem);

// The families.
// Element-wise operators, alone or fused, over operands of any strides.
Result<Instance> elementwise(const op::Problem& problem);
// reduce, over axes that are known.
Result<Instance> reduction(const op::Problem& problem);
// softmax, log_softmax: the row is read three times.
Result<Instance> softmax(const op::Problem& problem);
// layer_norm, rms_norm: the same.
Result<Instance> normalization(const op::Problem& problem);
// dot: all transposes, any batch axes.
Result<Instance> product(const op::Problem& problem);
// attention with every mask, grouped queries and a past, its softmax online: one pass over the
// keys.
Result<Instance> attention(const op::Problem& problem);

// Not among those of instance_of(): a CPU has kernels for them.
// max_pool, average_pool, and conv in which each channel is by itself.
Result<Instance> windows(const op::Problem& problem);
// transpose, slice, broadcast_to, concat, relayout: programs to be run one behind the other.
Result<std::vector<Instance>> moves(const op::Problem& problem);

}  // namespace tessera::tile
