// tessera plan: what will happen on the device, without doing it.
#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "tessera/cli/commands.h"
#include "tessera/cli/inputs.h"
#include "tessera/cli/model_options.h"
#include "tessera/cli/plan_chip.h"
#include "tessera/cli/plan_op.h"
#include "tessera/cli/terminal.h"
#include "tessera/diagnose/explain.h"

namespace tessera::cli {
namespace {

void add_rows(const plan::Region& region, const std::string& margin, int& number, Table& table) {
  for (const plan::Instruction& i : region.body) {
    std::vector<std::string> results;
    for (int id : i.out)
      if (id != plan::kNone) results.push_back(region.slots[static_cast<size_t>(id)].type.str());
    table.add({std::to_string(number++), margin + std::string(name_of(i.kind)),
               i.op ? std::string(i.op->name) : "", i.kernel,
               fmt::format("{}", fmt::join(results, ", ")),
               i.origin.empty() ? "" : i.origin.front(), i.reason});
    for (const plan::Region& inner : i.regions) add_rows(inner, margin + "  ", number, table);
  }
}

std::string plan_text(const plan::Plan& plan) {
  Table table({">#", "what", "operator", "kernel", "yields", "source", "why not a kernel"});
  int number = 0;
  add_rows(plan.main, "", number, table);
  const plan::Plan::Count count = plan.count();
  return table.str() +
         fmt::format(
             "\n{} launches, {} host operators, {} by the reference interpreter; {} constants\n",
             count.launches, count.host_operators, count.reference, plan.constants.size());
}

struct PlanArguments : ModelOptions {
  bool roofline = false;
  std::vector<std::string> operators;
  ChipOptions chip;
};

Result<int> print_roofline(session::Model& model, const op::Bindings& sizes, bool json) {
  TRY_ASSIGN(auto planning, model.planning_for(sizes));
  TRY_ASSIGN(const diagnose::Roofline r, diagnose::roofline(model, *planning));
  Json nodes = Json::array();
  Table table({"node", "operator", ">GFLOP", ">MB", ">ms", "bound by"});
  for (const diagnose::Roofline::Node& n : r.nodes) {
    nodes.push_back({{"name", n.name},
                     {"op", n.op},
                     {"flops", n.flops},
                     {"bytes", n.bytes},
                     {"seconds", n.time.value},
                     {"bound_by", n.memory_binds ? "memory" : "arithmetic"}});
    table.add({n.name, n.op, fmt::format("{:.4f}", n.flops * 1e-9),
               fmt::format("{:.3f}", n.bytes * 1e-6), fmt::format("{:.4f}", n.time.value * 1e3),
               n.memory_binds ? "memory" : "arithmetic"});
  }
  if (json)
    TRY(print_json({{"schema", "tessera.roofline/1"},
                    {"seconds", r.time.value},
                    {"rates", planning->plan->rates},
                    {"nodes", std::move(nodes)}}));
  else
    TRY(print_text(table.str() + fmt::format("\nno less than {:.3f} ms on one core (rates: {})\n",
                                             r.time.value * 1e3, planning->plan->rates)));
  return kFine;
}

Result<int> make_plan(PlanArguments& options) {
  if (!options.operators.empty())
    return plan_operators(options.operators,
                          options.devices.empty() ? options.device : options.devices.front(),
                          options.json);
  if (options.model.empty())
    return error(Code::kInvalidArgument, "give a MODEL, or --op STRING with --device CHIP");
  const bool chips = std::any_of(options.devices.begin(), options.devices.end(), names_chip);
  if (chips) return plan_for_chips(options, options.chip);
  TRY(settle_device(options));
  TRY_ASSIGN(auto model, load_model(options));
  op::Bindings sizes;
  const auto assumed = assume_sizes(model->inputs(), sizes);
  if (options.roofline) return print_roofline(*model, sizes, options.json);
  TRY_ASSIGN(auto planning, model->planning_for(sizes));
  const auto& plan = planning->plan;
  if (options.json)
    TRY(print_text(plan::to_json(*plan) + "\n"));
  else
    TRY(print_text(describe_assumed(assumed) + plan_text(*plan) +
                   describe(diagnose::precision_report(*model, *planning))));
  return kFine;
}

}  // namespace

Job plan_command(Parser& parser) {
  Verb verb = parser.verb("plan", "Show what will run where, and why");
  auto options = std::make_shared<PlanArguments>();
  add_model_options(verb, *options);
  add_planning_options(verb, *options);
  add_chip_options(verb, options->chip);
  verb.option("--html", options->chip.html, "Write the plan for a chip as an HTML page")
      .type_name("FILE");
  verb.flag("--roofline", options->roofline,
            "Print the least time that the machine's arithmetic and memory allow, by node");
  verb.find("model").required(false);
  verb.option("--op", options->operators,
              "Price one operator on the chip that --device names instead of a model, e.g. "
              "matmul_f16_m3072n3072k3072; may be repeated")
      .one_value_each()
      .type_name("STRING");
  verb.footer(
      "Kernels are chosen for the sizes given; sizes that nothing gives count as 1 for "
      "that.\n\nExamples:\n  tessera plan resnet50.onnx\n  tessera plan bert.onnx --dim batch=8 "
      "--json\n  tessera plan --op attention_f16_b1h16s4096d128_causal --device h100_sxm\n"
      "  tessera plan resnet50.onnx --device ascend910b2 --precision fp16\n"
      "  tessera plan bert.onnx --device ascend910b2 --device h100_sxm --precision fp16");
  return [options] { return make_plan(*options); };
}

}  // namespace tessera::cli
