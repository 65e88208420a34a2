#include "tessera/passes/past.h"

#include <algorithm>
#include <set>

namespace tessera::passes {
namespace {

constexpr size_t kParts = 2;  // keys and values

bool absent(const ir::Node& node, size_t i) {
  return i >= node.inputs.size() || node.inputs[i] == ir::kAbsent;
}

bool takes_past(const ir::Graph& graph, const ir::Node& node) {
  if (node.op->name != "attention" || !absent(node, 4) || !absent(node, 5)) return false;
  const ir::Node *k = joined_parts(graph, node.inputs[1]), *v = joined_parts(graph, node.inputs[2]);
  return k && v && node.attrs.i("causal") == 0 &&
         graph.type(k->inputs[0]).dim(2) == graph.type(v->inputs[0]).dim(2);
}

bool rule(Site& at, const std::set<ir::ValueId>& last) {
  if (!takes_past(at.graph(), at.node)) return false;
  const ir::Node* parts[kParts] = {joined_parts(at.graph(), at.in(1)),
                                   joined_parts(at.graph(), at.in(2))};
  std::vector<ir::ValueId> inputs = at.node.inputs;
  inputs.resize(std::max<size_t>(inputs.size(), 6), ir::kAbsent);
  for (size_t i = 0; i < kParts; ++i) {
    inputs[i + 1] = parts[i]->inputs[1];
    inputs[i + 4] = parts[i]->inputs[0];
  }
  // Of each part, whether this is not the only reader.
  const bool shared = at.uses(at.in(1)) > 1 || at.uses(at.in(2)) > 1;
  const bool yields = shared && last.contains(at.out());
  const size_t outputs = std::max<size_t>(at.node.outputs.size(), yields ? 1 + kParts : 1);
  ir::Builder& b = at.build({parts[0], parts[1]});
  std::vector<ir::ValueId> results =
      b.ops("attention", std::move(inputs), at.node.attrs, static_cast<int>(outputs));
  if (yields)
    for (size_t i = 0; i < kParts; ++i)
      if (!at.stand_in(at.in(i + 1), results[i + 1])) return false;
  results.resize(at.node.outputs.size());
  return at.replace(
      results, yields ? "attention with its past, which it yields" : "attention with its past");
}

}  // namespace

const ir::Node* joined_parts(const ir::Graph& graph, ir::ValueId id) {
  if (id == ir::kAbsent || graph.value(id).producer < 0) return nullptr;
  const ir::Node& node = graph.nodes[static_cast<size_t>(graph.value(id).producer)];
  if (node.op->name != "concat" || node.inputs.size() != 2) return nullptr;
  const op::Type& type = graph.type(id);
  if (!type.ranked() || type.rank() != 4) return nullptr;
  const int64_t axis = node.attrs.i("axis");
  return axis == 2 || axis == -2 ? &node : nullptr;
}

void past(Rewriter& rewriter) {
  // Attentions behind which all other readers of their keys and values are.
  std::set<ir::ValueId> last;
  std::vector<std::vector<ir::ValueId>> candidates;
  const ir::Graph& graph = rewriter.graph();
  std::set<ir::ValueId> seen;  // of several attentions, one yields what they read
  for (const ir::Node& node : graph.nodes)
    if (takes_past(graph, node) && seen.insert(node.inputs[1]).second &&
        seen.insert(node.inputs[2]).second)
      candidates.push_back({node.outputs[0], node.inputs[1], node.inputs[2]});
  for (const auto& c : candidates)
    if (rewriter.defer(std::span(c).subspan(1), c[0])) last.insert(c[0]);
  rewriter.walk([&](Site& at) { return rule(at, last); });
}

}  // namespace tessera::passes
