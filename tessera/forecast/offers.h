// How a model's nodes can be computed on a chip, and on the host beside it, for passes/assign.
#pragma once

#include "tessera/kernels/chip/source.h"
#include "tessera/passes/choices.h"

namespace tessera::forecast {

// Place 0 is the chip, place 1 the host, where everything is row-major. Refers to what it is made
// of.
class ChipOffers final : public passes::Offers {
 public:
  // `mixed`: nodes that the chip takes may run on the host, too. `free_ports`: layouts of inputs
  // and to row-major outputs change at no cost.
  ChipOffers(const kernels::chip::Source& device, const kernels::chip::Source& host,
             const op::Bindings& sizes, bool mixed, bool free_ports = false)
      : device_(device), host_(host), sizes_(sizes), mixed_(mixed), free_ports_(free_ports) {}

  std::vector<passes::Choice> choices(const ir::Graph& graph, const ir::Node& node,
                                      const Arriving& arriving) const override;
  std::optional<Picoseconds> conversion(const ir::Graph& graph, ir::ValueId id,
                                        const passes::Form& from,
                                        const passes::Form& to) const override;

 private:
  // Reshapes and transposes that leave the bytes where they are, in each layout that arrives.
  void pass_on(const ir::Graph& graph, const ir::Node& node, const op::Problem& problem,
               const Arriving& arriving, std::vector<passes::Choice>& list) const;

  const kernels::chip::Source& device_;
  const kernels::chip::Source& host_;
  const op::Bindings& sizes_;
  bool mixed_, free_ports_;
};

// Whether the value enters the graph, or leaves it.
bool is_input(const ir::Graph& graph, ir::ValueId id);
bool is_output(const ir::Graph& graph, ir::ValueId id);

// Nodes that take no time: control flow (its bodies do), and results that follow from sizes.
bool is_free(const ir::Graph& graph, const ir::Node& node);

// The layout of a reshape's or transpose's result over the bytes of its operand in `layout`, in the
// names of `formats` where it is one of those; nothing if no layout says it.
std::optional<std::string> layout_behind(const op::Problem& problem, const std::string& layout,
                                         const kernels::chip::Names& formats);

// What the host takes for a problem, by the cost model or, where that has none, by its bytes.
cost::Estimate on_host(const kernels::chip::Source& host, const op::Problem& problem);
// The same where there is no problem: values that are no tensors.
cost::Estimate unknown_on_host(const kernels::chip::Source& host);

}  // namespace tessera::forecast
