// dot(x, u) + a, dot(x, v) + b -> slices of dot(x, [u v]) + [a b]
// conv(x, u), conv(x, v) -> slices of conv(x, [u; v])     of one window
//
// Products of one value with constant weights become one, with the element-wise operators behind
// them up to where these differ: queries, keys and values; the gate beside what it lets through;
// the branches of an inception. Weights are joined once. Does not fire where
//   - it does not cost less by a hundredth at least: what stays behind a slice no longer runs
//   within
//     its product, and what joined its result to others now copies it there,
//   - weights are stored in different ways.
#pragma once

#include <string>
#include <vector>

#include "tessera/passes/fuse.h"
#include "tessera/passes/rewriter.h"

namespace tessera::passes {

struct MergeReport {
  std::vector<Event> fired, missed;  // "3 products: 12000 ns together, 11000 ns apart"
};

// Rewrites the graph in place, body graphs included. Kernels are asked for `bindings`.
// @post verify(graph), and the same values at the outputs
MergeReport merge(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts,
                  const Price& price);

}  // namespace tessera::passes
