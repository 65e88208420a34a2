#include "tessera/passes/reshapes.h"

#include <algorithm>

#include "tessera/op/elementwise.h"
#include "tessera/passes/shapes.h"

namespace tessera::passes {
namespace {

bool is_view(const Site& at, const ir::Node& node) {
  const std::string_view op = node.op->name;
  if (op == "transpose")
    return at.type(node.inputs[0]).ranked() &&
           moves_ones_only(*at.type(node.inputs[0]).shape, node.attrs.ints("perm"));
  return op == "squeeze" || op == "unsqueeze" || op == "reshape";
}

// Only axes of size 1 come or go.
bool changes_ones_only(const op::Shape& from, const op::Shape& to) {
  auto wide = [](op::Shape shape) {
    std::erase_if(shape, [](const op::Expr& e) { return e.constant() == 1; });
    return shape;
  };
  return wide(from) == wide(to);
}

// One reshape for two views, or for one that is no reshape.
bool join(Site& at) {
  if (!is_view(at, at.node)) return false;
  const ir::Node* inner = at.producer(at.in(0));
  const bool two = inner && is_view(at, *inner) && at.type(inner->inputs[0]).ranked();
  if (!two && at.is("reshape")) return false;
  ir::Builder& b = at.build({two ? inner : nullptr});
  const ir::ValueId x = two ? inner->inputs[0] : at.in(0);
  const ir::ValueId y = reshape_to(b, x, *at.type(at.out()).shape);
  return y != ir::kAbsent && at.replace(y, two ? "two views" : std::string(at.node.op->name));
}

// reshape(transpose(x)) -> transpose(reshape(x))
bool before_transpose(Site& at) {
  if (!at.is("reshape")) return false;
  const ir::Node* inner = at.producer(at.in(0), "transpose");
  const op::Type &type = at.type(at.out()), &moved = at.type(at.in(0));
  if (!inner || !moved.ranked() || !changes_ones_only(*moved.shape, *type.shape)) return false;
  const op::Shape& x = *at.type(inner->inputs[0]).shape;
  const op::Ints perm = inner->attrs.ints("perm");
  // Axes of 1 stay where the result has them; x's others fill the places between in x's order.
  std::vector<int64_t> wide, slots;  // axes of x as the result has them; where it has them
  for (int64_t p : perm)
    if (x[static_cast<size_t>(p)].constant() != 1) wide.push_back(p);
  std::vector<int64_t> sorted = wide;
  std::sort(sorted.begin(), sorted.end());
  op::Shape shape = *type.shape;
  op::Ints order(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    order[i] = static_cast<int64_t>(i);
    if (shape[i].constant() == 1) continue;
    shape[i] = x[static_cast<size_t>(sorted[slots.size()])];
    slots.push_back(static_cast<int64_t>(i));
  }
  for (size_t k = 0; k < slots.size(); ++k) {
    const auto rank = std::find(sorted.begin(), sorted.end(), wide[k]) - sorted.begin();
    order[static_cast<size_t>(slots[k])] = slots[static_cast<size_t>(rank)];
  }
  ir::Builder& b = at.build({inner});
  const ir::ValueId y = reshape_to(b, inner->inputs[0], shape);
  return y != ir::kAbsent && at.replace(b.transpose(y, order), "reshape of transpose");
}

// ---- reshape(f(reshape(x))) ----

struct Link {
  const ir::Node* node;
  size_t side;  // the input that the chain goes through
};

// The chain continues through this node, which does not see other than the last `tail` axes.
std::optional<size_t> passes_through(const Site& at, const ir::Node& node, int tail) {
  if (node.outputs.size() != 1 || node.inputs.empty()) return std::nullopt;
  const std::string_view op = node.op->name;
  const int rank = at.type(node.outputs[0]).rank();
  if (op == "layer_norm" || op == "rms_norm" || op == "softmax" || op == "log_softmax") {
    const auto axis = static_cast<int>(node.attrs.i("axis", -1));
    return axis == -1 || axis == rank - 1 ? std::optional<size_t>(0) : std::nullopt;
  }
  if (op == "dot") {
    const op::Tensor* w = at.constant(node.inputs[1]);
    const bool plain = w && w->rank() == 2 && node.attrs.i("transpose_a") == 0;
    return plain && at.type(node.inputs[0]).ranked() && at.type(node.inputs[0]).rank() > 1
               ? std::optional<size_t>(0)
               : std::nullopt;
  }
  if (!op::elementwise(*node.op)) return std::nullopt;
  std::optional<size_t> side;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const op::Tensor* c = at.constant(node.inputs[i]);
    if (!c && side) return std::nullopt;
    if (!c) side = i;
    if (!c) continue;
    for (int a = 0; a + tail < c->rank(); ++a)
      if (c->dim(a) != 1) return std::nullopt;
  }
  if (!side || node.inputs[*side] == ir::kAbsent) return std::nullopt;
  const op::Type& type = at.type(node.inputs[*side]);
  return type.ranked() && *type.shape == *at.type(node.outputs[0]).shape ? side : std::nullopt;
}

// The chain's node again, with `x` for what it read; constants have no more than `tail` axes.
ir::ValueId repeated(const Site& at, ir::Builder& b, const Link& link, ir::ValueId x, int tail) {
  std::vector<ir::ValueId> inputs = link.node->inputs;
  inputs[link.side] = x;
  op::Attrs attrs = link.node->attrs;
  if (op::elementwise(*link.node->op)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const op::Tensor* c = i == link.side ? nullptr : at.constant(inputs[i]);
      if (!c || c->rank() <= tail) continue;
      inputs[i] = b.constant(c->reshaped({c->dims().end() - tail, c->dims().end()}));
    }
  } else if (link.node->op->name != "dot") {
    attrs.set("axis", int64_t{-1});
  }
  return b.op(link.node->op->name, std::move(inputs), std::move(attrs));
}

