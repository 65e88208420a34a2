#include "tessera/passes/fold.h"

#include <algorithm>
#include <map>
#include <string>

namespace tessera::passes {
namespace {

// Results above this many bytes must not outgrow what they are made from.
constexpr int64_t kSmall = 1 << 16;
// The interpreter is slow: larger results are left to kernels.
constexpr int64_t kMaxElements = 1 << 22;

bool random(const op::OpDef& op) {
  return op.name.starts_with("random") || op.name == "bernoulli" || op.name == "multinomial";
}

// All contents known as numbers: the value is a constant whatever computes it.
bool constant_contents(const ir::ValueInfo& info) {
  return info.contents && !info.constant && info.type.is_static() && info.type.rank() <= 1 &&
         std::all_of(info.contents->begin(), info.contents->end(),
                     [](auto& e) { return e.is_constant(); });
}

Result<op::Tensor> from_contents(const ir::ValueInfo& info) {
  TRY_ASSIGN(op::Tensor t, op::Tensor::make(info.type.dtype, info.type.dims()));
  if (t.count() != static_cast<int64_t>(info.contents->size()))
    return error(Code::kInternal, "contents of another size");
  for (int64_t i = 0; i < t.count(); ++i)
    t.set_i64(i, *(*info.contents)[static_cast<size_t>(i)].constant());
  return t;
}

using Symbols = std::map<std::string, op::Expr, std::less<>>;

void substitute(op::Type& type, const Symbols& known) {
  if (type.shape)
    for (op::Expr& d : *type.shape) d = d.substitute(known);
  if (type.element) {
    op::Type element = *type.element;
    substitute(element, known);
    type.element = std::make_shared<const op::Type>(std::move(element));
  }
}

// Sizes that were to be known only at run time are numbers now, wherever they are used.
void substitute(ir::Graph& graph, const Symbols& known) {
  for (ir::ValueInfo& info : graph.values) {
    substitute(info.type, known);
    if (info.contents)
      for (op::Expr& e : *info.contents) e = e.substitute(known);
  }
  for (ir::Node& node : graph.nodes)
    for (ir::Graph& body : node.bodies) substitute(body, known);
}

// Computes the node if all its inputs are constants and it is worth it. `known` gets the sizes that
// this decides.
bool compute(ir::Graph& graph, const ir::Node& node, const Evaluate& evaluate, Symbols& known) {
  if (random(*node.op) || !node.bodies.empty() || node.op->kind == op::OpClass::kHost) return false;
  std::vector<op::Value> values(node.inputs.size());
  std::vector<const op::Value*> inputs(node.inputs.size(), nullptr);
  int64_t in_bytes = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == ir::kAbsent) continue;
    const auto& constant = graph.value(node.inputs[i]).constant;
    if (!constant) return false;
    values[i] = op::Value(*constant);
    inputs[i] = &values[i];
    in_bytes += constant->bytes().value;
  }
  int64_t out_bytes = 0;
  for (ir::ValueId id : node.outputs) {
    if (id == ir::kAbsent) continue;
    const op::Type& type = graph.type(id);
    if (!type.is_tensor()) return false;
    if (!type.is_static()) continue;
    auto count = op::element_count(type.dims());
    if (!count || *count > kMaxElements) return false;
    out_bytes += packed_bytes(type.dtype, *count);
  }
  if (out_bytes > kSmall && out_bytes > in_bytes) return false;
  auto results = evaluate(node, inputs);
  if (!results) return false;  // the run will tell why
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != ir::kAbsent && !(*results)[i].is_tensor()) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == ir::kAbsent) continue;
    ir::ValueInfo& info = graph.value(node.outputs[i]);
    info.constant = (*results)[i].tensor();
    const op::Type type = info.constant->type();
    if (info.type.ranked() && info.type.rank() == type.rank())
      for (int a = 0; a < type.rank(); ++a)
        if (auto symbol = info.type.dim(a).as_symbol()) known.emplace(*symbol, type.dim(a));
    info.type = type;
    info.producer = -1;
  }
  return true;
}

int remove_dead(ir::Graph& graph, const std::vector<bool>& folded) {
  std::vector<bool> wanted(graph.values.size()), keep(graph.nodes.size());
  for (ir::ValueId id : graph.outputs) wanted[static_cast<size_t>(id)] = true;
  int dead = 0;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph.nodes[n];
    if (folded[n]) continue;
    for (ir::ValueId id : node.outputs)
      keep[n] = keep[n] ||
                (id != ir::kAbsent && wanted[static_cast<size_t>(id)] && !graph.value(id).constant);
    if (!keep[n]) {
      ++dead;
      continue;
    }
    for (ir::ValueId id : node.inputs)
      if (id != ir::kAbsent) wanted[static_cast<size_t>(id)] = true;
  }
  std::vector<ir::Node> kept;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!keep[n]) continue;
    for (ir::ValueId id : graph.nodes[n].outputs)
      if (id != ir::kAbsent) graph.value(id).producer = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
  return dead;
}

}  // namespace

FoldReport fold(ir::Graph& graph, const Evaluate& evaluate) {
  FoldReport report;
  std::vector<bool> folded(graph.nodes.size());
  Symbols known;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    ir::Node& node = graph.nodes[n];
    for (ir::Graph& body : node.bodies) {
      const FoldReport inner = fold(body, evaluate);
      report.folded += inner.folded;
      report.dead += inner.dead;
    }
    if (node.outputs.size() == 1 && node.outputs[0] != ir::kAbsent &&
        constant_contents(graph.value(node.outputs[0]))) {
      ir::ValueInfo& info = graph.value(node.outputs[0]);
      if (auto t = from_contents(info)) {
        info.constant = *std::move(t);
        info.producer = -1;
        folded[n] = true;
      }
    }
    if (!folded[n]) folded[n] = compute(graph, node, evaluate, known);
    report.folded += folded[n];
  }
  if (!known.empty()) substitute(graph, known);
  report.dead += remove_dead(graph, folded);
  return report;
}

}  // namespace tessera::passes
