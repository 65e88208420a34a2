#include "tessera/passes/scale.h"

#include <algorithm>
#include <cmath>

#include "tessera/passes/constants.h"

namespace tessera::passes {
namespace {

double times(double a, double b) { return a * b; }
double divided(double a, double b) { return a / b; }

// y * c or y / c.
struct Factor {
  ir::ValueId y = ir::kAbsent, id = ir::kAbsent;
  const op::Tensor* c = nullptr;
  bool divide = false;
};

std::optional<Factor> factor_of(const Site& at, const ir::Node& node) {
  const bool divide = node.op->name == "div";
  if (node.op->name != "mul" && !divide) return std::nullopt;
  for (size_t side : {1, 0}) {
    if (side == 0 && divide) break;
    const op::Tensor* c = at.constant(node.inputs[side]);
    if (c && is_float(c->dtype()) && !at.constant(node.inputs[1 - side]))
      return Factor{node.inputs[1 - side], node.inputs[side], c, divide};
  }
  return std::nullopt;
}

struct Weighted {
  const ir::Node* node = nullptr;
  int weight_axis = 0;     // of the second input: the axis of the result's channels
  int rank = 0, axis = 0;  // of the result
  int64_t channels = 0;
};

// The operator whose constant weights can take up a factor.
std::optional<Weighted> weighted(const Site& at, ir::ValueId y) {
  const ir::Node* node = at.producer(y);
  if (!node || !at.type(y).ranked()) return std::nullopt;
  const std::string_view op = node->op->name;
  if (op != "conv" && op != "conv_transpose" && op != "dot") return std::nullopt;
  const op::Tensor* w = at.constant(node->inputs[1]);
  if (!w || w->rank() < 2 || node->attrs.has("accumulate")) return std::nullopt;
  if (node->inputs.size() > 2 && node->inputs[2] != ir::kAbsent && !at.constant(node->inputs[2]))
    return std::nullopt;
  Weighted result{node, 0, at.type(y).rank(), 1, w->dim(0)};
  if (op == "conv_transpose") {
    result.weight_axis = 1;
    result.channels = w->dim(1) * node->attrs.i("groups", 1);
  }
  if (op == "dot") {
    result.weight_axis = w->rank() - (node->attrs.i("transpose_b") != 0 ? 2 : 1);
    result.channels = w->dim(result.weight_axis);
    result.axis = result.rank - 1;
  }
  return result;
}

std::optional<std::vector<double>> factors_of(const Weighted& y, const Factor& f) {
  auto values = along_axis(*f.c, y.rank, y.axis, y.channels);
  if (!values) return std::nullopt;
  for (double& v : *values) {
    if (f.divide) v = 1 / v;
    if (!std::isfinite(v)) return std::nullopt;
  }
  return values;
}

// Weights (C, M/G, ...) of a transposed convolution: the group of c says which channels they make.
std::optional<op::Tensor> scaled_transposed(const op::Tensor& w, int64_t groups,
                                            const std::vector<double>& factors) {
  if (groups == 1) return scaled(w, 1, factors);
  if (w.dim(0) % groups != 0) return std::nullopt;
  std::vector<double> rows;  // (C, M/G)
  for (int64_t c = 0; c < w.dim(0); ++c) {
    const auto first = factors.begin() + c / (w.dim(0) / groups) * w.dim(1);
    rows.insert(rows.end(), first, first + w.dim(1));
  }
  return scaled(w, 1, rows);
}

bool absorb(Site& at, const Weighted& y, const Factor& f) {
  if (at.uses(f.y) != 1)
    return at.miss(fmt::format("the result of {} is read elsewhere, too", y.node->op->name));
  const auto factors = factors_of(y, f);
  if (!factors) return at.miss("the factor is not finite, or differs within a channel");
  const op::Tensor& w = *at.constant(y.node->inputs[1]);
  const auto weights = y.node->op->name == "conv_transpose"
                           ? scaled_transposed(w, y.node->attrs.i("groups", 1), *factors)
                           : scaled(w, y.weight_axis, *factors);
  if (!weights) return at.miss("a weight would become infinite");
  std::vector<ir::ValueId> inputs = y.node->inputs;
  ir::Builder& b = at.build({y.node});
  inputs[1] = b.constant(*weights);
  if (inputs.size() > 2 && inputs[2] != ir::kAbsent) {
    const auto bias = scaled(*at.constant(inputs[2]), 0, *factors);
    if (!bias) return at.miss("a bias would become infinite");
    inputs[2] = b.constant(*bias);
  }
  return at.replace(b.op(y.node->op->name, std::move(inputs), y.node->attrs),
                    fmt::format("{} {}", y.node->op->name, at.node.op->name));
}

// (y * a) * c and the like, two constants becoming one.
bool join(Site& at, const Factor& f) {
  const ir::Node* inner = at.producer(f.y);
  const auto first = inner && at.uses(f.y) == 1 ? factor_of(at, *inner) : std::nullopt;
  if (!first) return false;
  const bool divide = first->divide && f.divide;
  const auto c = divide || (!first->divide && !f.divide) ? combined(*first->c, *f.c, times)
                 : f.divide                              ? combined(*first->c, *f.c, divided)
                                                         : combined(*f.c, *first->c, divided);
  if (!c) return false;
  ir::Builder& b = at.build({inner});
  return at.replace(b.op(divide ? "div" : "mul", {first->y, b.constant(*c)}), "two factors");
}

// (y + a) * c -> y * c + a * c
bool distribute(Site& at, const Factor& f) {
  const ir::Node* sum = at.producer(f.y, "add");
  if (!sum || at.uses(f.y) != 1) return false;
  for (size_t side : {1, 0}) {
    const op::Tensor* a = at.constant(sum->inputs[side]);
    const ir::ValueId y = sum->inputs[1 - side];
    if (!a || at.uses(y) != 1) continue;
    const auto source = weighted(at, y);
    const ir::Node* made = at.producer(y);
    const auto before = made ? factor_of(at, *made) : std::nullopt;
    if (source ? !factors_of(*source, f) : !before || !combined(*before->c, *f.c, times)) continue;
    const auto offset = combined(*a, *f.c, f.divide ? divided : times);
    if (!offset) continue;
    ir::Builder& b = at.build({sum});
    const ir::ValueId product = b.op(at.node.op->name, {y, f.id});
    return at.replace(b.add(product, b.constant(*offset)), "sum times constant");
  }
  return false;
}

bool rule(Site& at) {
  const auto f = factor_of(at, at.node);
  if (!f) return false;
  if (const auto y = weighted(at, f->y)) return absorb(at, *y, *f);
  return join(at, *f) || distribute(at, *f);
}

}  // namespace

void scale(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
