// Activations and the softmax family.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// Operators that are one composite with float attributes of the same names.
struct Row {
  std::string_view onnx, op;
  std::vector<std::pair<std::string_view, double>> attrs;  // with ONNX's defaults
};
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {"Relu", "relu", {}},
      {"LeakyRelu", "leaky_relu", {{"alpha", 0.01f}}},
      {"Elu", "elu", {{"alpha", 1}}},
      {"Sigmoid", "sigmoid", {}},
      {"Swish", "silu", {{"alpha", 1}}},
      {"HardSigmoid", "hard_sigmoid", {{"alpha", 0.2f}, {"beta", 0.5}}},
      {"HardSwish", "hard_swish", {}},
      {"Softplus", "softplus", {}},
      {"Mish", "mish", {}},
  };
  return kRows;
}

Status activation(NodeContext& c) {
  for (const Row& row : rows()) {
    if (row.onnx != c.node.op_type) continue;
    op::Attrs attrs;
    for (const auto& [name, otherwise] : row.attrs) attrs.set(name, c.f(name, otherwise));
    c.out(0, c.b.op(row.op, {c.in(0)}, std::move(attrs)));
    return {};
  }
  return c.fail("is no activation");
}

Status gelu(NodeContext& c) {
  const std::string form = c.s("approximate", "none");
  if (form != "none" && form != "tanh")
    return c.fail("approximate is '{}', need 'none' or 'tanh'", form);
  c.out(0, c.b.op("gelu", {c.in(0)}, {{"tanh", int64_t{form == "tanh"}}}));
  return {};
}

// gamma * elu(x; alpha); opset 1 rounded its defaults.
Status selu(NodeContext& c) {
  const double alpha = c.f("alpha", c.opset < 6 ? 1.6732f : 1.67326319f),
               gamma = c.f("gamma", c.opset < 6 ? 1.0507f : 1.05070102f);
  const ValueId y = c.b.op("elu", {c.in(0)}, {{"alpha", alpha}});
  c.out(0, c.b.mul(y, c.b.scalar_like(y, gamma)));
  return {};
}

// max(x, 0) + min(alpha (exp(x / alpha) - 1), 0) = alpha * elu(x / alpha)
Status celu(NodeContext& c) {
  const double alpha = c.f("alpha", 1);
  if (alpha == 0) return c.fail("alpha is 0");
  const ValueId x = c.in(0);
  if (alpha > 0) {
    const ValueId y = c.b.op("elu", {c.b.div(x, c.b.scalar_like(x, alpha))}, {{"alpha", 1.0}});
    c.out(0, c.b.mul(y, c.b.scalar_like(x, alpha)));
    return {};
  }
  const ValueId zero = c.b.scalar_like(x, 0), a = c.b.scalar_like(x, alpha);
  const ValueId e = c.b.mul(a, c.b.sub(c.b.unary("exp", c.b.div(x, a)), c.b.scalar_like(x, 1)));
  c.out(0, c.b.add(c.b.max(x, zero), c.b.min(e, zero)));
  return {};
}

// x / (1 + |x|)
Status softsign(NodeContext& c) {
  const ValueId x = c.in(0);
  c.out(0, c.b.div(x, c.b.add(c.b.scalar_like(x, 1), c.b.unary("abs", x))));
  return {};
}

Status thresholded_relu(NodeContext& c) {
  const ValueId x = c.in(0);
  c.out(0, c.b.select(c.b.op("gt", {x, c.b.scalar_like(x, c.f("alpha", 1))}), x,
                      c.b.scalar_like(x, 0)));
  return {};
}

// x + bias below -lambd, x - bias above lambd, else 0
Status shrink(NodeContext& c) {
  ir::Builder& b = c.b;
  const ValueId x = c.in(0), bias = b.scalar_like(x, c.f("bias", 0));
  const double lambd = c.f("lambd", 0.5);
  const ValueId rest =
      b.select(b.op("gt", {x, b.scalar_like(x, lambd)}), b.sub(x, bias), b.scalar_like(x, 0));
  c.out(0, b.select(b.op("lt", {x, b.scalar_like(x, -lambd)}), b.add(x, bias), rest));
  return {};
}

// Before opset 13 the input is flattened to 2-D at `axis` (1 by default), rows are what is
// normalised.
Status along_axis(NodeContext& c, std::string_view op) {
  ir::Builder& b = c.b;
  const op::Type& x = c.type(0);
  int64_t axis = c.i("axis", c.opset < 13 ? 1 : -1);
  if (c.opset >= 13) {
    c.out(0, b.op(op, {c.in(0)}, {{"axis", axis}}));
    return {};
  }
  if (!x.ranked()) return c.fail("needs a known rank before opset 13");
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis > x.rank()) return c.fail("axis {} is outside rank {}", axis, x.rank());
  if (axis == x.rank() - 1 || op::element_count(*x.shape).constant() == 0) {
    c.out(0, b.op(op, {c.in(0)}, {{"axis", int64_t{-1}}}));
    return {};
  }
  op::Ints rows(static_cast<size_t>(axis), 0);
  rows.push_back(-1);
  const ValueId y = b.op(op, {b.reshape(c.in(0), rows)}, {{"axis", int64_t{-1}}});
  c.out(0, b.op("reshape", {y, b.op("shape_of", {c.in(0)})}, {{"zero_is_zero", int64_t{1}}}));
  return {};
}
Status softmax(NodeContext& c) { return along_axis(c, "softmax"); }
Status log_softmax(NodeContext& c) { return along_axis(c, "log_softmax"); }
Status hardmax(NodeContext& c) { return along_axis(c, "hardmax"); }

std::vector<Converter> make_rows() {
  std::vector<Converter> list;
  for (const Row& row : rows()) list.push_back({"", row.onnx, activation});
  const Converter more[] = {
      {"", "Gelu", gelu},
      {"", "Selu", selu},
      {"", "Celu", celu},
      {"", "Softsign", softsign},
      {"", "ThresholdedRelu", thresholded_relu},
      {"", "Shrink", shrink},
      {"", "Softmax", softmax},
      {"", "LogSoftmax", log_softmax},
      {"", "Hardmax", hardmax},
  };
  list.insert(list.end(), std::begin(more), std::end(more));
  return list;
}

}  // namespace

std::span<const Converter> activation_converters() {
  static const std::vector<Converter> list = make_rows();
  return list;
}

}  // namespace tessera::import::onnx
