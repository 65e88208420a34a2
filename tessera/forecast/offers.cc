#include "tessera/forecast/offers.h"

#include <algorithm>
#include <cmath>

#include "tessera/layout/formats.h"
#include "tessera/layout/view.h"
#include "tessera/op/layouts.h"
#include "tessera/passes/problem.h"

namespace tessera::forecast {
namespace {

using passes::Choice;
using passes::Form;

constexpr size_t kMostChoices = 12;
// Assumed: an operator that the host does without a model of it goes through memory on one core,
// after this.
constexpr double kHostStart = 1e-5;

Picoseconds picoseconds(Seconds s) { return Picoseconds(std::llround(s.value * 1e12)); }

// The layout that a value of this shape has, if it is one that has a name here; else its own text.
std::string named(const layout::BoundLayout& bound, DType dtype, const op::Dims& dims,
                  const kernels::chip::Names& formats) {
  const auto same = [&](const std::string& text) {
    const auto layout = text.empty() ? layout::Layout::plain(dtype, static_cast<int>(dims.size()))
                                     : *layout::Layout::parse(text);
    const auto candidate = layout::BoundLayout::bind(layout, dtype, dims);
    if (!candidate || candidate->bytes() != bound.bytes()) return false;
    const auto view = layout::is_view_of(*candidate, bound);
    return view && *view;
  };
  if (same("")) return {};
  for (const std::string& format : formats)
    if (auto text = kernels::chip::layout_in(format, dtype, dims); text && same(*text))
      return *text;
  if (const std::string last(op::channels_last(static_cast<int>(dims.size())));
      !last.empty() && same(last))
    return last;
  return bound.layout().to_string();
}

bool changes_nothing(const ir::Node& node) {
  return passes::is_view(*node.op) || node.op->name == "transpose";
}

Choice plain_choice(const ir::Node& node, int place) {
  Choice c;
  c.in.resize(node.inputs.size());
  c.out.resize(node.outputs.size());
  c.place = place;
  return c;
}

void add(std::vector<Choice>& list, Choice choice) {
  const bool there = std::any_of(list.begin(), list.end(), [&](const Choice& c) {
    return c.place == choice.place && c.in == choice.in && c.out == choice.out;
  });
  if (!there) list.push_back(std::move(choice));
}

}  // namespace

bool is_input(const ir::Graph& graph, ir::ValueId id) {
  return std::find(graph.inputs.begin(), graph.inputs.end(), id) != graph.inputs.end();
}
bool is_output(const ir::Graph& graph, ir::ValueId id) {
  return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
}

bool is_free(const ir::Graph& graph, const ir::Node& node) {
  if (!node.bodies.empty() && node.op->name != "fused") return true;
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId id) {
    if (id == ir::kAbsent) return true;
    const ir::ValueInfo& info = graph.value(id);
    return info.contents && info.type.is_tensor() && info.type.ranked() && info.type.rank() <= 1;
  });
}

std::optional<std::string> layout_behind(const op::Problem& p, const std::string& text,
                                         const kernels::chip::Names& formats) {
  const op::Operand &x = p.in[0], &y = p.out[0];
  layout::Stored stored{layout::Layout::plain(x.dtype, x.rank())};
  if (!text.empty()) {
    auto parsed = layout::Layout::parse(text);
    if (!parsed) return std::nullopt;
    stored.layout = *std::move(parsed);
  }
  Result<layout::View> view = layout::View{};
  if (p.op->name == "transpose") {
    std::vector<int> perm;
    for (int64_t axis : p.attrs.ints("perm")) perm.push_back(static_cast<int>(axis));
    view = layout::permute(stored, x.dims, perm);
  } else {
    view = layout::reshape(stored, x.dtype, x.dims, y.dims);
  }
  if (!view || view->extents != y.dims || view->stored.offset != 0 || view->stored.strides)
    return std::nullopt;
  const auto bound = layout::BoundLayout::bind(view->stored, y.dtype, y.dims);
  if (!bound) return std::nullopt;
  return named(*bound, y.dtype, y.dims, formats);
}

cost::Estimate unknown_on_host(const kernels::chip::Source& host) {
  cost::Estimate e;
  e.time = {Seconds(kHostStart / 2), Seconds(kHostStart), Seconds(kHostStart * 4)};
  e.kernel = "host";
  e.bound_by = "launch";
  e.launch = Seconds(kHostStart);
  (void)host;
  return e;
}

cost::Estimate on_host(const kernels::chip::Source& host, const op::Problem& problem) {
  if (auto e = host.estimate(problem)) return *std::move(e);
  // A type that the host computes in f32.
  op::Problem wide = problem;
  bool any = false;
  const auto widen = [&](op::Operand& o) {
    if (o.dtype != DType::kF16 && o.dtype != DType::kBF16) return;
    o.dtype = DType::kF32;
    any = true;
  };
  for (op::Operand& o : wide.in) widen(o);
  for (op::Operand& o : wide.out) widen(o);
  widen(wide.result);
  for (op::Step& step : wide.steps) widen(step.out);
  if (any)
    if (auto e = host.estimate(wide)) return *std::move(e);
  cost::Estimate e = unknown_on_host(host);
  double bytes = 0;
  for (const auto* side : {&problem.in, &problem.out})
    for (const op::Operand& o : *side)
      if (o.present) bytes += static_cast<double>(packed_bytes(o.dtype, o.count()));
  int64_t cores = 1;
  for (const auto& [name, core] : host.chip().cores) cores = std::max(cores, core.count.value);
  const tessera::chip::Memory& memory = host.chip().device_memory();
  const double rate = host.chip().bandwidth_of(memory) / static_cast<double>(cores);
  if (rate > 0) {
    const Seconds more(bytes / rate);
    e.time += {more, more, Seconds(more.value * 4)};
    if (more.value > kHostStart) e.bound_by = "memory";
  }
  return e;
}

