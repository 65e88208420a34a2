// How a node could be computed: a kernel and the layouts that it takes, with the cost.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/passes/problem.h"

namespace tessera::passes {

using Sources = std::span<const op::ClaimSource* const>;

struct Choice {
  // Layout per input and output, as text; empty: row-major. As many as the node has.
  std::vector<std::string> in, out;
  std::string kernel;  // empty: no kernel takes the node, the host does
  Picoseconds cost;
};

// The layout that ir and plans write down: empty where it makes no difference to row-major.
std::string canonical(const op::Type& type, std::string_view layout);

// The cheapest kernel for each assignment of layouts that some kernel takes; all row-major comes
// first and is always there. Reshapes, transposes and the like are free where the bytes stay.
// Symbols without a binding count as 1.
// `arriving` holds layouts in which input 0 may come, beside these two: reshapes and transposes
// pass them on.
std::vector<Choice> choices(const ir::Graph& graph, const ir::Node& node,
                            const op::Bindings& bindings, Sources sources,
                            std::span<const std::string> arriving = {});

// The cheapest supported claim, or null with the refusals in `why`.
std::unique_ptr<op::Claim> cheapest(const op::Problem& problem, Sources sources,
                                    std::string* why = nullptr);

// Empty if a kernel takes the problem in row-major or channels-last layout; else the refusals.
std::string refusal(const op::Problem& problem, Sources sources);
// The cost of the cheapest kernel in either; nothing if there is none.
std::optional<Picoseconds> least_cost(const op::Problem& problem, Sources sources);

// Whether the result has the bytes of input 0, whatever its sizes are called.
bool same_bytes(const ir::Graph& graph, const ir::Node& node, std::string_view in_layout,
                std::string_view out_layout);

}  // namespace tessera::passes
