// Building blocks of shape rules.
#pragma once

#include "tessera/op/def.h"

namespace tessera::op {

// Numpy broadcasting of all tensor inputs' shapes; unranked if any is. kInvalidArgument names both
// sizes.
Result<std::optional<Shape>> broadcast_shapes(const InferContext& context);
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);
// axis in [-rank, rank) to [0, rank).
Result<int> normalize_axis(int64_t axis, int rank);
// Sorted, unique, normalised; empty means all axes.
Result<std::vector<int>> normalize_axes(std::span<const int64_t> axes, int rank);
// ceil or floor of (size + padding - (dilation*(kernel-1)+1)) / stride, plus 1: the sliding-window
// size.
Expr window_size(const Expr& size, int64_t pad_begin, int64_t pad_end, const Expr& kernel,
                 int64_t stride, int64_t dilation, bool ceil_mode);

// The type that covers both: a size stays where they agree, else it is known only at run time.
Type join_types(const InferContext& context, const Type& a, const Type& b);
// The type outside of a body (or of a sequence) of a value inside: sizes that symbols name differ
// from run to run (from item to item), so that they are unknown.
Type open_sizes(const InferContext& context, Type type);
// The length of range(start, limit, delta) over floats.
Result<int64_t> range_count(double start, double limit, double delta);

// Contents of the output of an element-wise operator, inputs broadcast: fn of each element's
// operands; unknown where fn does not know one.
using ElementFn = std::optional<Expr> (*)(std::span<const Expr> operands);
std::optional<Contents> elementwise_contents(const InferContext& context, const Type& output,
                                             ElementFn fn);

// Ready-made rules.
Result<std::vector<Type>> same_as_input(
    const InferContext& context);  // output 0 is typed as input 0
Result<std::vector<Type>> broadcast_same_dtype(
    const InferContext& context);  // dtype of the last input (select: a, b)
Result<std::vector<Type>> broadcast_to_bool(const InferContext& context);

}  // namespace tessera::op
