#include "tessera/forecast/forecast.h"

#include <algorithm>

#include "tessera/chip/figures.h"
#include "tessera/forecast/offers.h"
#include "tessera/passes/expand.h"
#include "tessera/passes/merge.h"
#include "tessera/passes/narrow.h"
#include "tessera/passes/problem.h"
#include "tessera/passes/schedule.h"
#include "tessera/passes/views.h"

namespace tessera::forecast {
namespace {

using kernels::chip::Set;
using kernels::chip::Source;

constexpr std::string_view kHostPlace = "host";

passes::Accepts accepts_of(const Source& source) {
  return [&source](const op::Problem& p) { return source.refusal(p); };
}

double flops_of(const ir::Graph& graph, const ir::Node& node, const op::Bindings& sizes) {
  const auto problem = passes::problem_of(graph, node, sizes);
  if (!problem || !problem->op) return 0;
  const auto type_of = [](const op::Operand& o) {
    return op::Type::tensor(o.dtype, op::Shape(o.dims.begin(), o.dims.end()));
  };
  std::vector<op::Type> in, out;
  for (const op::Operand& o : problem->in) in.push_back(type_of(o));
  // A result that nobody reads, as attention's keys, has the sizes of the operand of its number.
  for (size_t k = 0; k < problem->out.size(); ++k)
    out.push_back(problem->out[k].present || k >= in.size() ? type_of(problem->out[k]) : in[k]);
  if (out.empty()) return 0;
  for (size_t k = out.size(); k < in.size() && static_cast<int>(k) < problem->op->max_outputs; ++k)
    out.push_back(in[k]);
  if (!problem->op->flops) return static_cast<double>(problem->out[0].count());
  std::vector<const op::Type*> inputs;
  for (size_t i = 0; i < in.size(); ++i)
    inputs.push_back(problem->in[i].present ? &in[i] : nullptr);
  return static_cast<double>(problem->op->flops(problem->attrs, inputs, out).value);
}

double bytes_of(const ir::Graph& graph, const ir::Node& node, const op::Bindings& sizes) {
  const auto problem = passes::problem_of(graph, node, sizes);
  if (!problem) return 0;
  double bytes = 0;
  for (const auto* side : {&problem->in, &problem->out})
    for (const op::Operand& o : *side)
      if (o.present) bytes += static_cast<double>(packed_bytes(o.dtype, o.count()));
  return bytes;
}

// How often a body runs, where its inputs tell; else once.
double trips_of(const ir::Graph& graph, const ir::Node& node, const op::Bindings& sizes) {
  const auto extent = [&](const op::Expr& e) {
    const auto v = e.eval(sizes);
    return v ? static_cast<double>(std::max<int64_t>(1, *v)) : 1.0;
  };
  if (node.inputs.empty()) return 1;
  if (node.op->name == "loop" && node.inputs[0] != ir::kAbsent) {
    const ir::ValueInfo& count = graph.value(node.inputs[0]);
    if (count.constant && count.constant->count() == 1)
      return static_cast<double>(std::clamp<int64_t>(count.constant->i64(0), 1, 1 << 20));
    if (count.contents && count.contents->size() == 1) return extent((*count.contents)[0]);
  }
  if (node.op->name == "scan") {
    const size_t first = static_cast<size_t>(node.attrs.i("states"));
    if (first < node.inputs.size() && node.inputs[first] != ir::kAbsent) {
      const op::Type& type = graph.type(node.inputs[first]);
      const op::Ints axes = node.attrs.ints("input_axes");
      int64_t axis = axes.empty() ? 0 : axes[0];
      if (type.ranked() && axis < 0) axis += type.rank();
      if (type.ranked() && axis >= 0 && axis < type.rank())
        return extent(type.dim(static_cast<int>(axis)));
    }
  }
  return 1;
}

bool moves_nothing(const ir::Graph& graph, const ir::Node& node) {
  return passes::is_view(*node.op) || is_free(graph, node);
}

struct Covered {
  double flops = 0, flops_taken = 0, bytes = 0, bytes_taken = 0;
};

void cover(const ir::Graph& graph, const op::Bindings& sizes, const Source& source, double trips,
           Covered& sum, Coverage& coverage) {
  for (const ir::Node& node : graph.nodes) {
    if (!node.bodies.empty() && node.op->name != "fused") {
      const double inner = trips * trips_of(graph, node, sizes);
      for (const ir::Graph& body : node.bodies) cover(body, sizes, source, inner, sum, coverage);
      continue;
    }
    if (moves_nothing(graph, node)) continue;
    const double flops = trips * flops_of(graph, node, sizes);
    const double bytes = trips * bytes_of(graph, node, sizes);
    const auto problem = passes::problem_of(graph, node, sizes);
    const std::string why = problem ? source.refusal(*problem) : problem.error().message;
    ++coverage.nodes;
    sum.flops += flops;
    sum.bytes += bytes;
    if (why.empty()) {
      ++coverage.taken;
      sum.flops_taken += flops;
      sum.bytes_taken += bytes;
    } else {
      coverage.refused.try_emplace(std::string(node.op->name), why);
    }
  }
}

Coverage coverage_of(ir::Graph graph, const op::Bindings& sizes, const Source& source) {
  Coverage coverage;
  Covered sum;
  if (auto done = passes::expand(graph, sizes, accepts_of(source)); !done) return coverage;
  cover(graph, sizes, source, 1, sum, coverage);
  coverage.flops = sum.flops > 0 ? sum.flops_taken / sum.flops : 1;
  coverage.bytes = sum.bytes > 0 ? sum.bytes_taken / sum.bytes : 1;
  return coverage;
}

// Whether some node can only run on the host.
bool needs_host(const ir::Graph& graph, const op::Bindings& sizes, const Source& device) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    if (!node.bodies.empty() && node.op->name != "fused")
      return std::any_of(node.bodies.begin(), node.bodies.end(),
                         [&](const ir::Graph& body) { return needs_host(body, sizes, device); });
    if (moves_nothing(graph, node)) return false;
    const auto problem = passes::problem_of(graph, node, sizes);
    return !problem || !device.refusal(*problem).empty();
  });
}

