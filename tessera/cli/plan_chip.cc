#include "tessera/cli/plan_chip.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/cli/commands.h"
#include "tessera/cli/inputs.h"
#include "tessera/cli/terminal.h"
#include "tessera/forecast/html.h"

namespace tessera::cli {
namespace {

using forecast::Forecast;
using forecast::Row;
using forecast::RowKind;
using forecast::Totals;

constexpr std::string_view kRunnable[] = {"cpu", "null", "reference"};

std::string us(Seconds s) { return fmt::format("{:.2f}", s.value * 1e6); }
std::string ms(Seconds s) { return fmt::format("{:.3f} ms", s.value * 1e3); }
std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }
std::string bytes(double count) { return to_string(Bytes(static_cast<int64_t>(count))); }
std::string range(const cost::Interval& i) {
  return fmt::format("{:.3f} ms ({:.3f} to {:.3f})", i.expected.value * 1e3, i.low.value * 1e3,
                     i.high.value * 1e3);
}

std::string operator_of(const Row& row) {
  return row.steps.empty() ? row.op : fmt::format("{} + {}", row.op, fmt::join(row.steps, " + "));
}

// Layouts of what is computed with, weights behind it.
std::string layouts_of(const Row& row) {
  const auto all_plain = [](const std::vector<std::string>& list) {
    return std::all_of(list.begin(), list.end(), [](const std::string& l) { return l == "ND"; });
  };
  if (all_plain(row.in) && all_plain(row.out)) return "ND";
  std::vector<std::string> in(row.in.begin(),
                              row.in.begin() + std::min<ptrdiff_t>(3, std::ssize(row.in)));
  return fmt::format("{} -> {}", fmt::join(in, ", "), fmt::join(row.out, ", "));
}

std::string operators_text(const Forecast& f) {
  Table table({">#", "operator", "device", "kernel", "layouts", "tile", ">us", ">low", ">high",
               "bound by", ">padding", "source"});
  for (const Row& row : f.rows) {
    const std::string padding =
        row.padding_bytes > 0 ? percent(row.padding_bytes / row.operand_bytes) : "";
    table.add({std::to_string(row.number), operator_of(row), row.place, row.kernel, layouts_of(row),
               row.tile, us(row.time.expected), us(row.time.low), us(row.time.high), row.bound_by,
               padding, row.name});
  }
  return table.str();
}

std::string certificate(const Forecast& f) {
  if (f.layout != passes::LayoutMode::kOptimal)
    return fmt::format("layout mode '{}'", passes::name_of(f.layout));
  if (f.assign.optimal())
    return fmt::format(
        "no other choice of places, kernels and layouts costs less ({} variables, "
        "width {})",
        f.assign.variables, f.assign.width);
  const double gap = 1 - f.assign.lower_bound / f.assign.cost;
  return fmt::format("at most {} above the least", percent(gap));
}

std::string totals_text(const Forecast& f) {
  const Totals& t = f.totals;
  std::string text = fmt::format(
      "step       {}; {} launches, launching is {} of it\n"
      "work       {:.3f} GFLOP, {} of the peak in {}; padded to {:.3f} GFLOP\n"
      "memory     {} of {}: {} weights, {} values; {}\n"
      "layouts    {} conversions, {} moved, {} of the step with absorbed ones ({}); {}\n",
      range(t.seconds), t.launches, percent(t.launch_share()), t.flops * 1e-9, percent(t.mfu),
      t.peak_type.empty() ? "nothing" : t.peak_type, t.padded_flops * 1e-9, to_string(t.peak_bytes),
      to_string(t.capacity), to_string(t.weight_bytes), to_string(t.activation_bytes),
      t.fits
          ? "it fits"
          : fmt::format("too much by {}", to_string(Bytes(t.peak_bytes.value - t.capacity.value))),
      t.conversions, bytes(t.conversion_bytes), percent(t.conversion_share()),
      ms(t.conversion_seconds), certificate(f));
  text += fmt::format("places     {} operators on the host ({}), {} copies of {} ({})\n",
                      t.fallback_nodes, ms(t.fallback_seconds), t.copies, bytes(t.copy_bytes),
                      ms(t.copy_seconds));
  text += fmt::format("coverage   own kernels {} of the work and {} of the bytes",
                      percent(f.own.flops), percent(f.own.bytes));
  text += f.has_vendor ? fmt::format("; the vendor's {} and {}\n", percent(f.vendor.flops),
                                     percent(f.vendor.bytes))
                       : "; the chip's file lists none of the vendor's\n";
  const auto& used = f.options.kernels == kernels::chip::Set::kOwn ? f.own : f.vendor;
  for (const auto& [op, why] : used.refused) text += fmt::format("  {}: {}\n", op, why);
  return text;
}

std::string heading(const Forecast& f) {
  return fmt::format("{} ({}), {} kernels, {}\n", f.options.device->id, f.options.device->name,
                     kernels::chip::name_of(f.options.kernels),
                     f.options.precision
                         ? fmt::format("in {}", tessera::name_of(*f.options.precision))
                         : std::string("types as in the model"));
}

Status print_modes(const ChipPlanning& p, bool json) {
  Table table({"layout", ">ms", ">conversions", ">moved", ">share", ">copies", ">lower bound"});
  Json list = Json::array();
  for (const passes::LayoutMode mode :
       {passes::LayoutMode::kNone, passes::LayoutMode::kGreedy, passes::LayoutMode::kAny,
        passes::LayoutMode::kPropagate, passes::LayoutMode::kOptimal}) {
    forecast::Options options = p.options;
    options.layout = mode;
    TRY_ASSIGN(const Forecast f, forecast::forecast(p.subject, options));
    const Totals& t = f.totals;
    const Seconds bound(static_cast<double>(f.assign.lower_bound.value) * 1e-12);
    list.push_back({{"mode", passes::name_of(mode)},
                    {"seconds",
                     {{"low", t.seconds.low.value},
                      {"expected", t.seconds.expected.value},
                      {"high", t.seconds.high.value}}},
                    {"conversions", t.conversions},
                    {"conversion_bytes", t.conversion_bytes},
                    {"conversion_share", t.conversion_share()},
                    {"relayout_bytes", t.relayout_bytes},
                    {"copies", t.copies},
                    {"cost_ps", f.assign.cost.value},
                    {"lower_bound_ps", f.assign.lower_bound.value}});
    table.add({std::string(passes::name_of(mode)),
               fmt::format("{:.3f}", t.seconds.expected.value * 1e3), std::to_string(t.conversions),
               bytes(t.conversion_bytes), percent(t.conversion_share()), std::to_string(t.copies),
               mode == passes::LayoutMode::kOptimal ? ms(bound) : ""});
  }
  if (json)
    return print_json({{"schema", "tessera.layouts/1"},
                       {"device", p.options.device->id},
                       {"kernels", kernels::chip::name_of(p.options.kernels)},
                       {"modes", std::move(list)}});
  return print_text(table.str());
}

Status print_comparison(const std::vector<Forecast>& all, bool json) {
  if (json) {
    Json plans = Json::array();
    for (const Forecast& f : all) plans.push_back(Json::parse(forecast::to_json(f, -1)));
    return print_json({{"schema", "tessera.plans/1"}, {"plans", std::move(plans)}});
  }
  std::vector<std::string> headings{""};
  for (const Forecast& f : all) headings.push_back(">" + f.options.device->id);
  Table table(headings);
  const auto row = [&](const std::string& name, auto cell) {
    std::vector<std::string> cells{name};
    for (const Forecast& f : all) cells.push_back(cell(f));
    table.add(std::move(cells));
  };
  row("step, ms", [](const Forecast& f) {
    return fmt::format("{:.3f}", f.totals.seconds.expected.value * 1e3);
  });
  row("from",
      [](const Forecast& f) { return fmt::format("{:.3f}", f.totals.seconds.low.value * 1e3); });
  row("to",
      [](const Forecast& f) { return fmt::format("{:.3f}", f.totals.seconds.high.value * 1e3); });
  row("part of the peak", [](const Forecast& f) { return percent(f.totals.mfu); });
  row("memory", [](const Forecast& f) { return to_string(f.totals.peak_bytes); });
  row("of", [](const Forecast& f) { return to_string(f.totals.capacity); });
  row("fits", [](const Forecast& f) { return std::string(f.totals.fits ? "yes" : "no"); });
  row("launches", [](const Forecast& f) { return std::to_string(f.totals.launches); });
  row("launching", [](const Forecast& f) { return percent(f.totals.launch_share()); });
  row("conversions", [](const Forecast& f) { return std::to_string(f.totals.conversions); });
  row("converting", [](const Forecast& f) { return percent(f.totals.conversion_share()); });
  row("on the host", [](const Forecast& f) { return std::to_string(f.totals.fallback_nodes); });
  row("copies", [](const Forecast& f) { return std::to_string(f.totals.copies); });
  row("own coverage", [](const Forecast& f) { return percent(f.own.flops); });
  row("vendor's coverage",
      [](const Forecast& f) { return f.has_vendor ? percent(f.vendor.flops) : std::string("-"); });
  return print_text(table.str());
}

Status write_html(const ModelOptions& model, const ChipOptions& chip, const Forecast& f) {
  TRY_ASSIGN(const ChipPlanning p, chip_planning(model, chip, model.devices.front()));
  TRY_ASSIGN(const auto advice, forecast::advice(p.subject, f));
  const std::string name = model.model.substr(model.model.find_last_of('/') + 1);
  TRY_ASSIGN(FileWriter file, FileWriter::create(chip.html));
  TRY(file.write(forecast::to_html(f, advice, name)));
  return file.commit();
}

}  // namespace

