// Reverse-mode differentiation of a graph.
#pragma once

#include "tessera/ir/builder.h"

namespace tessera::ir {

// Appends the nodes that compute d sum(y) / d x for each x: values typed as the xs, zeros where y
// does not depend on one. Composites are differentiated through their decompositions.
// kUnimplemented for an operator without a rule.
Result<std::vector<ValueId>> gradients(Builder& b, ValueId y, const std::vector<ValueId>& xs);

// The value as recomputed with `from[i]` replaced by `to[i]`: itself when nothing changes.
ValueId substituted(Builder& b, ValueId y, const std::vector<ValueId>& from,
                    const std::vector<ValueId>& to);

}  // namespace tessera::ir