bool keeps_bytes(const ir::Graph& graph, const ir::Node& node, const op::Bindings& sizes,
                 const kernels::chip::Names& formats) {
  if (!passes::is_view(*node.op) && node.op->name != "transpose") return false;
  const auto problem = passes::problem_of(graph, node, sizes);
  if (!problem) return false;
  const auto behind = layout_behind(*problem, problem->in[0].layout, formats);
  return behind && *behind == problem->out[0].layout;
}

// A conversion of a transposed view is the transpose, done late: it takes that one's name.
void name_late_transposes(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    for (ir::Graph& body : node.bodies)
      if (node.op->name != "fused") name_late_transposes(body);
    if (node.op->name != "relayout" || !node.origin.empty()) continue;
    ir::ValueId id = node.inputs[0];
    while (graph.value(id).producer >= 0) {
      const ir::Node& behind = graph.nodes[static_cast<size_t>(graph.value(id).producer)];
      if (behind.op->name == "transpose") {
        if (graph.value(id).layout.empty()) break;
        node.origin = behind.origin;
        break;
      }
      if (!passes::is_view(*behind.op)) break;
      id = behind.inputs[0];
    }
  }
}

op::Bindings bound(const ir::Graph& graph, op::Bindings sizes) {
  for (ir::ValueId id : graph.inputs)
    if (graph.type(id).ranked())
      for (const op::Expr& d : *graph.type(id).shape)
        for (std::string& s : d.symbols()) sizes.emplace(std::move(s), 1);
  return sizes;
}

// The most bytes of one region's values at once, those of the regions inside included.
Result<int64_t> peak_of(const plan::Region& region, const op::Bindings& sizes) {
  TRY_ASSIGN(const plan::Layout layout, plan::lay_out(region, sizes));
  int64_t sum = layout.size.value;
  for (const plan::Slot& slot : region.slots) {
    if (slot.storage != plan::Storage::kHeap && slot.storage != plan::Storage::kInput) continue;
    const auto dims = plan::dims_of(slot, sizes);
    if (!dims || !slot.type.is_tensor()) continue;
    TRY_ASSIGN(const Bytes bytes, plan::bytes_of(slot, *dims));
    sum += bytes.value;
  }
  int64_t inner = 0;
  for (const plan::Instruction& i : region.body)
    for (const plan::Region& r : i.regions) {
      TRY_ASSIGN(const int64_t peak, peak_of(r, sizes));
      inner = std::max(inner, peak);
    }
  return sum + inner;
}

