#include "tessera/passes/gelu.h"

#include <numbers>

#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

// The erf or tanh that a gate 1 + f(y), or a multiple of it, is made of.
struct Gate {
  const ir::Node* f = nullptr;
  double one = 0, slope = 0;  // one + slope * f(y)
  std::vector<const ir::Node*> nodes;
};

std::optional<Gate> gate_of(const Site& at, ir::ValueId id) {
  const ir::Node* sum = at.producer(id, "add");
  if (!sum || at.uses(id) != 1) return std::nullopt;
  for (ir::ValueId side : sum->inputs) {
    // f(y) itself, or a multiple of it
    const ir::Node* f = at.producer(side);
    if (f && f->op->name == "mul")
      for (ir::ValueId inner : f->inputs)
        if (const ir::Node* made = at.producer(inner);
            made && (made->op->name == "erf" || made->op->name == "tanh")) {
          side = inner;
          f = made;
          break;
        }
    if (!f || (f->op->name != "erf" && f->op->name != "tanh") || at.uses(side) != 1) continue;
    Gate gate{f, 0, 0, {f}};
    const auto p = polynomial(at, id, side, gate.nodes);
    if (!p || *p != Polynomial{(*p)[0], (*p)[1]}) continue;
    gate.one = (*p)[0];
    gate.slope = (*p)[1];
    return gate;
  }
  return std::nullopt;
}

bool rule(Site& at) {
  if ((!at.is("mul") && !at.is("div")) || !at.type(at.out()).is_tensor()) return false;
  const Product p = product(at, at.node);
  if (p.factors.size() != 2) return false;
  const DType dtype = at.type(at.out()).dtype;
  for (size_t side : {0, 1}) {
    const ir::ValueId x = p.factors[1 - side];
    auto gate = gate_of(at, p.factors[side]);
    if (!gate) continue;
    const auto y = polynomial(at, gate->f->inputs[0], x, gate->nodes);
    if (!y) continue;
    const bool tanh = gate->f->op->name == "tanh";
    constexpr double kSlope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const bool fits =
        tanh ? about(dtype, (*y)[1], kSlope) && about(dtype, (*y)[3], kSlope * 0.044715)
             : about(dtype, (*y)[1], std::numbers::sqrt2 / 2) && (*y)[3] == 0;
    if ((*y)[0] != 0 || (*y)[2] != 0 || (*y)[4] != 0 || (*y)[1] == 0) continue;
    gate->nodes.insert(gate->nodes.end(), p.nodes.begin(), p.nodes.end());
    if (!fits || !about(dtype, p.coefficient * gate->one, 0.5) ||
        !about(dtype, p.coefficient * gate->slope, 0.5))
      return at.miss(
          fmt::format("almost gelu: {} x (1 + {} {}({} x + {} x^3))", p.coefficient * gate->one,
                      gate->slope / gate->one, gate->f->op->name, (*y)[1], (*y)[3]),
          gate->nodes);
    op::Attrs attrs;
    if (tanh) attrs.set("tanh", int64_t{1});
    return at.replace(at.build(gate->nodes).op("gelu", {x}, std::move(attrs)),
                      fmt::format("gelu by {}", gate->f->op->name));
  }
  return false;
}

}  // namespace

void gelu(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
