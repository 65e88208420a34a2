#include "tessera/forecast/explain.h"

#include <algorithm>
#include <map>

#include "tessera/forecast/offers.h"
#include "tessera/passes/problem.h"

namespace tessera::forecast {
namespace {

using kernels::chip::name_of_layout;

bool named(const std::vector<std::string>& origin, std::string_view name, bool exact) {
  return std::any_of(origin.begin(), origin.end(), [&](const std::string& o) {
    return exact ? o == name : o.find(name) != std::string::npos;
  });
}

std::vector<std::string> layout_names(const std::vector<op::Operand>& operands,
                                      const std::vector<std::string>& layouts) {
  std::vector<std::string> names;
  for (size_t k = 0; k < operands.size(); ++k)
    if (operands[k].present)
      names.push_back(name_of_layout(layouts[k], operands[k].dtype, operands[k].dims));
  return names;
}

std::vector<std::string> layouts_of(const std::vector<op::Operand>& operands) {
  std::vector<std::string> list;
  for (const op::Operand& o : operands) list.push_back(o.layout);
  return list;
}

std::vector<Alternative> alternatives_of(const Forecast& f, const op::Problem& problem,
                                         bool on_chip) {
  std::vector<Alternative> list;
  const auto ask = [&](const op::Problem& p, bool chosen) {
    Alternative a;
    a.place = f.device->chip().id;
    a.in = layout_names(p.in, layouts_of(p.in));
    a.out = layout_names(p.out, layouts_of(p.out));
    a.chosen = chosen;
    const op::Claim claim = f.device->probe(p).front();
    a.kernel = claim.kernel;
    a.refusal = claim.refusal;
    if (claim.supported())
      if (const auto e = f.device->estimate(p)) {
        a.time = e->time;
        a.tile = e->tile;
        a.bound_by = e->bound_by;
      }
    list.push_back(std::move(a));
  };
  if (on_chip) ask(problem, true);
  const auto own_in = layouts_of(problem.in), own_out = layouts_of(problem.out);
  for (const kernels::chip::Wish& wish : f.device->wishes(problem)) {
    if (on_chip && wish.in == own_in && wish.out == own_out) continue;
    op::Problem p = problem;
    for (size_t k = 0; k < p.in.size(); ++k) p.in[k].layout = wish.in[k];
    for (size_t k = 0; k < p.out.size(); ++k) p.out[k].layout = wish.out[k];
    ask(p, false);
  }
  Alternative host;
  host.place = f.host->chip().id;
  host.in = layout_names(problem.in, std::vector<std::string>(problem.in.size()));
  host.out = layout_names(problem.out, std::vector<std::string>(problem.out.size()));
  op::Problem plain = problem;
  for (auto* side : {&plain.in, &plain.out})
    for (op::Operand& o : *side) o.layout.clear();
  const cost::Estimate e = on_host(*f.host, plain);
  host.kernel = e.kernel;
  host.time = e.time;
  host.bound_by = e.bound_by;
  host.chosen = !on_chip;
  list.push_back(std::move(host));
  return list;
}

// The instruction with this number, and the region that it stands in.
struct Place {
  const plan::Region* region = nullptr;
  const plan::Instruction* instruction = nullptr;
};
bool find(const plan::Region& region, int number, int& next, Place& found) {
  for (const plan::Instruction& i : region.body) {
    if (next++ == number) {
      found = {&region, &i};
      return true;
    }
    for (const plan::Region& r : i.regions)
      if (find(r, number, next, found)) return true;
  }
  return false;
}

std::string why_of(const std::vector<Alternative>& list) {
  const auto chosen =
      std::find_if(list.begin(), list.end(), [](const Alternative& a) { return a.chosen; });
  if (chosen == list.end()) return {};
  const Alternative* best = nullptr;
  for (const Alternative& a : list)
    if (a.refusal.empty() && !a.chosen && a.place == chosen->place &&
        (!best || a.time.expected < best->time.expected))
      best = &a;
  if (!best) return "no other kernel of this place takes it";
  const double more = (best->time.expected - chosen->time.expected).value * 1e6;
  if (more >= 0) return fmt::format("the next best takes {:.2f} us more by itself", more);
  return fmt::format(
      "{} -> {} would take {:.2f} us less by itself; converting its operands would cost more",
      fmt::join(best->in, ", "), fmt::join(best->out, ", "), -more);
}

std::string name_of_node(const ir::Node& node) {
  return node.origin.empty() ? std::string(node.op->name) : node.origin.front();
}

}  // namespace

Result<std::vector<NodeExplanation>> explain_node(const Forecast& f, std::string_view name) {
  std::vector<NodeExplanation> list;
  for (const bool exact : {true, false}) {
    for (const Row& row : f.rows) {
      if (!named(row.origin, name, exact) && !(row.origin.empty() && exact && row.name == name))
        continue;
      NodeExplanation e;
      e.row = row;
      Place place;
      int next = 0;
      if (find(f.plan.main, row.number, next, place) && row.kind != RowKind::kCopy) {
        const auto problem =
            plan::problem_of(f.plan, *place.region, *place.instruction, f.plan.planned_for);
        if (problem) e.alternatives = alternatives_of(f, *problem, row.kind != RowKind::kHost);
      }
      e.why = row.kind == RowKind::kHost ? row.reason : why_of(e.alternatives);
      list.push_back(std::move(e));
    }
    if (!list.empty()) return list;
  }
  return error(Code::kNotFound, "no operator of the plan has '{}' in its name", name);
}

Result<Explanation> explain(const Forecast& f) {
  Explanation result;
  const op::Bindings& sizes = f.options.sizes;
  const ir::Graph& g = f.graph;
  const ChipOffers offers(*f.device, *f.host, sizes, true);
  std::vector<const Row*> conversion_rows;
  for (const Row& row : f.rows)
    if (row.kind == RowKind::kConversion) conversion_rows.push_back(&row);
  size_t next_row = 0;
  for (const ir::Node& node : g.nodes) {
    if (node.op->name != "relayout" || !node.origin.empty()) continue;
    const ir::ValueInfo &from = g.value(node.inputs[0]), &to = g.value(node.outputs[0]);
    if (from.placement != to.placement) continue;
    ConversionExplanation c;
    if (next_row < conversion_rows.size()) c.row = *conversion_rows[next_row++];
    const auto problem = passes::problem_of(g, node, sizes);
    if (problem) {
      c.from = name_of_layout(from.layout, problem->in[0].dtype, problem->in[0].dims);
      c.to = name_of_layout(to.layout, problem->out[0].dtype, problem->out[0].dims);
    }
    const bool input = from.producer < 0;
    c.producer = input ? fmt::format("input '{}'", from.name)
                       : name_of_node(g.nodes[static_cast<size_t>(from.producer)]);
    c.consumer = "an output";
    const ir::Node* reader = nullptr;
    for (const ir::Node& n : g.nodes)
      if (std::find(n.inputs.begin(), n.inputs.end(), node.outputs[0]) != n.inputs.end()) {
        reader = &n;
        break;
      }
    if (reader) c.consumer = name_of_node(*reader);
    ir::Graph without = f.fused;
    TRY_ASSIGN(
        const passes::AssignReport other,
        passes::assign(
            without, offers,
            {.bindings = sizes, .fixed = {node.inputs[0]}, .places = {"host"}, .pack = false}));
    if (other.possible())
      c.without = Seconds(static_cast<double>(other.cost.value - f.assign.cost.value) * 1e-12);
    if (input)
      c.why = fmt::format("inputs arrive as {}, '{}' reads {}", c.from, c.consumer, c.to);
    else if (!reader)
      c.why = fmt::format("'{}' yields {}, outputs leave as {}", c.producer, c.from, c.to);
    else
      c.why = fmt::format("'{}' yields {}, '{}' reads {}", c.producer, c.from, c.consumer, c.to);
    result.conversions.push_back(std::move(c));
  }
  std::map<std::string, Fallback> by_op;
  for (const Row& row : f.rows) {
    if (row.kind != RowKind::kHost) continue;
    Fallback& fallback = by_op[row.op];
    fallback.op = row.op;
    if (fallback.reason.empty()) fallback.reason = row.reason;
    ++fallback.nodes;
    fallback.host += row.time.expected;
  }
  // A copy belongs to the operator on the host that is next to it.
  for (size_t r = 0; r < f.rows.size(); ++r) {
    if (f.rows[r].kind != RowKind::kCopy) continue;
    const bool away = f.rows[r].place.ends_with(f.host->chip().id);
    for (size_t d = 1; d < f.rows.size(); ++d) {
      const size_t other = away ? r + d : r - d;
      if (other >= f.rows.size()) break;
      if (f.rows[other].kind != RowKind::kHost) continue;
      by_op[f.rows[other].op].copies += f.rows[r].time.expected;
      break;
    }
  }
  for (auto& [op, fallback] : by_op) result.fallbacks.push_back(std::move(fallback));
  std::stable_sort(
      result.fallbacks.begin(), result.fallbacks.end(),
      [](const Fallback& a, const Fallback& b) { return a.host + a.copies > b.host + b.copies; });
  return result;
}

}  // namespace tessera::forecast