// Bytes of constants in the layouts that kernels want; a constant in two layouts is there twice.
Result<int64_t> weights_of(const plan::Region& region, std::map<std::string, int64_t>& seen) {
  int64_t sum = 0;
  for (const plan::Slot& slot : region.slots) {
    if (slot.storage != plan::Storage::kConstant) continue;
    const auto dims = plan::dims_of(slot, {});
    if (!dims) continue;
    TRY_ASSIGN(const Bytes bytes, plan::bytes_of(slot, *dims));
    if (seen.emplace(fmt::format("{}|{}|{}", slot.constant, slot.layout, slot.type.str()), 0)
            .second)
      sum += bytes.value;
  }
  for (const plan::Instruction& i : region.body)
    for (const plan::Region& r : i.regions) {
      TRY_ASSIGN(const int64_t inner, weights_of(r, seen));
      sum += inner;
    }
  return sum;
}

std::string share_type(const std::vector<Row>& rows) {
  std::map<std::string, double> by_type;
  for (const Row& row : rows)
    if (row.kind == RowKind::kKernel && !row.in_types.empty())
      by_type[row.in_types[0].substr(0, row.in_types[0].find('['))] += row.flops;
  std::string type;
  double most = -1;
  for (const auto& [name, flops] : by_type)
    if (flops > most) {
      most = flops;
      type = name;
    }
  return type;
}

}  // namespace

std::string_view name_of(RowKind kind) {
  constexpr std::string_view kNames[] = {"kernel", "conversion", "copy", "host"};
  return kNames[static_cast<size_t>(kind)];
}

double Totals::conversion_share() const {
  return seconds.expected.value > 0 ? conversion_seconds / seconds.expected : 0;
}
double Totals::copy_share() const {
  return seconds.expected.value > 0 ? copy_seconds / seconds.expected : 0;
}
double Totals::launch_share() const {
  return seconds.expected.value > 0 ? launch_seconds / seconds.expected : 0;
}

Totals total(const std::vector<Row>& rows, const Source& device) {
  Totals t;
  for (const Row& row : rows) {
    t.seconds += row.time;
    t.flops += row.flops;
    t.padding_bytes += row.padding_bytes;
    switch (row.kind) {
      case RowKind::kKernel:
        t.padded_flops += row.padded_flops;
        t.bytes += row.bytes;
        t.launches += static_cast<int64_t>(row.trips);
        t.launch_seconds += row.launch;
        t.conversion_seconds += row.absorbed;
        t.relayout_bytes += row.absorbed_bytes;
        break;
      case RowKind::kConversion:
        t.bytes += row.bytes;
        t.launches += static_cast<int64_t>(row.trips);
        t.launch_seconds += row.launch;
        t.conversions += static_cast<int64_t>(row.trips);
        t.conversion_bytes += row.conversion_bytes;
        t.relayout_bytes += row.conversion_bytes;
        t.conversion_seconds += row.time.expected;
        break;
      case RowKind::kCopy:
        t.copies += static_cast<int64_t>(row.trips);
        t.copy_bytes += row.conversion_bytes;
        t.copy_seconds += row.time.expected;
        break;
      case RowKind::kHost:
        ++t.fallback_nodes;
        t.fallback_seconds += row.time.expected;
        break;
    }
  }
  t.peak_type = share_type(rows);
  double peak = 0;
  for (const chip::Peak& p : chip::peaks(device.chip()))
    if (p.type == t.peak_type) peak = std::max(peak, p.flops_per_second);
  if (peak > 0 && t.seconds.expected.value > 0) t.mfu = t.flops / (t.seconds.expected.value * peak);
  t.capacity = device.chip().device_memory().capacity_bytes.value;
  return t;
}

