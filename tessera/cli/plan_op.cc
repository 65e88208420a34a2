#include "tessera/cli/plan_op.h"

#include <nlohmann/json.hpp>

#include "tessera/chip/catalog.h"
#include "tessera/cli/commands.h"
#include "tessera/cli/terminal.h"
#include "tessera/cost/cost.h"

namespace tessera::cli {
namespace {

struct Priced {
  std::string name;
  op::Problem problem;
  cost::Estimate alone;
  Seconds in_plan;
};

Result<Priced> price(const chip::Chip& chip, const std::string& text) {
  Priced p;
  TRY_ASSIGN(p.name, cost::canonical(text));
  TRY_ASSIGN(op::Problem problem, cost::parse_problem(text));
  p.problem = cost::in_own_layouts(chip, std::move(problem));
  TRY_ASSIGN(p.alone, cost::estimate_call(chip, p.problem));
  TRY_ASSIGN(const cost::Estimate inside, cost::estimate(chip, p.problem));
  p.in_plan = inside.time.expected;
  return p;
}

Json json_of(const chip::Chip& chip, const Priced& p) {
  const cost::Estimate& e = p.alone;
  Json layouts = Json::array();
  for (const op::Operand& o : p.problem.in) layouts.push_back(o.layout);
  Json j{{"schema", "tessera.cost/1"},
         {"op", p.name},
         {"device", chip.id},
         {"seconds",
          {{"low", e.time.low.value},
           {"expected", e.time.expected.value},
           {"high", e.time.high.value}}},
         {"bound_by", e.bound_by},
         {"flops", e.flops},
         {"padded_flops", e.padded_flops},
         {"bytes", Json(e.bytes)},
         {"occupancy", Json(e.occupancy)},
         {"launch_seconds", e.launch.value},
         {"planned_seconds", p.in_plan.value},
         {"cycles", e.cycles},
         {"kernel", e.kernel},
         {"family", e.family},
         {"tile", e.tile},
         {"layouts", std::move(layouts)},
         {"chip_hash", fmt::format("{:016x}", chip.hash)}};
  return j;
}

std::string shares(const chip::Named<double>& occupancy) {
  std::vector<std::string> parts;
  for (const auto& [name, share] : occupancy)
    parts.push_back(fmt::format("{} {:.0f} %", name, share * 100));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Result<int> plan_operators(const std::vector<std::string>& operators, const std::string& device,
                           bool json) {
  const std::string name = device.starts_with("sim:") ? device.substr(4) : device;
  TRY_ASSIGN(const chip::Chip chip, chip::Catalog::of_environment().load(name));
  Json list = Json::array();
  Table table({"operator", ">expected", ">low", ">high", ">launch", "bound by", ">TFLOP/s", "tile",
               "busy"});
  for (const std::string& text : operators) {
    TRY_ASSIGN(const Priced p, price(chip, text));
    list.push_back(json_of(chip, p));
    const cost::Estimate& e = p.alone;
    const double seconds = e.time.expected.value;
    table.add({p.name, to_string(e.time.expected), to_string(e.time.low), to_string(e.time.high),
               to_string(e.launch), e.bound_by,
               seconds > 0 ? fmt::format("{:.1f}", e.flops / seconds * 1e-12) : "", e.tile,
               shares(e.occupancy)});
  }
  if (!json) {
    TRY(print_text(table.str()));
  } else if (list.size() == 1) {
    TRY(print_json(list[0]));
  } else {
    TRY(print_json(
        {{"schema", "tessera.costs/1"}, {"device", chip.id}, {"operators", std::move(list)}}));
  }
  return kFine;
}

}  // namespace tessera::cli
