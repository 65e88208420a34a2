#include "tessera/passes/choices.h"

#include <algorithm>

#include "tessera/layout/layout.h"
#include "tessera/op/elementwise.h"
#include "tessera/op/layouts.h"
#include "tessera/passes/layouts.h"

namespace tessera::passes {
namespace {

// Inputs in whose layout a kernel may have a say: data, as opposed to weights and parameters.
std::vector<bool> data_inputs(const ir::Node& node) {
  std::vector<bool> data(node.inputs.size(), true);
  if (node.op->name != "fused") {
    if (op::elementwise(*node.op) || node.op->name == "concat") return data;
    for (size_t i = 1; i < data.size(); ++i) data[i] = false;
    return data;
  }
  const ir::Graph& body = node.bodies[0];
  for (const ir::Node& member : body.nodes) {
    if (op::elementwise(*member.op) || member.op->name == "concat") continue;
    for (size_t k = 1; k < member.inputs.size(); ++k)
      for (size_t i = 0; i < data.size(); ++i)
        if (body.inputs[i] == member.inputs[k]) data[i] = false;
  }
  return data;
}

int layout_rank(const ir::Graph& graph, const ir::Node& node) {
  int rank = 0;
  for (const std::vector<ir::ValueId>* side : {&node.inputs, &node.outputs})
    for (ir::ValueId id : *side)
      if (id != ir::kAbsent && graph.type(id).is_tensor() && graph.type(id).ranked())
        rank = std::max(rank, graph.type(id).rank());
  return rank;
}

struct Preference {
  bool first_in, other_in, out;  // channels-last
};

constexpr size_t kMostChoices = 8;

// Reshapes and transposes of input 0 in layouts that it may come in.
void pass_on(const ir::Graph& graph, const ir::Node& node, Result<op::Problem>& problem,
             Sources sources, std::span<const std::string> arriving, std::vector<Choice>& list) {
  const bool transposes = node.op->name == "transpose";
  if ((!is_view(*node.op) && !transposes) || node.inputs[0] == ir::kAbsent ||
      node.outputs[0] == ir::kAbsent || !problem)
    return;
  const op::Type &x = graph.type(node.inputs[0]), &y = graph.type(node.outputs[0]);
  auto add = [&](const std::string& in, const std::string& out) {
    Choice c;
    c.in.assign(node.inputs.size(), "");
    c.in[0] = in;
    c.out = {out};
    const bool there = std::any_of(list.begin(), list.end(),
                                   [&](auto& o) { return o.in == c.in && o.out == c.out; });
    if (there || list.size() >= kMostChoices) return;
    if (!same_bytes(graph, node, in, out)) {
      problem->in[0].layout = in;
      problem->out[0].layout = out;
      const auto claim = cheapest(*problem, sources);
      if (!claim) return;
      c.kernel = claim->kernel;
      c.cost = claim->cost;
    }
    list.push_back(std::move(c));
  };
  std::vector<std::string> layouts(arriving.begin(), arriving.end());
  if (const std::string last(op::channels_last(x.rank())); !last.empty())
    layouts.push_back(canonical(x, last));
  for (const std::string& layout : layouts) {
    if (layout.empty()) continue;
    if (is_view(*node.op)) {
      if (auto out = reshaped(x, layout, y)) add(layout, canonical(y, *out));
      continue;
    }
    // The same order of axes again, under their new names: what moves is what trades places.
    add(layout, canonical(y, layout));
    if (auto order = physical_order(x, layout); order && x.rank() == y.rank()) {
      const op::Ints perm = node.attrs.ints("perm");
      std::vector<int> all;
      auto parsed = layout::Layout::parse(layout);
      for (const layout::Expr& e : parsed->axes())
        for (size_t k = 0; k < perm.size(); ++k)
          if (perm[k] == e.axis) all.push_back(static_cast<int>(k));
      if (all.size() == perm.size()) add(layout, canonical(y, layout_of(all)));
    }
  }
}

}  // namespace

std::string canonical(const op::Type& type, std::string_view layout) {
  if (layout.empty()) return {};
  const auto order = physical_order(type, layout);
  if (order == physical_order(type, "")) return {};
  const std::string_view last = op::channels_last(type.rank());
  return std::string(!last.empty() && order == physical_order(type, last) ? last : layout);
}

std::unique_ptr<op::Claim> cheapest(const op::Problem& problem, Sources sources, std::string* why) {
  std::unique_ptr<op::Claim> best;
  for (const op::ClaimSource* source : sources)
    for (op::Claim& claim : source->probe(problem)) {
      if (!claim.supported()) {
        if (why) *why += (why->empty() ? "" : "; ") + claim.kernel + ": " + claim.refusal;
      } else if (!best || claim.cost < best->cost) {
        best = std::make_unique<op::Claim>(std::move(claim));
      }
    }
  return best;
}

namespace {

// The problem on channels-last operands; nothing where there is no such layout.
std::optional<op::Problem> on_channels_last(const op::Problem& problem) {
  const int rank = problem.out[0].rank();
  if (op::channels_last(rank).empty()) return std::nullopt;
  op::Problem last = problem;
  for (std::vector<op::Operand>* side : {&last.in, &last.out})
    for (op::Operand& o : *side)
      if (!o.constant && o.present && o.rank() == rank) o.layout = op::channels_last(rank);
  return last;
}

}  // namespace

std::string refusal(const op::Problem& problem, Sources sources) {
  std::string why;
  if (cheapest(problem, sources, &why)) return {};
  if (const auto last = on_channels_last(problem)) {
    why.clear();
    if (cheapest(*last, sources, &why)) return {};
  }
  return why.empty() ? "no kernel for this operator" : why;
}

std::optional<Picoseconds> least_cost(const op::Problem& problem, Sources sources) {
  std::optional<Picoseconds> least;
  auto ask = [&](const op::Problem& p) {
    if (const auto claim = cheapest(p, sources))
      least = least ? std::min(*least, claim->cost) : claim->cost;
  };
  ask(problem);
  if (const auto last = on_channels_last(problem)) ask(*last);
  return least;
}

bool same_bytes(const ir::Graph& graph, const ir::Node& node, std::string_view in_layout,
                std::string_view out_layout) {
  const bool transposes = node.op->name == "transpose", relayouts = node.op->name == "relayout";
  if (!is_view(*node.op) && !transposes && !relayouts) return false;
  if (node.inputs[0] == ir::kAbsent || node.outputs[0] == ir::kAbsent) return false;
  const op::Type &x = graph.type(node.inputs[0]), &y = graph.type(node.outputs[0]);
  if (!x.is_tensor() || !y.is_tensor()) return false;
  auto from = physical_order(x, in_layout), to = physical_order(y, out_layout);
  if (!transposes && !relayouts) {
    // A new shape keeps the order of elements, which must be that of the bytes on both sides.
    auto ascends = [](const std::vector<int>& order) {
      return std::is_sorted(order.begin(), order.end());
    };
    if ((in_layout.empty() && out_layout.empty()) || (from && to && ascends(*from) && ascends(*to)))
      return true;
    const auto kept = reshaped(x, in_layout, y);
    return kept && canonical(y, *kept) == canonical(y, out_layout);
  }
  if (!from || !to) return false;
  if (transposes) {
    const op::Ints perm = node.attrs.ints("perm");
    for (int& axis : *to) axis = static_cast<int>(perm[static_cast<size_t>(axis)]);
  }
  return *from == *to;
}

std::vector<Choice> choices(const ir::Graph& graph, const ir::Node& node,
                            const op::Bindings& bindings, Sources sources,
                            std::span<const std::string> arriving) {
  std::vector<Choice> list;
  auto problem = problem_of(graph, node, bindings);
  const int rank = layout_rank(graph, node);
  const std::string last(op::channels_last(rank));
  const std::vector<bool> data = data_inputs(node);
  const bool fused = node.op->name == "fused";
  const std::vector<ir::ValueId> order = fused ? group_of(node).in : node.inputs;
  auto wanted = [&](ir::ValueId id, bool channels_last) -> std::string {
    if (!channels_last || id == ir::kAbsent || !graph.type(id).is_tensor() ||
        !graph.type(id).ranked() || graph.type(id).rank() != rank)
      return {};
    return canonical(graph.type(id), last);
  };
  for (const Preference& p : {Preference{false, false, false},
                              {true, true, true},
                              {false, true, true},
                              {true, false, false},
                              {true, true, false}}) {
    Choice c;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      c.in.push_back(data[i] ? wanted(node.inputs[i], i == 0 ? p.first_in : p.other_in) : "");
    for (ir::ValueId id : node.outputs) c.out.push_back(wanted(id, p.out));
    const bool same = std::any_of(list.begin(), list.end(),
                                  [&](auto& o) { return o.in == c.in && o.out == c.out; });
    if (same) continue;
    if (!node.inputs.empty() && !node.outputs.empty() &&
        same_bytes(graph, node, c.in[0], c.out[0])) {
      list.push_back(std::move(c));
      continue;
    }
    if (problem) {
      for (size_t k = 0; k < order.size(); ++k) {
        if (order[k] == ir::kAbsent) continue;
        // A fused node has each input once, its anchor perhaps twice.
        const auto at = fused ? std::find(node.inputs.begin(), node.inputs.end(), order[k])
                              : node.inputs.begin() + static_cast<int64_t>(k);
        problem->in[k].layout = c.in[static_cast<size_t>(at - node.inputs.begin())];
      }
      for (size_t k = 0; k < c.out.size(); ++k) problem->out[k].layout = c.out[k];
      if (auto claim = cheapest(*problem, sources)) {
        c.kernel = claim->kernel;
        c.cost = claim->cost;
        list.push_back(std::move(c));
        continue;
      }
    }
    if (list.empty()) {
      // The interpreter goes by single elements, through every operator.
      if (problem && !problem->out.empty())
        c.cost =
            Picoseconds(10'000'000 + std::max<int64_t>(0, problem->out[0].count()) * 1'000'000);
      list.push_back(std::move(c));
    }
    if (rank < 3 || rank > 5 || !problem) break;
  }
  pass_on(graph, node, problem, sources, arriving, list);
  return list;
}

std::vector<Choice> SourceOffers::choices(const ir::Graph& graph, const ir::Node& node,
                                          const Arriving& arriving) const {
  std::vector<std::string> layouts;
  if (!node.inputs.empty() && node.inputs[0] != ir::kAbsent)
    for (Form& form : arriving(node.inputs[0])) layouts.push_back(std::move(form.layout));
  return passes::choices(graph, node, bindings_, sources_, layouts);
}

std::optional<Picoseconds> SourceOffers::conversion(const ir::Graph& graph, ir::ValueId id,
                                                    const Form& from, const Form& to) const {
  ir::Node node;
  node.op = op::find("relayout");
  node.inputs = node.outputs = {id};
  auto problem = problem_of(graph, node, bindings_);
  if (!problem) return std::nullopt;
  problem->in[0].layout = from.layout;
  problem->out[0].layout = to.layout;
  if (auto claim = cheapest(*problem, sources_)) return claim->cost;
  // The host does it, by single elements.
  return Picoseconds(10'000'000 + problem->in[0].count() * 10'000);
}

}  // namespace tessera::passes