class Chains {
 public:
  explicit Chains(const ir::Graph& graph) : joins_(graph.values.size()) {
    for (const ir::Node& node : graph.nodes)
      if (op::elementwise(*node.op) && node.inputs.size() == 2)
        for (ir::ValueId id : node.inputs) joins_[static_cast<size_t>(id)] = true;
  }

  bool operator()(Site& at) const {
    if (!at.is("reshape") || !at.type(at.out()).ranked() || !at.type(at.in(0)).ranked())
      return false;
    const op::Shape shape = *at.type(at.out()).shape;
    const int tail = common_tail(*at.type(at.in(0)).shape, shape);
    if (tail == 0 || shape.size() < 2) return false;
    std::vector<Link> links;
    ir::ValueId id = at.in(0);
    const ir::Node* inner = nullptr;
    for (;;) {
      const ir::Node* node = at.producer(id);
      if (!node || at.uses(id) != 1 || !at.type(id).ranked()) return false;
      inner = node;
      if (node->op->name == "reshape") break;
      const auto side = passes_through(at, *node, tail);
      if (!side) return false;
      links.push_back({node, *side});
      id = node->inputs[*side];
    }
    if (links.empty() || !at.type(inner->inputs[0]).ranked()) return false;
    op::Shape start = shape;
    for (int a = 0; a < tail; ++a)
      start[start.size() - 1 - static_cast<size_t>(a)] =
          at.type(id).dim(at.type(id).rank() - 1 - a);
    const bool vanishes = *at.type(inner->inputs[0]).shape == start;
    if (!vanishes && !joins(at.out())) return false;
    std::vector<const ir::Node*> nodes{inner};
    for (size_t k = links.size(); k-- > 0;) nodes.push_back(links[k].node);
    ir::Builder& b = at.build(nodes);
    ir::ValueId y = reshape_to(b, inner->inputs[0], start);
    if (y == ir::kAbsent) return false;
    for (size_t k = links.size(); k-- > 0;) y = repeated(at, b, links[k], y, tail);
    return at.replace(y, "views around a chain");
  }

 private:
  // Read by an element-wise operator with another operand: the chain could end in it.
  bool joins(ir::ValueId id) const {
    return static_cast<size_t>(id) < joins_.size() && joins_[static_cast<size_t>(id)];
  }

  std::vector<bool> joins_;  // by value
};

bool sized(const Site& at) {
  return at.node.outputs.size() == 1 && at.node.outputs[0] != ir::kAbsent &&
         at.type(at.out()).ranked() && at.node.inputs[0] != ir::kAbsent &&
         at.type(at.in(0)).ranked() && !at.value(at.out()).contents;
}

}  // namespace

void reshapes(Rewriter& rewriter) {
  const Chains chains(rewriter.graph());
  rewriter.walk([&](Site& at) {
    if (at.node.inputs.empty() || !sized(at)) return false;
    return join(at) || before_transpose(at) || chains(at);
  });
}

}  // namespace tessera::passes
