// Element-wise primitives, with numpy broadcasting.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;

OpDef unary(std::string_view name, InferFn infer = same_as_input) { return {name, kPrimitive, 1, 1, 1, 1, {}, infer}; }
OpDef binary(std::string_view name, InferFn infer = broadcast_same_dtype, ContentsFn contents = nullptr) {
  return {name, kPrimitive, 2, 2, 1, 1, {}, infer, contents};
}

// Applies `fn` to the known elements of both inputs, one of which may be a single element.
template <class Fn>
std::optional<Contents> combine(const InferContext& c, const Type& output, Fn fn) {
  const Contents *a = c.content(0), *b = c.content(1);
  if (!a || !b || !output.ranked() || output.rank() > 1) return std::nullopt;
  const size_t n = std::max(a->size(), b->size());
  if ((a->size() != n && a->size() != 1) || (b->size() != n && b->size() != 1)) return std::nullopt;
  if (a->empty() || b->empty()) return Contents{};
  Contents result;
  for (size_t i = 0; i < n; ++i) {
    std::optional<Expr> value = fn((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<Contents> add_contents(const InferContext& c, const Type& t) {
  return combine(c, t, [](auto& a, auto& b) { return std::optional(a + b); });
}
std::optional<Contents> sub_contents(const InferContext& c, const Type& t) {
  return combine(c, t, [](auto& a, auto& b) { return std::optional(a - b); });
}
std::optional<Contents> mul_contents(const InferContext& c, const Type& t) {
  return combine(c, t, [](auto& a, auto& b) { return std::optional(a * b); });
}
// Integer division truncates; sizes are not negative, so it is floor_div where the divisor is a positive number.
std::optional<Contents> div_contents(const InferContext& c, const Type& t) {
  return combine(c, t, [](auto& a, auto& b) -> std::optional<Expr> {
    if (a.is_constant() && b.is_constant() && *b.constant() != 0 && *b.constant() != -1) return Expr(*a.constant() / *b.constant());
    if (b.is_constant() && *b.constant() > 0) return floor_div(a, b);
    return exact_quotient(a, b);
  });
}
std::optional<Contents> min_contents(const InferContext& c, const Type& t) {
  return combine(c, t, [](auto& a, auto& b) { return std::optional(min(a, b)); });
}
std::optional<Contents> max_contents(const InferContext& c, const Type& t) {
  return combine(c, t, [](auto& a, auto& b) { return std::optional(max(a, b)); });
}
std::optional<Contents> eq_contents(const InferContext& c, const Type& t) {
  return combine(c, t, [](auto& a, auto& b) -> std::optional<Expr> {
    if (a == b) return Expr(1);
    if (a.is_constant() && b.is_constant()) return Expr(0);
    // A size is never negative.
    if ((a.as_symbol() && b.is_constant() && *b.constant() < 0) || (b.as_symbol() && a.is_constant() && *a.constant() < 0)) return Expr(0);
    return std::nullopt;
  });
}

std::optional<Contents> select_contents(const InferContext& c, const Type& output) {
  const Contents *p = c.content(0), *a = c.content(1), *b = c.content(2);
  if (!p || !a || !b || !output.ranked() || output.rank() > 1) return std::nullopt;
  const size_t n = std::max({p->size(), a->size(), b->size()});
  Contents result;
  for (size_t i = 0; i < n; ++i) {
    auto at = [&](const Contents& side) -> std::optional<Expr> {
      if (side.size() == 1) return side[0];
      return i < side.size() ? std::optional(side[i]) : std::nullopt;
    };
    const auto condition = at(*p);
    if (!condition || !condition->is_constant()) return std::nullopt;
    const auto chosen = at(*condition->constant() ? *a : *b);
    if (!chosen) return std::nullopt;
    result.push_back(*chosen);
  }
  return result;
}

Result<std::vector<Type>> to_bool(const InferContext& c) {
  Type t = c.in(0);
  t.dtype = DType::kBool;
  return std::vector<Type>{t};
}

// pow takes any exponent type.
Result<std::vector<Type>> pow_rule(const InferContext& c) {
  TRY_ASSIGN(auto shape, broadcast_shapes(c));
  return std::vector<Type>{{TypeKind::kTensor, c.in(0).dtype, std::move(shape), nullptr}};
}

Result<std::vector<Type>> convert_rule(const InferContext& c) {
  Type t = c.in(0);
  if (!t.is_tensor()) return c.fail("needs a tensor, got {}", t.str());
  t.dtype = c.attrs.dtype("to");
  return std::vector<Type>{t};
}
std::optional<Contents> convert_contents(const InferContext& c, const Type& output) {
  const Contents* known = c.content(0);
  if (!known || (output.dtype != DType::kI64 && output.dtype != DType::kI32)) return std::nullopt;
  return *known;
}

std::vector<OpDef> make_rows() {
  std::vector<OpDef> rows;
  for (std::string_view name : {"neg", "abs", "sign", "floor", "ceil", "round", "trunc", "sqrt", "exp", "log", "sin", "cos", "tan",
                                "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
                                "not", "bit_not"})
    rows.push_back(unary(name));
  rows.push_back(unary("is_nan", to_bool));
  rows.push_back({"is_inf", kPrimitive, 1, 1, 1, 1, {{"positive", AttrKind::kInt}, {"negative", AttrKind::kInt}}, to_bool});
  rows.push_back(binary("add", broadcast_same_dtype, add_contents));
  rows.push_back(binary("sub", broadcast_same_dtype, sub_contents));
  rows.push_back(binary("mul", broadcast_same_dtype, mul_contents));
  rows.push_back(binary("div", broadcast_same_dtype, div_contents));  // integers truncate
  rows.push_back(binary("min", broadcast_same_dtype, min_contents));  // NaN wins
  rows.push_back(binary("max", broadcast_same_dtype, max_contents));
  // "mod" has the divisor's sign (Python), "rem" the dividend's (C's fmod).
  for (std::string_view name : {"mod", "rem", "and", "or", "xor", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"})
    rows.push_back(binary(name));
  rows.push_back(binary("pow", pow_rule));
  rows.push_back(binary("eq", broadcast_to_bool, eq_contents));
  for (std::string_view name : {"lt", "le", "gt", "ge"}) rows.push_back(binary(name, broadcast_to_bool));
  rows.push_back({"select", kPrimitive, 3, 3, 1, 1, {}, broadcast_same_dtype, select_contents});
  // round: "even" (default), "away", "zero", "up", "down"; saturate as ONNX Cast's (default 1).
  rows.push_back({"convert", kPrimitive, 1, 1, 1, 1,
                  {{"to", AttrKind::kDType, true}, {"saturate", AttrKind::kInt}, {"round", AttrKind::kString}},
                  convert_rule, convert_contents});
  return rows;
}

}  // namespace

std::span<const OpDef> elementwise_rows() {
  static const std::vector<OpDef> rows = make_rows();
  return rows;
}

}  // namespace tessera::op