void add_chip_options(Verb& verb, ChipOptions& options) {
  verb.option("--kernels", options.kernels,
              "Kernels of a chip: own (what can be generated for it) or vendor (what its vendor's "
              "library takes)")
      .one_of({"own", "vendor"})
      .shows_default()
      .type_name("SET");
  verb.option("--host", options.host, "The chip that takes what a chip does not")
      .shows_default()
      .type_name("CHIP");
}

bool names_chip(std::string_view device) {
  const std::string_view name = device.substr(0, device.find(':'));
  return std::find(std::begin(kRunnable), std::end(kRunnable), name) == std::end(kRunnable);
}

Result<ChipPlanning> chip_planning(const ModelOptions& model, const ChipOptions& chip,
                                   const std::string& device) {
  ChipPlanning p;
  const chip::Catalog catalog = chip::Catalog::of_environment();
  const std::string id = device.starts_with("sim:") ? device.substr(4) : device;
  TRY_ASSIGN(chip::Chip target, catalog.load(id));
  TRY_ASSIGN(chip::Chip host, catalog.load(chip.host));
  p.options.device = std::make_shared<const chip::Chip>(std::move(target));
  p.options.host = std::make_shared<const chip::Chip>(std::move(host));
  p.options.kernels =
      chip.kernels == "vendor" ? kernels::chip::Set::kVendor : kernels::chip::Set::kOwn;
  p.options.layout = passes::layout_mode_from_name(model.layout);
  p.options.version = TESSERA_VERSION;
  std::string type = model.precision;
  if (type.ends_with('!')) type.pop_back();
  if (type == "fp16" || type == "f16") p.options.precision = DType::kF16;
  if (type == "bf16") p.options.precision = DType::kBF16;
  TRY_ASSIGN(const session::LoadOptions load, load_options(model));
  TRY_ASSIGN(p.subject, forecast::read_subject(model.model, {load.dims, load.shapes}));
  std::vector<session::Port> ports;
  for (ir::ValueId input : p.subject.graph.inputs)
    ports.push_back({p.subject.graph.value(input).name, p.subject.graph.type(input)});
  p.assumed = assume_sizes(ports, p.options.sizes);
  return p;
}

