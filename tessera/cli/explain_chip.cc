// tessera explain --device CHIP: why a plan for a chip is what it is, and what would make it
// faster.
#include <nlohmann/json.hpp>

#include "tessera/cli/commands.h"
#include "tessera/cli/inputs.h"
#include "tessera/cli/plan_chip.h"
#include "tessera/cli/terminal.h"
#include "tessera/forecast/explain.h"

namespace tessera::cli {
namespace {

using forecast::Advice;
using forecast::Alternative;
using forecast::ConversionExplanation;
using forecast::Explanation;
using forecast::Fallback;
using forecast::Forecast;
using forecast::NodeExplanation;

std::string us(Seconds s) { return fmt::format("{:.2f} us", s.value * 1e6); }
std::string bytes(double count) { return to_string(Bytes(static_cast<int64_t>(count))); }
std::string layouts(const std::vector<std::string>& in, const std::vector<std::string>& out) {
  return fmt::format("{} -> {}", fmt::join(in, ", "), fmt::join(out, ", "));
}

Json json_of(const cost::Interval& i) {
  return {{"low", i.low.value}, {"expected", i.expected.value}, {"high", i.high.value}};
}

Json json_of(const NodeExplanation& n) {
  Json alternatives = Json::array();
  for (const Alternative& a : n.alternatives) {
    Json j{{"device", a.place},
           {"kernel", a.kernel},
           {"in", a.in},
           {"out", a.out},
           {"chosen", a.chosen}};
    if (a.refusal.empty()) {
      j["tile"] = a.tile;
      j["seconds"] = json_of(a.time);
      j["bound_by"] = a.bound_by;
    } else {
      j["refusal"] = a.refusal;
    }
    alternatives.push_back(std::move(j));
  }
  return {{"name", n.row.name},
          {"problem", n.row.problem},
          {"device", n.row.place},
          {"kernel", n.row.kernel},
          {"tile", n.row.tile},
          {"seconds", json_of(n.row.time)},
          {"bound_by", n.row.bound_by},
          {"why", n.why},
          {"alternatives", std::move(alternatives)}};
}

std::string text_of(const NodeExplanation& n) {
  std::string text = fmt::format("{}\n  {}\n  {}: {}\n", n.row.name, n.row.problem, n.row.place,
                                 n.why.empty() ? "chosen" : n.why);
  Table table({"", "device", "kernel", "layouts", "tile", ">expected", "bound by", "why not"});
  for (const Alternative& a : n.alternatives)
    table.add({a.chosen ? "->" : "", a.place, a.kernel, layouts(a.in, a.out), a.tile,
               a.refusal.empty() ? us(a.time.expected) : "", a.bound_by, a.refusal});
  return text + (n.alternatives.empty() ? "" : table.str()) + "\n";
}

Json json_of(const Explanation& e, const std::vector<Advice>& advice, const Forecast& f) {
  Json conversions = Json::array(), fallbacks = Json::array(), changes = Json::array();
  for (const ConversionExplanation& c : e.conversions) {
    Json j{{"producer", c.producer},
           {"consumer", c.consumer},
           {"from", c.from},
           {"to", c.to},
           {"bytes", c.row.conversion_bytes},
           {"seconds", json_of(c.row.time)},
           {"why", c.why}};
    if (c.without) j["without_seconds"] = c.without->value;
    conversions.push_back(std::move(j));
  }
  for (const Fallback& b : e.fallbacks)
    fallbacks.push_back({{"op", b.op},
                         {"nodes", b.nodes},
                         {"reason", b.reason},
                         {"host_seconds", b.host.value},
                         {"copy_seconds", b.copies.value}});
  for (const Advice& a : advice)
    changes.push_back({{"change", a.change},
                       {"why", a.why},
                       {"saved_seconds", a.saved.value},
                       {"before_seconds", a.before.value},
                       {"after_seconds", a.after.value}});
  return {{"schema", "tessera.explain/1"},
          {"device", f.options.device->id},
          {"kernels", kernels::chip::name_of(f.options.kernels)},
          {"seconds", json_of(f.totals.seconds)},
          {"optimal", f.assign.optimal()},
          {"conversions", std::move(conversions)},
          {"fallbacks", std::move(fallbacks)},
          {"missed_fusions", f.fuse.missed},
          {"advice", std::move(changes)}};
}

std::string text_of(const Explanation& e, const std::vector<Advice>& advice, const Forecast& f) {
  std::string text =
      fmt::format("{}: {} expected\n", f.options.device->id, to_string(f.totals.seconds.expected));
  if (e.conversions.empty()) {
    text += "\nno layout conversions\n";
  } else {
    Table table({"conversion", ">bytes", ">cost", ">without it", "why"});
    for (const ConversionExplanation& c : e.conversions)
      table.add({fmt::format("{} -> {}", c.from, c.to), bytes(c.row.conversion_bytes),
                 us(c.row.time.expected),
                 c.without ? (c.without->value >= 0 ? "+" : "") + us(*c.without) : "impossible",
                 c.why});
    text += "\n" + table.str();
  }
  if (!e.fallbacks.empty()) {
    Table table({"on the host", ">nodes", ">there", ">copies", "why"});
    for (const Fallback& b : e.fallbacks)
      table.add({b.op, std::to_string(b.nodes), us(b.host), us(b.copies), b.reason});
    text += "\n" + table.str();
  }
  if (!advice.empty()) {
    Table table({"what would help", ">saves", ">then", "because"});
    for (const Advice& a : advice) table.add({a.change, us(a.saved), us(a.after), a.why});
    text += "\n" + table.str();
  }
  if (!f.fuse.missed.empty()) {
    text += "\nnot fused:\n";
    for (const std::string& m : f.fuse.missed) text += "  " + m + "\n";
  }
  return text;
}

}  // namespace

Result<int> explain_for_chip(const ModelOptions& model, const ChipOptions& chip,
                             const std::string& node) {
  if (model.devices.size() != 1)
    return error(Code::kInvalidArgument, "{} devices: one plan is explained at a time",
                 model.devices.size());
  TRY_ASSIGN(const ChipPlanning p, chip_planning(model, chip, model.devices.front()));
  TRY_ASSIGN(const Forecast f, forecast::forecast(p.subject, p.options));
  if (node.empty()) {
    TRY_ASSIGN(const Explanation e, forecast::explain(f));
    TRY_ASSIGN(const std::vector<Advice> advice, forecast::advice(p.subject, f));
    if (model.json)
      TRY(print_json(json_of(e, advice, f)));
    else
      TRY(print_text(describe_assumed(p.assumed) + text_of(e, advice, f)));
    return kFine;
  }
  TRY_ASSIGN(const auto nodes, forecast::explain_node(f, node));
  Json list = Json::array();
  std::string text = describe_assumed(p.assumed);
  for (const NodeExplanation& n : nodes) {
    list.push_back(json_of(n));
    text += text_of(n);
  }
  if (model.json)
    TRY(print_json({{"schema", "tessera.explain/1"},
                    {"device", f.options.device->id},
                    {"nodes", std::move(list)}}));
  else
    TRY(print_text(text));
  return kFine;
}

}  // namespace tessera::cli