Result<Forecast> forecast(const Subject& subject, const Options& options) {
  Forecast f;
  f.options = options;
  f.device = std::make_shared<const Source>(options.device, options.kernels, options.extra_formats);
  f.host = std::make_shared<const Source>(options.host, Set::kOwn);
  f.has_vendor = !options.device->vendor_kernels.empty();
  if (options.kernels == Set::kVendor && !f.has_vendor)
    return error(Code::kInvalidArgument, "the file of chip '{}' lists no kernels of its vendor",
                 options.device->id);
  f.layout = options.layout.value_or(options.kernels == Set::kOwn ? passes::LayoutMode::kOptimal
                                                                  : passes::LayoutMode::kNone);
  const Source& device = *f.device;
  f.fused = subject.graph;
  if (options.precision) {
    TRY_ASSIGN(f.fused, passes::narrow(subject.graph, *options.precision));
  }
  const op::Bindings sizes = bound(f.fused, options.sizes);
  f.options.sizes = sizes;
  {
    const Source own(options.device, Set::kOwn), vendor(options.device, Set::kVendor);
    f.own = coverage_of(f.fused, sizes, own);
    f.vendor = f.has_vendor ? coverage_of(f.fused, sizes, vendor)
                            : Coverage{.flops = 0, .bytes = 0, .nodes = f.own.nodes};
  }
  const passes::Accepts accepts = accepts_of(device);
  const passes::Price price = [&](const op::Problem& p) { return device.least_cost(p); };
  if (options.kernels == Set::kOwn) passes::merge(f.fused, sizes, accepts, price);
  TRY(passes::expand(f.fused, sizes, accepts));
  f.fuse = passes::fuse(f.fused, sizes, accepts, price);
  f.fuse.missed.insert(f.fuse.missed.end(), subject.missed.begin(), subject.missed.end());
  f.graph = f.fused;
  const ChipOffers offers(device, *f.host, sizes, needs_host(f.fused, sizes, device),
                          options.free_ports);
  TRY_ASSIGN(f.assign, passes::assign(f.graph, offers,
                                      {.bindings = sizes,
                                       .mode = f.layout,
                                       .places = {std::string(kHostPlace)},
                                       .pack = false}));
  name_late_transposes(f.graph);
  const op::ClaimSource* const sources[] = {f.device.get()};
  const kernels::chip::Names formats = kernels::chip::vendor_formats_of(*options.device);
  TRY_ASSIGN(f.plan, passes::schedule(f.graph, sources,
                                      {.device = options.device->id,
                                       .bindings = sizes,
                                       .refusal = accepts,
                                       .keeps_bytes = [&](const ir::Graph& g, const ir::Node& n) {
                                         return keeps_bytes(g, n, sizes, formats);
                                       }}));
  f.plan.rates = fmt::format("chip file {}", options.device->id);
  f.plan.basis = plan::Basis{
      subject.hash,
      options.version,
      options.precision ? std::string(tessera::name_of(*options.precision)) : std::string(),
      {{"", options.device->id, options.device->hash},
       {std::string(kHostPlace), options.host->id, options.host->hash}}};
  if (options.kernels == Set::kOwn) {
    TRY(passes::views(f.plan, sources));
  }
  TRY_ASSIGN(f.rows, rows_of(f.plan, device, *f.host));
  if (options.free_ports)
    std::erase_if(f.rows, [](const Row& r) { return r.kind == RowKind::kConversion && r.at_port; });
  f.totals = total(f.rows, device);
  TRY_ASSIGN(const int64_t activations, peak_of(f.plan.main, sizes));
  std::map<std::string, int64_t> seen;
  TRY_ASSIGN(const int64_t weights, weights_of(f.plan.main, seen));
  f.totals.activation_bytes = Bytes(activations);
  f.totals.weight_bytes = Bytes(weights);
  f.totals.peak_bytes = Bytes(activations + weights);
  f.totals.fits = f.totals.peak_bytes <= f.totals.capacity;
  return f;
}

}  // namespace tessera::forecast
