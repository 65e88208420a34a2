#include "tessera/passes/expand.h"

#include <algorithm>

#include "tessera/ir/builder.h"

namespace tessera::passes {
namespace {

// Composites of composites of ...
constexpr int kMaxDepth = 4;

class Expander {
 public:
  Expander(const op::Bindings& bindings, const Accepts& accepts)
      : bindings_(bindings), accepts_(accepts) {}

  bool taken(const ir::Graph& graph, const ir::Node& node) const {
    auto problem = problem_of(graph, node, bindings_);
    return problem && accepts_(*problem).empty();
  }

  // Whether kernels, or nobody, need to do the node: reshapes, and what follows from sizes.
  bool easy(const ir::Graph& graph, const ir::Node& node, int depth) const {
    if (is_view(*node.op)) return true;
    const bool from_sizes = std::all_of(node.outputs.begin(), node.outputs.end(), [&](auto id) {
      return id == ir::kAbsent || graph.value(id).contents || graph.value(id).constant;
    });
    return from_sizes || taken(graph, node) || expands(graph, node, depth);
  }

  bool expands(const ir::Graph& graph, const ir::Node& node, int depth = 0) const {
    if (depth >= kMaxDepth || node.op->kind != op::OpClass::kComposite ||
        !ir::find_composite(node.op->name))
      return false;
    std::vector<op::Type> types;
    for (ir::ValueId id : node.inputs)
      types.push_back(id == ir::kAbsent ? op::Type() : graph.type(id));
    auto body = ir::decompose(node, types);
    if (!body || body->nodes.empty()) return false;
    return std::all_of(body->nodes.begin(), body->nodes.end(),
                       [&](const ir::Node& n) { return easy(*body, n, depth + 1); });
  }

  Result<int> run(ir::Graph& graph) const {
    int count = 0;
    for (ir::Node& node : graph.nodes)
      for (ir::Graph& body : node.bodies) {
        TRY_ASSIGN(const int inner, run(body));
        count += inner;
      }
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      TRY_ASSIGN(const int expanded, once(graph));
      count += expanded;
      if (expanded == 0) break;
    }
    return count;
  }

 private:
  Result<int> once(ir::Graph& graph) const {
    std::vector<bool> wanted;
    for (const ir::Node& node : graph.nodes)
      wanted.push_back(node.op->kind == op::OpClass::kComposite && node.bodies.empty() &&
                       !taken(graph, node) && expands(graph, node));
    const int count = static_cast<int>(std::count(wanted.begin(), wanted.end(), true));
    if (count == 0) return 0;
    std::vector<ir::Node> nodes = std::exchange(graph.nodes, {});
    std::vector<ir::ValueId> now(graph.values.size());  // what stands for a value
    for (size_t id = 0; id < now.size(); ++id) now[id] = static_cast<ir::ValueId>(id);
    auto current = [&](ir::ValueId id) {
      return id == ir::kAbsent ? id : now[static_cast<size_t>(id)];
    };
    for (size_t n = 0; n < nodes.size(); ++n) {
      ir::Node& node = nodes[n];
      for (ir::ValueId& id : node.inputs) id = current(id);
      if (!wanted[n]) {
        graph.nodes.push_back(std::move(node));
        continue;
      }
      ir::Builder b(graph, node.origin);
      const std::vector<ir::ValueId> results =
          ir::find_composite(node.op->name)
              ->decompose(b, node.attrs, node.inputs, static_cast<int>(node.outputs.size()));
      TRY(b.status());
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        if (node.outputs[k] == ir::kAbsent) continue;
        ir::ValueInfo &old = graph.value(node.outputs[k]), &fresh = graph.value(results[k]);
        now[static_cast<size_t>(node.outputs[k])] = results[k];
        // One of the inputs, perhaps: that keeps its name.
        if (fresh.producer < 0 && !fresh.constant) continue;
        if (fresh.name.empty()) fresh.name = std::exchange(old.name, "");
        fresh.type = old.type;
      }
    }
    for (ir::ValueId& id : graph.outputs) id = current(id);
    for (ir::ValueInfo& info : graph.values) info.producer = -1;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (ir::ValueId id : graph.nodes[n].outputs)
        if (id != ir::kAbsent) graph.value(id).producer = static_cast<int32_t>(n);
    return count;
  }

  const op::Bindings& bindings_;
  const Accepts& accepts_;
};

}  // namespace

Result<int> expand(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts) {
  return Expander(bindings, accepts).run(graph);
}

Result<int> expand(ir::Graph& graph, const op::Bindings& bindings, Sources sources) {
  return expand(graph, bindings, [sources](const op::Problem& p) { return refusal(p, sources); });
}

}  // namespace tessera::passes
