// node -> problem: what a node of the graph asks of a kernel.
#pragma once

#include "tessera/ir/graph.h"
#include "tessera/op/problem.h"

namespace tessera::passes {

// Reshapes in disguise: the same elements in the same row-major order.
bool is_view(const op::OpDef& op);

// A fused node taken apart, its values numbered as in op::Step.
struct Group {
  struct Step {
    const ir::Node* node;
    std::vector<int> in;
    const op::Type* type;
  };
  const ir::Node* anchor = nullptr;
  std::vector<ir::ValueId> in = {};  // of the outer graph: the anchor's inputs, then the others
  size_t arity = 0;
  const op::Type* result = nullptr;  // of the anchor
  std::vector<Step> steps = {};
  std::vector<int> results = {};
};
// @pre node.op is "fused". The group refers to the node's body.
Group group_of(const ir::Node& node);

// A fused node poses a fused group. Symbols without a binding count as 1. kInvalidArgument if a
// type is no tensor of known rank.
Result<op::Problem> problem_of(const ir::Graph& graph, const ir::Node& node,
                               const op::Bindings& bindings);

}  // namespace tessera::passes
