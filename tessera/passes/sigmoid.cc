#include "tessera/passes/sigmoid.h"

#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

// 1 / (1 + exp(-x))
bool quotient(Site& at) {
  if (!at.is("div") || number(at, at.in(0)) != 1.0 || at.uses(at.in(1)) != 1) return false;
  const ir::Node* sum = at.producer(at.in(1), "add");
  if (!sum) return false;
  for (size_t side : {0, 1}) {
    const ir::Node* e = at.producer(sum->inputs[side], "exp");
    if (!e || number(at, sum->inputs[1 - side]) != 1.0 || at.uses(sum->inputs[side]) != 1) continue;
    const ir::Node* minus = at.producer(e->inputs[0], "neg");
    if (!minus || at.uses(e->inputs[0]) != 1) continue;
    ir::Builder& b = at.build({minus, e, sum});
    return at.replace(b.unary("sigmoid", minus->inputs[0]), "1 / (1 + exp(-x))");
  }
  return false;
}

// x * gate(x)
bool gated(Site& at) {
  if (!at.is("mul") || !is_float(at.type(at.out()).dtype)) return false;
  for (size_t side : {0, 1}) {
    const ir::ValueId x = at.in(1 - side);
    const ir::Node* gate = at.producer(at.in(side));
    if (!gate || at.uses(at.in(side)) != 1) continue;
    if (gate->op->name == "sigmoid") {
      std::vector<const ir::Node*> nodes{gate};
      const auto p = gate->inputs[0] == x ? std::optional(Polynomial{0, 1})
                                          : polynomial(at, gate->inputs[0], x, nodes);
      if (!p || *p != Polynomial{0, (*p)[1]}) continue;
      op::Attrs attrs;
      if ((*p)[1] != 1) attrs.set("alpha", (*p)[1]);
      return at.replace(at.build(nodes).op("silu", {x}, std::move(attrs)), "x * sigmoid(x)");
    }
    const ir::Node* soft =
        gate->op->name == "tanh" ? at.producer(gate->inputs[0], "softplus") : nullptr;
    if (soft && soft->inputs[0] == x && at.uses(gate->inputs[0]) == 1)
      return at.replace(at.build({soft, gate}).unary("mish", x), "x * tanh(softplus(x))");
  }
  return false;
}

}  // namespace

void sigmoid(Rewriter& rewriter) {
  rewriter.walk([](Site& at) { return quotient(at) || gated(at); });
}

}  // namespace tessera::passes
