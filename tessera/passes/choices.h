// How a node could be computed: a kernel and the layouts that it takes, with the cost.
#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/passes/problem.h"

namespace tessera::passes {

using Sources = std::span<const op::ClaimSource* const>;

// Where a value is, and how it lies there.
struct Form {
  int place = 0;       // 0: the device; others as whoever makes the offers counts them
  std::string layout;  // as text; empty: row-major

  auto operator<=>(const Form&) const = default;
};

struct Choice {
  // Layout per input and output, as text; empty: row-major. As many as the node has.
  std::vector<std::string> in, out;
  std::string kernel;  // empty: no kernel takes the node, the host does
  Picoseconds cost;
  int place = 0;  // where the node runs, and its operands are
};

// How nodes can be computed, and what it takes to bring a value from one form to another.
class Offers {
 public:
  // Forms in which a value may come.
  using Arriving = std::function<std::vector<Form>(ir::ValueId)>;

  virtual ~Offers() = default;
  // Never empty; the first is what layout mode `none` takes.
  virtual std::vector<Choice> choices(const ir::Graph& graph, const ir::Node& node,
                                      const Arriving& arriving) const = 0;
  // Nothing if it cannot be done. @pre from != to; the value is no constant
  virtual std::optional<Picoseconds> conversion(const ir::Graph& graph, ir::ValueId id,
                                                const Form& from, const Form& to) const = 0;
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

// What claim sources take on one device, in one place; conversions that none of them takes are done
// by the host, element by element. Refers to both.
class SourceOffers final : public Offers {
 public:
  SourceOffers(Sources sources, const op::Bindings& bindings)
      : sources_(sources), bindings_(bindings) {}
  std::vector<Choice> choices(const ir::Graph& graph, const ir::Node& node,
                              const Arriving& arriving) const override;
  std::optional<Picoseconds> conversion(const ir::Graph& graph, ir::ValueId id, const Form& from,
                                        const Form& to) const override;

 private:
  Sources sources_;
  const op::Bindings& bindings_;
};

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
