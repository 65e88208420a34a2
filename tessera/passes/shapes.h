// Reasoning about views: which axes of a reshape correspond, and reshapes to shapes with symbols.
#pragma once

#include <optional>
#include <vector>

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

// Runs of axes that hold the same elements, in order; axes of size 1 belong to none.
struct AxisGroup {
  std::vector<int> from, to;
};
// How the axes of a reshape correspond, in the finest runs; nullopt where sizes do not tell.
// @post the products of the sizes of from and to are equal in each group
std::optional<std::vector<AxisGroup>> axis_groups(const op::Shape& from, const op::Shape& to);

// x as a tensor of this shape; kAbsent where no constant shape input can say so.
// @pre the same number of elements
ir::ValueId reshape_to(ir::Builder& b, ir::ValueId x, const op::Shape& shape);

// shape[perm[0]], shape[perm[1]], ...
op::Shape permuted(const op::Shape& shape, const op::Ints& perm);
// The permutation that undoes it.
op::Ints inverse(const op::Ints& perm);
// Whether the permutation moves no axis of other size than 1 past another.
bool moves_ones_only(const op::Shape& shape, const op::Ints& perm);
// How many axes at the end are equal.
int common_tail(const op::Shape& a, const op::Shape& b);

}  // namespace tessera::passes
