// graph -> plan: an instruction per node in the graph's order, slots with lifetimes, kernels by the
// claim sources.
//
//   reshape, identity           -> an alias of the slot behind
//   elements follow from sizes  -> kSizes; what fed only such nodes is not planned at all
//   a kernel claims it          -> kLaunch with the cheapest claim
//   if, loop, scan              -> kBranch, kLoop, kScan with a region per body
//   relayout to another place   -> kCopy
//   otherwise, or placed there  -> kHost with the reason
// Results whose sizes are first known when computed are followed by kBind.
#pragma once

#include <functional>
#include <span>

#include "tessera/base/result.h"
#include "tessera/ir/graph.h"
#include "tessera/op/problem.h"
#include "tessera/plan/plan.h"

namespace tessera::passes {

struct ScheduleOptions {
  std::string device = "cpu";
  op::Bindings bindings = {};   // sizes at hand: kernels are chosen for these
  bool reference_only = false;  // no kernels: the interpreter does everything
  // Why the device takes no such problem in any layout, of nodes placed elsewhere; empty: it does.
  std::function<std::string(const op::Problem&)> refusal = {};
  // Nodes whose result has the bytes of input 0, beside those that same_bytes() knows.
  std::function<bool(const ir::Graph&, const ir::Node&)> keeps_bytes = {};
};

// @post plan::verify(result)
Result<plan::Plan> schedule(const ir::Graph& graph, std::span<const op::ClaimSource* const> sources,
                            const ScheduleOptions& options);

}  // namespace tessera::passes