Result<int> plan_for_chips(const ModelOptions& model, const ChipOptions& chip) {
  std::vector<Forecast> all;
  std::string assumed;
  for (const std::string& device : model.devices) {
    if (!names_chip(device))
      return error(Code::kInvalidArgument,
                   "--device {} among chips: plans are compared for chips of the catalog only",
                   device);
    TRY_ASSIGN(const ChipPlanning p, chip_planning(model, chip, device));
    if (model.layout == "all") {
      TRY(print_modes(p, model.json));
      continue;
    }
    TRY_ASSIGN(Forecast f, forecast::forecast(p.subject, p.options));
    assumed = describe_assumed(p.assumed);
    all.push_back(std::move(f));
  }
  if (!chip.html.empty() && all.size() != 1)
    return error(Code::kInvalidArgument, "--html shows one plan: one --device, one --layout");
  if (all.empty()) return kFine;
  if (all.size() > 1) {
    if (!model.json) TRY(print_text(assumed));
    TRY(print_comparison(all, model.json));
    return kFine;
  }
  const Forecast& f = all.front();
  if (!chip.html.empty()) TRY(write_html(model, chip, f));
  if (model.json)
    TRY(print_text(forecast::to_json(f) + "\n"));
  else
    TRY(print_text(assumed + operators_text(f) + "\n" + heading(f) + totals_text(f)));
  return kFine;
}

}  // namespace tessera::cli
