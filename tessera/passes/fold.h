// f(constants...) -> constant: computes once what does not depend on the inputs. Must not fire
// where the result is much larger than what it is made from (a broadcast is cheaper to repeat than
// to store), nor for random numbers.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::passes {

using Evaluate = std::function<Result<std::vector<op::Value>>(const ir::Node&,
                                                              std::span<const op::Value* const>)>;

struct FoldReport {
  int folded = 0;  // nodes that became constants
  int dead = 0;    // nodes whose results nobody needs
};

// Rewrites the graph in place, body graphs included.
FoldReport fold(ir::Graph& graph, const Evaluate& evaluate);

}  // namespace tessera::passes
