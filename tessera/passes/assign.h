// x -> conv -> relu -> y   becomes   x -> relayout -> conv -> relu -> relayout -> y, all in between
// channels-last: kernel and layout for every node at once, so that kernels and conversions together
// cost least. Where offers name several places, the place of each node is part of its choice, and
// copies are paid like conversions.
//
// One variable per node (its choices) and one per value with several readers (the forms that are
// kept, so that a conversion is paid once); tables for the kernels' costs and for the conversions;
// solved by bucket elimination. Inputs and outputs of a graph are row-major, on the device;
// constants are converted while planning. Does not fire in layout mode `none`.
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
  op::Bindings bindings = {};  // what is not bound counts as 1
  LayoutMode mode = LayoutMode::kOptimal;
  // Values of the graph that must not be converted, whatever that costs elsewhere.
  std::vector<ir::ValueId> fixed = {};
  // Names of the places other than the device, from 1 on: placements of values.
  std::vector<std::string> places = {};
  // Constants are brought into the layouts that kernels want; false: layouts are written down, the
  // bytes stay, for who packs them when the plan is loaded.
  bool pack = true;
};

struct AssignReport {
  Picoseconds cost;         // of kernels and conversions, as estimated
  Picoseconds lower_bound;  // no assignment costs less
  int variables = 0;
  int width = 0;        // of the elimination
  int conversions = 0;  // relayout nodes inserted that change a layout
  int copies = 0;       // and those between places
  bool exact = true;    // all sets of forms were among the choices
  bool optimal() const { return exact && cost == lower_bound; }
  // A value that must not be converted had to be.
  bool possible() const { return cost.value < kForbidden; }
};

// Writes layouts and placements into the graph's values and inserts relayout nodes, which change
// either the layout or the placement; body graphs included. @post verify(graph)
Result<AssignReport> assign(ir::Graph& graph, const Offers& offers, const AssignOptions& options);
// As SourceOffers says.
Result<AssignReport> assign(ir::Graph& graph, Sources sources, const AssignOptions& options);

}  // namespace tessera::passes
