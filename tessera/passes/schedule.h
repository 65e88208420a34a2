// graph -> plan: an instruction per node in the graph's order, slots with lifetimes, kernels by the
// claim sources.
//
//   reshape, identity           -> an alias of the slot behind
//   elements follow from sizes  -> kSizes; what fed only such nodes is not planned at all
//   a kernel claims it          -> kLaunch with the cheapest claim
//   if, loop, scan              -> kBranch, kLoop, kScan with a region per body
//   otherwise                   -> kHost with the reason
// Results whose sizes are first known when computed are followed by kBind.
#pragma once

#include <span>

#include "tessera/base/result.h"
#include "tessera/ir/graph.h"
#include "tessera/op/problem.h"
#include "tessera/plan/plan.h"

namespace tessera::passes {

struct ScheduleOptions {
  std::string device = "cpu";
  op::Bindings bindings;        // sizes at hand: kernels are chosen for these
  bool reference_only = false;  // no kernels: the interpreter does everything
};

// @post plan::verify(result)
Result<plan::Plan> schedule(const ir::Graph& graph, std::span<const op::ClaimSource* const> sources,
                            const ScheduleOptions& options);

}  // namespace tessera::passes
