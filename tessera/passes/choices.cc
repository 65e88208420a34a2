#include "tessera/passes/choices.h"

#include <algorithm>

#include "tessera/op/elementwise.h"
#include "tessera/op/layouts.h"
#include "tessera/passes/layouts.h"

namespace tessera::passes {
namespace {

// Inputs in whose layout a kernel may have a say: data, as opposed to weights and parameters.
std::vector<bool> data_inputs(const ir::Node& node) {
  std::vector<bool> data(node.inputs.size(), true);
  const bool fused = node.op->name == "fused";
  const op::OpDef& op = fused ? *node.bodies[0].nodes[0].op : *node.op;
  if (op::elementwise(op) || op.name == "concat") return data;
  if (!fused) {
    for (size_t i = 1; i < data.size(); ++i) data[i] = false;
    return data;
  }
  const ir::Graph& body = node.bodies[0];
  for (size_t k = 1; k < body.nodes[0].inputs.size(); ++k)
    for (size_t i = 0; i < data.size(); ++i)
      if (body.inputs[i] == body.nodes[0].inputs[k]) data[i] = false;
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

}  // namespace

std::string canonical(const op::Type& type, std::string_view layout) {
  if (layout.empty()) return {};
  return physical_order(type, layout) == physical_order(type, "") ? std::string()
                                                                  : std::string(layout);
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

std::string refusal(const op::Problem& problem, Sources sources) {
  std::string why;
  if (cheapest(problem, sources, &why)) return {};
  op::Problem last = problem;
  for (std::vector<op::Operand>* side : {&last.in, &last.out})
    for (op::Operand& o : *side)
      if (!o.constant && o.present && o.rank() == last.out[0].rank())
        o.layout = op::channels_last(o.rank());
  if (op::channels_last(last.out[0].rank()).empty() || !cheapest(last, sources))
    return why.empty() ? "no kernel for this operator" : why;
  return {};
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
    return (in_layout.empty() && out_layout.empty()) ||
           (from && to && ascends(*from) && ascends(*to));
  }
  if (!from || !to) return false;
  if (transposes) {
    const op::Ints perm = node.attrs.ints("perm");
    for (int& axis : *to) axis = static_cast<int>(perm[static_cast<size_t>(axis)]);
  }
  return *from == *to;
}

std::vector<Choice> choices(const ir::Graph& graph, const ir::Node& node,
                            const op::Bindings& bindings, Sources sources) {
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
  return list;
}

}  // namespace tessera::passes
