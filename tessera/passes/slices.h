// gather(x, i), i constant and rising by 1 -> slice(x), reshaped
// slice(transpose(x))                      -> transpose(slice(x))
// slice(reshape(x))                        -> reshape(slice(x))    the slice is one run of x's axis
// slice(concat(x, y...))                   -> x                    where it is just that
//
// so that what follows is a view of x. Must not fire for steps other than 1, or where sizes or
// bounds are unknown.
#pragma once

#include <optional>

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

// x[first, first + size) on one axis, of `whole` elements.
struct Slice {
  int axis = 0;
  int64_t first = 0, size = 0, whole = 0;
};
// What a node of operator slice takes, if it is one run of one axis, by numbers, of an axis whose
// size is one.
std::optional<Slice> slice_of(const Site& at, const ir::Node& node);

void slices(Rewriter& rewriter);

}  // namespace tessera::passes
