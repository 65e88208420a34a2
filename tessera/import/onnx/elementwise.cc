// Element-wise operators.
#include "tessera/import/onnx/importer.h"
#include "tessera/ir/composites.h"

namespace tessera::import::onnx {
namespace {

// ONNX operators that are one primitive with the same inputs.
struct Direct {
  std::string_view onnx, op;
};
constexpr Direct kDirect[] = {
    {"Neg", "neg"},
    {"Abs", "abs"},
    {"Sign", "sign"},
    {"Floor", "floor"},
    {"Ceil", "ceil"},
    {"Round", "round"},
    {"Sqrt", "sqrt"},
    {"Exp", "exp"},
    {"Log", "log"},
    {"Sin", "sin"},
    {"Cos", "cos"},
    {"Tan", "tan"},
    {"Asin", "asin"},
    {"Acos", "acos"},
    {"Atan", "atan"},
    {"Sinh", "sinh"},
    {"Cosh", "cosh"},
    {"Tanh", "tanh"},
    {"Asinh", "asinh"},
    {"Acosh", "acosh"},
    {"Atanh", "atanh"},
    {"Erf", "erf"},
    {"Not", "not"},
    {"BitwiseNot", "bit_not"},
    {"IsNaN", "is_nan"},
    {"Identity", "identity"},
    {"LessOrEqual", "le"},
    {"GreaterOrEqual", "ge"},
    {"BitwiseAnd", "bit_and"},
    {"BitwiseOr", "bit_or"},
    {"BitwiseXor", "bit_xor"},
    {"Where", "select"},
};

Status direct(NodeContext& c) {
  for (const Direct& row : kDirect)
    if (row.onnx == c.node.op_type) {
      c.out(0, c.b.op(row.op, c.inputs));
      return {};
    }
  return c.fail("has no direct form");
}

// Before opset 7, the second operand was broadcast only if broadcast=1, from the axis given.
Status binary(NodeContext& c, std::string_view op) {
  if (c.input_count() != 2) return c.fail("has {} inputs, need 2", c.input_count());
  ValueId b = c.in(1);
  if (c.opset < 7 && c.i("broadcast", 0) && c.has_attr("axis") && c.type(0).ranked() &&
      c.type(1).ranked()) {
    const int64_t axis = c.i("axis", 0);
    const int trailing = c.type(0).rank() -
                         static_cast<int>(axis < 0 ? axis + c.type(0).rank() : axis) -
                         c.type(1).rank();
    op::Ints axes;
    for (int i = 0; i < trailing; ++i) axes.push_back(c.type(1).rank() + i);
    if (!axes.empty()) b = c.b.unsqueeze(b, axes);
  }
  c.out(0, c.b.op(op, {c.in(0), b}));
  return {};
}
Status add(NodeContext& c) { return binary(c, "add"); }
Status sub(NodeContext& c) { return binary(c, "sub"); }
Status mul(NodeContext& c) { return binary(c, "mul"); }
Status div(NodeContext& c) { return binary(c, "div"); }
Status pow(NodeContext& c) { return binary(c, "pow"); }
Status logical_and(NodeContext& c) { return binary(c, "and"); }
Status logical_or(NodeContext& c) { return binary(c, "or"); }
Status logical_xor(NodeContext& c) { return binary(c, "xor"); }
Status equal(NodeContext& c) { return binary(c, "eq"); }
Status less(NodeContext& c) { return binary(c, "lt"); }
Status greater(NodeContext& c) { return binary(c, "gt"); }

Status mod(NodeContext& c) {
  const bool like_c = c.i("fmod", 0) != 0;
  if (!like_c && is_float(c.type(0).dtype)) return c.fail("floats need fmod = 1");
  return binary(c, like_c ? "rem" : "mod");
}

Status bit_shift(NodeContext& c) {
  const std::string direction = c.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return c.fail("unknown direction '{}'", direction);
  return binary(c, direction == "LEFT" ? "shift_left" : "shift_right");
}

Status is_inf(NodeContext& c) {
  c.out(0,
        c.b.op("is_inf", {c.in(0)},
               {{"positive", c.i("detect_positive", 1)}, {"negative", c.i("detect_negative", 1)}}));
  return {};
}

// Clip: the bounds are attributes before opset 11.
Status clip(NodeContext& c) {
  ir::Builder& b = c.b;
  ValueId x = c.in(0), low = c.in(1), high = c.in(2);
  if (c.opset < 11) {
    if (c.has_attr("min")) low = b.scalar_like(x, c.f("min", 0));
    if (c.has_attr("max")) high = b.scalar_like(x, c.f("max", 0));
  }
  if (low != kAbsent) x = b.max(x, low);
  if (high != kAbsent) x = b.min(x, high);
  c.out(0, x == c.in(0) ? b.op("identity", {x}) : x);
  return {};
}

Status reciprocal(NodeContext& c) {
  c.out(0, c.b.div(c.b.scalar_like(c.in(0), 1), c.in(0)));
  return {};
}

// PRelu: x where it is not negative, else slope * x. Before opset 7, a list of slopes is one per
// channel (axis 1).
Status prelu(NodeContext& c) {
  ir::Builder& b = c.b;
  if (c.input_count() != 2) return c.fail("has {} inputs, need 2", c.input_count());
  const ValueId x = c.in(0);
  ValueId slope = c.in(1);
  if (c.opset < 7 && b.rank(slope) == 1 && b.rank(x) > 2) {
    op::Ints trailing;
    for (int64_t a = 1; a < b.rank(x) - 1; ++a) trailing.push_back(a);
    slope = b.unsqueeze(slope, trailing);
  }
  c.out(0, b.select(b.op("lt", {x, b.scalar_like(x, 0)}), b.mul(slope, x), x));
  return {};
}

// Sum, Max, Min, Mean of any number of inputs, each pair broadcast.
Status fold(NodeContext& c, std::string_view op) {
  if (c.input_count() == 0) return c.fail("needs at least one input");
  ValueId total = c.in(0);
  for (size_t i = 1; i < c.input_count(); ++i) total = c.b.op(op, {total, c.in(i)});
  c.out(0, total);
  return {};
}
Status sum(NodeContext& c) { return fold(c, "add"); }
Status max(NodeContext& c) { return fold(c, "max"); }
Status min(NodeContext& c) { return fold(c, "min"); }

Status mean(NodeContext& c) {
  ir::Builder& b = c.b;
  if (c.input_count() == 0) return c.fail("needs at least one input");
  ValueId total = ir::widen(b, c.in(0));
  for (size_t i = 1; i < c.input_count(); ++i) total = b.add(total, ir::widen(b, c.in(i)));
  c.out(0, b.convert(b.div(total, b.scalar_like(total, static_cast<double>(c.input_count()))),
                     c.type(0).dtype));
  return {};
}

// Gemm = alpha A' B' + beta C
Status gemm(NodeContext& c) {
  ir::Builder& b = c.b;
  op::Attrs attrs;
  ValueId x = c.in(0), w = c.in(1);
  if (c.i("transA", 0)) x = b.transpose(x, {1, 0});
  // Kernels pack constants from either order.
  if (c.i("transB", 0) && c.constant(1))
    attrs.set("transpose_b", int64_t{1});
  else if (c.i("transB", 0))
    w = b.transpose(w, {1, 0});
  ValueId y = b.op("dot", {x, w}, std::move(attrs));
  if (double alpha = c.f("alpha", 1); alpha != 1) y = b.mul(y, b.scalar_like(y, alpha));
  if (c.has(2)) {
    ValueId bias = c.in(2);
    if (double beta = c.f("beta", 1); beta != 1) bias = b.mul(bias, b.scalar_like(bias, beta));
    y = b.add(y, bias);
  }
  c.out(0, y);
  return {};
}

Status matmul(NodeContext& c) {
  if (c.input_count() != 2) return c.fail("has {} inputs, need 2", c.input_count());
  c.out(0, c.b.op("dot", {c.in(0), c.in(1)}));
  return {};
}

std::vector<Converter> make_rows() {
  std::vector<Converter> rows;
  for (const Direct& row : kDirect) rows.push_back({"", row.onnx, direct});
  const Converter more[] = {
      {"", "Add", add},         {"", "Sub", sub},         {"", "Mul", mul},
      {"", "Div", div},         {"", "Pow", pow},         {"", "And", logical_and},
      {"", "Or", logical_or},   {"", "Xor", logical_xor}, {"", "Sum", sum},
      {"", "Mean", mean},       {"", "Equal", equal},     {"", "Less", less},
      {"", "Greater", greater}, {"", "Mod", mod},         {"", "BitShift", bit_shift},
      {"", "IsInf", is_inf},    {"", "Clip", clip},       {"", "Reciprocal", reciprocal},
      {"", "PRelu", prelu},     {"", "Max", max},         {"", "Min", min},
      {"", "MatMul", matmul},   {"", "Gemm", gemm},
  };
  rows.insert(rows.end(), std::begin(more), std::end(more));
  return rows;
}

}  // namespace

std::span<const Converter> elementwise_converters() {
  static const std::vector<Converter> rows = make_rows();
  return rows;
}

}  // namespace tessera::import::onnx
