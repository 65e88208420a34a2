#include "tessera/passes/algebra.h"

#include <algorithm>
#include <cmath>

#include "tessera/op/rules.h"

namespace tessera::passes {
namespace {

constexpr int64_t kLargest = 1 << 20;  // elements looked at in search of a number

// Bits of the fraction.
int precision(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 52;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    default:
      return 23;
  }
}

Polynomial sum(const Polynomial& a, const Polynomial& b, double sign) {
  Polynomial result;
  for (size_t i = 0; i < result.size(); ++i) result[i] = a[i] + sign * b[i];
  return result;
}

Polynomial scaled(Polynomial p, double factor) {
  for (double& c : p) c *= factor;
  return p;
}

std::optional<Polynomial> times(const Polynomial& a, const Polynomial& b) {
  Polynomial result{};
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0) continue;
      if (i + j > kDegree) return std::nullopt;
      result[i + j] += a[i] * b[j];
    }
  return result;
}

bool constant(const Polynomial& p) {
  return std::all_of(p.begin() + 1, p.end(), [](double c) { return c == 0; });
}

struct Reader {
  const Site& at;
  ir::ValueId x;
  std::vector<const ir::Node*>& nodes;
  int budget = 32;  // values looked at

  std::optional<Polynomial> read(ir::ValueId id, bool inner) {
    if (id == x) return Polynomial{0, 1};
    if (const auto c = number(at, id)) return Polynomial{*c};
    const ir::Node* node = at.producer(id);
    if (!node || --budget < 0 || (inner && at.uses(id) != 1)) return std::nullopt;
    const std::string_view op = node->op->name;
    if (op == "neg") return unary(*node, -1);
    if (op != "add" && op != "sub" && op != "mul" && op != "div" && op != "pow")
      return std::nullopt;
    const bool square = op == "mul" && node->inputs[0] == node->inputs[1];
    const auto a = square ? read_shared(node->inputs[0], 2) : read(node->inputs[0], true);
    const auto b = square ? a : a ? read(node->inputs[1], true) : std::nullopt;
    if (!a || !b) return std::nullopt;
    nodes.push_back(node);
    if (op == "add" || op == "sub") return sum(*a, *b, op == "add" ? 1 : -1);
    if (op == "mul") return times(*a, *b);
    if (!constant(*b)) return std::nullopt;
    if (op == "div") return (*b)[0] == 0 ? std::nullopt : std::optional(scaled(*a, 1 / (*b)[0]));
    return power(*a, (*b)[0]);
  }

  std::optional<Polynomial> unary(const ir::Node& node, double factor) {
    const auto a = read(node.inputs[0], true);
    if (!a) return std::nullopt;
    nodes.push_back(&node);
    return scaled(*a, factor);
  }

  // A value that one node reads so many times.
  std::optional<Polynomial> read_shared(ir::ValueId id, int times_read) {
    if (id != x && at.uses(id) != times_read) return std::nullopt;
    return read(id, false);
  }

  static std::optional<Polynomial> power(const Polynomial& a, double exponent) {
    if (exponent != 1 && exponent != 2 && exponent != 3 && exponent != 4) return std::nullopt;
    std::optional<Polynomial> result = a;
    for (int i = 1; i < static_cast<int>(exponent) && result; ++i) result = times(*result, a);
    return result;
  }
};

void multiply(const Site& at, const ir::Node& node, double exponent, Product& p);

void multiply(const Site& at, ir::ValueId id, double exponent, Product& p) {
  if (const auto c = number(at, id)) {
    p.coefficient *= std::pow(*c, exponent);
    return;
  }
  const ir::Node* made = at.producer(id);
  const bool inner = made && at.uses(id) == 1 && exponent == 1 &&
                     (made->op->name == "mul" || made->op->name == "neg" ||
                      (made->op->name == "div" && number(at, made->inputs[1])));
  if (!inner) {
    p.factors.push_back(id);
    return;
  }
  p.nodes.push_back(made);
  multiply(at, *made, 1, p);
}

void multiply(const Site& at, const ir::Node& node, double exponent, Product& p) {
  if (node.op->name == "neg") p.coefficient = -p.coefficient;
  multiply(at, node.inputs[0], exponent, p);
  if (node.op->name == "mul") multiply(at, node.inputs[1], exponent, p);
  if (node.op->name == "div") p.coefficient /= *number(at, node.inputs[1]);
}

}  // namespace

std::optional<double> number(const Site& at, ir::ValueId id) {
  const op::Tensor* t = at.constant(id);
  if (!t || t->count() == 0 || t->count() > kLargest || t->dtype() == DType::kString ||
      is_complex(t->dtype()))
    return std::nullopt;
  const double first = t->f64(0);
  for (int64_t i = 1; i < t->count(); ++i)
    if (t->f64(i) != first) return std::nullopt;
  return first;
}

bool about(DType dtype, double value, double expected) {
  return std::abs(value - expected) <= std::ldexp(4 * std::abs(expected), -precision(dtype) - 1);
}

Product product(const Site& at, const ir::Node& node) {
  Product p;
  if (node.op->name == "div" && !number(at, node.inputs[1])) {
    p.factors = {node.outputs[0]};
    return p;
  }
  multiply(at, node, 1, p);
  return p;
}

std::optional<Polynomial> polynomial(const Site& at, ir::ValueId id, ir::ValueId x,
                                     std::vector<const ir::Node*>& nodes) {
  return Reader{at, x, nodes}.read(id, true);
}

std::optional<Mean> mean_of(const Site& at, const ir::Node& node) {
  // sum / n or sum * (1 / n)
  if (node.op->name != "div" && node.op->name != "mul") return std::nullopt;
  const bool division = node.op->name == "div";
  for (size_t side : {0, 1}) {
    if (side == 1 && division) break;
    const ir::Node* sum = at.producer(node.inputs[side], "reduce");
    const auto factor = number(at, node.inputs[1 - side]);
    if (!sum || !factor || sum->attrs.s("kind") != "sum" || at.uses(node.inputs[side]) != 1)
      continue;
    const op::Type& type = at.type(sum->inputs[0]);
    if (!type.ranked()) continue;
    std::optional<op::Ints> axes = op::Ints{};
    if (sum->inputs.size() > 1) axes = at.ints(sum->inputs[1]);
    if (!axes) continue;
    auto normal = op::normalize_axes(*axes, type.rank());
    if (!normal) continue;
    op::Shape reduced;
    for (int a : *normal) reduced.push_back(type.dim(a));
    const auto count = op::element_count(reduced).constant();
    if (!count || *count < 1) continue;
    const double n = static_cast<double>(*count);
    if (division ? *factor != n : !about(type.dtype, *factor, 1 / n)) continue;
    return Mean{sum->inputs[0], *std::move(normal), sum->attrs.i("keepdims", 1) != 0, {sum}};
  }
  return std::nullopt;
}

}  // namespace tessera::passes
