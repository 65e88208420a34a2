// add(conv(x, w), b), relu -> fused(x, w, b) { conv, add, relu }
//
// An anchor takes element-wise operators that follow it as steps; element-wise operators without an
// anchor join into groups of their own. Does not fire where
//   - the step's result has another shape than the anchor's,
//   - a value in between is needed outside of the group (an anchor yields one value) or before the
//     group has run,
//   - an operand of a step is computed only after the anchor,
//   - no kernel takes the group in any layout: `accepts` says so.
//
// conv(depthwise(x)), conv(mul(x, s)) -> fused(x, s) { mul, conv }
//
// A product takes in front of it, with the steps that it has behind it, the group whose only result
// it alone reads. Does not fire where a kernel takes both, but not for less than apart.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/op/problem.h"

namespace tessera::passes {

// Empty if some kernel takes the group; else why none does.
using Accepts = std::function<std::string(const op::Problem&)>;
// What the cheapest kernel costs, in any layout; nothing if no kernel takes the problem.
using Price = std::function<std::optional<Picoseconds>(const op::Problem&)>;

struct FuseReport {
  int groups = 0;  // fused nodes made
  int steps = 0;   // operators that became steps
  // What stayed apart although it stands next to each other: "conv 'Conv_3' + relu: why".
  std::vector<std::string> missed;
};

// Rewrites the graph in place, body graphs included. Kernels are asked for `bindings`. Without
// `price`, products take nothing in front of them.
// @post verify(graph), and the same values at the outputs
FuseReport fuse(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts,
                const Price& price = {});

}  // namespace tessera::passes