void ChipOffers::pass_on(const ir::Graph& graph, const ir::Node& node, const op::Problem& problem,
                         const Arriving& arriving, std::vector<Choice>& list) const {
  const kernels::chip::Names formats = kernels::chip::vendor_formats_of(device_.chip());
  std::vector<Form> forms = arriving(node.inputs[0]);
  forms.push_back({});
  if (graph.value(node.inputs[0]).constant)
    for (const std::string& f : formats)
      if (auto text = kernels::chip::layout_in(f, problem.in[0].dtype, problem.in[0].dims))
        forms.push_back({0, *text});
  for (const Form& form : forms) {
    if (form.place != 0) continue;
    const auto behind = layout_behind(problem, form.layout, formats);
    if (!behind) continue;
    Choice c = plain_choice(node, 0);
    c.in[0] = form.layout;
    c.out[0] = *behind;
    add(list, std::move(c));
  }
}

std::vector<Choice> ChipOffers::choices(const ir::Graph& graph, const ir::Node& node,
                                        const Arriving& arriving) const {
  std::vector<Choice> list;
  if (is_free(graph, node)) {
    list.push_back(plain_choice(node, 0));
    if (mixed_ && (node.bodies.empty() || node.op->name == "fused"))
      list.push_back(plain_choice(node, 1));
    return list;
  }
  auto problem = passes::problem_of(graph, node, sizes_);
  if (!problem) {
    Choice c = plain_choice(node, 1);
    c.cost = picoseconds(unknown_on_host(host_).time.expected);
    return {c};
  }
  if (changes_nothing(node) && node.outputs[0] != ir::kAbsent)
    pass_on(graph, node, *problem, arriving, list);
  if (!passes::is_view(*node.op)) {
    const bool fused = node.op->name == "fused";
    const std::vector<ir::ValueId> order = fused ? passes::group_of(node).in : node.inputs;
    std::vector<std::string> layouts;
    for (ir::ValueId id : node.inputs)
      if (id != ir::kAbsent)
        for (const Form& form : arriving(id))
          if (form.place == 0 && !form.layout.empty()) layouts.push_back(form.layout);
    for (const kernels::chip::Wish& wish : device_.wishes(*problem, layouts)) {
      op::Problem asked = *problem;
      Choice c = plain_choice(node, 0);
      bool one_layout_each = true;
      for (size_t k = 0; k < order.size(); ++k) {
        asked.in[k].layout = wish.in[k];
        if (order[k] == ir::kAbsent) continue;
        // A fused node has each input once, its anchor perhaps twice.
        const size_t at =
            fused
                ? static_cast<size_t>(std::find(node.inputs.begin(), node.inputs.end(), order[k]) -
                                      node.inputs.begin())
                : k;
        one_layout_each = one_layout_each && (c.in[at].empty() || c.in[at] == wish.in[k]);
        c.in[at] = wish.in[k];
      }
      for (size_t k = 0; k < wish.out.size(); ++k) {
        asked.out[k].layout = wish.out[k];
        c.out[k] = wish.out[k];
      }
      if (!one_layout_each) continue;
      const op::Claim claim = device_.probe(asked).front();
      if (!claim.supported()) continue;
      c.kernel = claim.kernel;
      c.cost = claim.cost;
      add(list, std::move(c));
    }
  }
  if (list.size() > kMostChoices) {
    // What mode `none` takes stays in front.
    std::stable_sort(list.begin() + 1, list.end(),
                     [](const Choice& a, const Choice& b) { return a.cost < b.cost; });
    list.resize(kMostChoices);
  }
  if (list.empty() || mixed_) {
    Choice c = plain_choice(node, 1);
    if (!passes::is_view(*node.op)) c.cost = picoseconds(on_host(host_, *problem).time.expected);
    list.push_back(std::move(c));
  }
  return list;
}

std::optional<Picoseconds> ChipOffers::conversion(const ir::Graph& graph, ir::ValueId id,
                                                  const Form& from, const Form& to) const {
  ir::Node node;
  node.op = op::find("relayout");
  node.inputs = node.outputs = {id};
  auto problem = passes::problem_of(graph, node, sizes_);
  Picoseconds sum;
  const bool free = free_ports_ && from.place == to.place &&
                    (is_input(graph, id) || (to == Form{} && is_output(graph, id)));
  if (problem && from.layout != to.layout && !free) {
    problem->in[0].layout = from.layout;
    problem->out[0].layout = to.layout;
    const auto e = device_.estimate(*problem);
    if (!e) return std::nullopt;
    sum += picoseconds(e->time.expected);
  }
  if (from.place != to.place) {
    const Bytes bytes(problem ? packed_bytes(problem->in[0].dtype, problem->in[0].count()) : 0);
    const auto& here = from.place == 0 ? device_.chip() : host_.chip();
    const auto& there = to.place == 0 ? device_.chip() : host_.chip();
    sum += picoseconds(cost::transfer(here, there, bytes).expected);
  }
  return sum;
}

}  // namespace tessera::forecast
