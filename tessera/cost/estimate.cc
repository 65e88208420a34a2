// The face: from a problem's model to an estimate.
#include <algorithm>

#include "tessera/cost/cost.h"
#include "tessera/cost/families.h"
#include "tessera/cost/operands.h"

namespace tessera::cost {

Result<Estimate> estimate(const chip::Chip& chip, const op::Problem& problem) {
  const Machine machine(chip);
  TRY_ASSIGN(Tally tally, tally_of(machine, problem));
  return finish(machine, std::move(tally));
}

Result<Estimate> estimate_call(const chip::Chip& chip, const op::Problem& problem) {
  const Machine machine(chip);
  TRY_ASSIGN(Tally tally, tally_of(machine, problem));
  const double call =
      machine.constant("call_" + tally.family + "_seconds", machine.constant("call_seconds", 0));
  if (call > 0) {
    // The host submits the work, then returns and waits: the end of its call runs beside the
    // device.
    const double beside = machine.constant("call_" + tally.family + "_overlap_seconds", 0);
    tally.launch = std::max(call - tally.seconds, call - beside);
    tally.launch = std::max(tally.launch, launch_seconds(machine, Work::kVector));
  }
  return finish(machine, std::move(tally));
}

op::Problem in_own_layouts(const chip::Chip& chip, op::Problem problem) {
  const Machine machine(chip);
  if (!problem.op || problem.in.size() < 2 || problem.out.empty()) return problem;
  const bool dot = problem.op->name == "dot", conv = problem.op->name == "conv";
  if (!dot && !conv) return problem;
  const auto unit = machine.matrix(name_of(problem.in[0].dtype));
  if (!unit || chip.threads ||
      (unit->unit->dataflow && *unit->unit->dataflow != chip::Dataflow::kStep))
    return problem;
  const auto settle = [&](op::Operand& operand, const char* name) {
    if (!operand.layout.empty() || !operand.strides.empty() ||
        reaches(machine, *unit->unit, name, operand))
      return;
    for (const std::string& layout : reachable(machine, *unit->unit, name)) {
      auto settled = laid_out(operand, layout, problem.attrs.i("groups", 1));
      if (!settled) continue;
      operand = *std::move(settled);
      return;
    }
  };
  settle(problem.in[0], "a");
  settle(problem.in[1], "b");
  if (dot) settle(problem.out[0], "c");
  return problem;
}

}  // namespace tessera::cost
