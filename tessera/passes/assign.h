// x -> conv -> relu -> y   becomes   x -> relayout -> conv -> relu -> relayout -> y, all in between
// channels-last: kernel and layout for every node at once, so that kernels and conversions together
// cost least.
//
// One variable per node (its choices) and one per value with several readers (the layouts that are
// kept, so that a conversion is paid once); tables for the kernels' costs and for the conversions;
// solved by bucket elimination. Inputs and outputs of a graph are row-major, constants are
// converted while planning. Does not fire in layout mode `none`.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tessera/passes/bucket_elimination.h"
#include "tessera/passes/choices.h"

namespace tessera::passes {

// How layouts are chosen. All but `optimal` are what other compilers do, kept for comparison.
enum class LayoutMode : uint8_t {
  kNone,       // row-major between all nodes
  kGreedy,     // the cheapest for each node in order, given what its producers chose
  kAny,        // heavy operators take what is cheapest for them, the others follow
  kPropagate,  // heavy operators choose; their layouts spread forwards and backwards, twice
  kOptimal,    // the least sum
};
std::string_view name_of(LayoutMode mode);
std::optional<LayoutMode> layout_mode_from_name(std::string_view name);

struct AssignOptions {
  op::Bindings bindings;  // what is not bound counts as 1
  LayoutMode mode = LayoutMode::kOptimal;
  // Values of the graph that must not be converted, whatever that costs elsewhere.
  std::vector<ir::ValueId> fixed = {};
};

struct AssignReport {
  Picoseconds cost;         // of kernels and conversions, as estimated
  Picoseconds lower_bound;  // no assignment costs less
  int variables = 0;
  int width = 0;        // of the elimination
  int conversions = 0;  // relayout nodes inserted
  bool optimal() const { return cost == lower_bound; }
  // A value that must not be converted had to be.
  bool possible() const { return cost.value < kForbidden; }
};

// Writes the layouts into the graph's values and inserts relayout nodes; body graphs included.
// @post verify(graph)
Result<AssignReport> assign(ir::Graph& graph, Sources sources, const AssignOptions& options);

}  // namespace tessera::passes
