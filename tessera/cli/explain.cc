// tessera explain: why a model, or one of its nodes, is computed as it is.
#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "tessera/cli/commands.h"
#include "tessera/cli/inputs.h"
#include "tessera/cli/model_options.h"
#include "tessera/cli/plan_chip.h"
#include "tessera/cli/terminal.h"
#include "tessera/diagnose/explain.h"

namespace tessera::cli {
namespace {

struct ExplainArguments : ModelOptions {
  std::string node;
  ChipOptions chip;
};

std::string us(Picoseconds ps) {
  return fmt::format("{:.1f} us", static_cast<double>(ps.value) * 1e-6);
}
std::string shown(const std::string& layout) { return layout.empty() ? "row-major" : layout; }

Json json_of(const diagnose::NodeReport& n) {
  Json alternatives = Json::array();
  for (const diagnose::Alternative& a : n.alternatives) {
    Json j{{"kernel", a.kernel}, {"layouts", a.layouts}, {"chosen", a.chosen}};
    if (a.refusal.empty())
      j["cost_ps"] = a.cost.value;
    else
      j["refusal"] = a.refusal;
    alternatives.push_back(std::move(j));
  }
  return {{"name", n.name},
          {"problem", n.problem},
          {"fallback", n.fallback},
          {"alternatives", std::move(alternatives)}};
}

Json json_of(const diagnose::PrecisionReport& r) {
  return {{"asked", name_of(r.type)}, {"forced", r.forced}, {"products", r.products},
          {"narrow", r.narrow},       {"slower", r.slower}, {"saved_ps", r.saved.value},
          {"refused", r.refused}};
}

Json json_of(const diagnose::ModelReport& r) {
  Json conversions = Json::array(), fallbacks = Json::array();
  for (const diagnose::ConversionReport& c : r.conversions) {
    Json j{{"value", c.value},       {"from", c.from},         {"to", c.to},
           {"producer", c.producer}, {"consumer", c.consumer}, {"bytes", c.bytes.value},
           {"cost_ps", c.cost.value}};
    if (c.without) j["without_ps"] = c.without->value;
    conversions.push_back(std::move(j));
  }
  for (const diagnose::NodeReport& n : r.fallbacks) fallbacks.push_back(json_of(n));
  return {{"schema", "tessera.explain/1"},
          {"cost_ps", r.cost.value},
          {"lower_bound_ps", r.lower_bound.value},
          {"optimal", r.optimal},
          {"width", r.width},
          {"rates", r.rates},
          {"precision", json_of(r.precision)},
          {"launches", r.launches},
          {"groups", r.groups},
          {"steps", r.steps},
          {"views", r.views},
          {"concats", r.concats},
          {"conversions", std::move(conversions)},
          {"missed_fusions", r.missed_fusions},
          {"fallbacks", std::move(fallbacks)}};
}

std::string text_of(const diagnose::NodeReport& n) {
  std::string text = fmt::format("{}\n  {}\n", n.name, n.problem);
  if (!n.fallback.empty()) text += fmt::format("  on the host: {}\n", n.fallback);
  Table table({"", "kernel", "layouts", ">cost", "why not"});
  for (const diagnose::Alternative& a : n.alternatives)
    table.add({a.chosen ? "->" : "", a.kernel, a.layouts, a.refusal.empty() ? us(a.cost) : "",
               a.refusal});
  return text + (n.alternatives.empty() ? "" : table.str()) + "\n";
}

std::string text_of(const diagnose::ModelReport& r) {
  std::string text = fmt::format(
      "{} launches; estimated {} ({}; rates: {})\n"
      "{} groups took {} operators as steps; {} slices and transposes and {} inputs of concats "
      "move "
      "nothing\n",
      r.launches, us(r.cost),
      r.optimal ? "no other choice of layouts costs less"
                : fmt::format("at least {}", us(r.lower_bound)),
      r.rates, r.groups, r.steps, r.views, r.concats);
  text += describe(r.precision);
  if (r.conversions.empty()) {
    text += "\nno layout conversions\n";
  } else {
    Table table({"conversion", "from", "to", "for", ">bytes", ">cost", ">without it"});
    for (const diagnose::ConversionReport& c : r.conversions)
      table.add({c.producer, shown(c.from), shown(c.to), c.consumer, to_string(c.bytes), us(c.cost),
                 c.without ? (c.without->value >= 0 ? "+" : "") + us(*c.without) : "impossible"});
    text += "\n" + table.str();
  }
  if (!r.fallbacks.empty()) {
    text += "\non the host, for want of a kernel:\n";
    for (const diagnose::NodeReport& n : r.fallbacks)
      text += fmt::format("  {}: {}\n", n.name, n.fallback);
  }
  if (!r.missed_fusions.empty()) {
    text += "\nnot fused:\n";
    for (const std::string& m : r.missed_fusions) text += "  " + m + "\n";
  }
  return text;
}

Result<int> explain(ExplainArguments& a) {
  if (std::any_of(a.devices.begin(), a.devices.end(), names_chip))
    return explain_for_chip(a, a.chip, a.node);
  TRY(settle_device(a));
  TRY_ASSIGN(auto model, load_model(a));
  op::Bindings sizes;
  const auto assumed = assume_sizes(model->inputs(), sizes);
  TRY_ASSIGN(auto planning, model->planning_for(sizes));
  if (a.node.empty()) {
    TRY_ASSIGN(const diagnose::ModelReport r, diagnose::explain(*model, *planning));
    if (a.json)
      TRY(print_json(json_of(r)));
    else
      TRY(print_text(describe_assumed(assumed) + text_of(r)));
    return kFine;
  }
  TRY_ASSIGN(const auto nodes, diagnose::explain_node(*model, *planning, a.node));
  Json list = Json::array();
  std::string text = describe_assumed(assumed);
  for (const diagnose::NodeReport& n : nodes) {
    list.push_back(json_of(n));
    text += text_of(n);
  }
  if (a.json)
    TRY(print_json({{"schema", "tessera.explain/1"}, {"nodes", std::move(list)}}));
  else
    TRY(print_text(text));
  return kFine;
}

}  // namespace

Job explain_command(Parser& parser) {
  Verb verb = parser.verb("explain", "Say why a model, or a node, is computed as it is");
  auto a = std::make_shared<ExplainArguments>();
  add_model_options(verb, *a);
  verb.option("node", a->node, "A node of the model, or a part of its name; default: the model")
      .type_name("NODE");
  add_planning_options(verb, *a);
  add_chip_options(verb, a->chip);
  verb.footer(
      "Costs are estimates at the rates of 'tessera calibrate', or of a typical core.\n\n"
      "Examples:\n  tessera explain resnet50.onnx\n  tessera explain resnet50.onnx Conv_12\n"
      "  tessera explain resnet50.onnx --device ascend910b2 --precision fp16");
  return [a] { return explain(*a); };
}

}  // namespace tessera::cli
