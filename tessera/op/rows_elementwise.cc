// Element-wise primitives, with numpy broadcasting.
#include <array>

#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;

OpDef unary(std::string_view name, InferFn infer = same_as_input, ContentsFn contents = nullptr) {
  return {name, kPrimitive, 1, 1, 1, 1, {}, infer, contents};
}
OpDef binary(std::string_view name, InferFn infer = broadcast_same_dtype,
             ContentsFn contents = nullptr) {
  return {name, kPrimitive, 2, 2, 1, 1, {}, infer, contents};
}

using Operands = std::span<const Expr>;

template <ElementFn fn>
std::optional<Contents> contents(const InferContext& c, const Type& output) {
  return elementwise_contents(c, output, fn);
}

Expr truth(bool b) { return Expr(int64_t{b}); }

std::optional<Expr> add_element(Operands x) { return x[0] + x[1]; }
std::optional<Expr> sub_element(Operands x) { return x[0] - x[1]; }
std::optional<Expr> mul_element(Operands x) { return x[0] * x[1]; }
std::optional<Expr> neg_element(Operands x) { return Expr(0) - x[0]; }
std::optional<Expr> min_element(Operands x) { return min(x[0], x[1]); }
std::optional<Expr> max_element(Operands x) { return max(x[0], x[1]); }
std::optional<Expr> same_element(Operands x) { return x[0]; }
std::optional<Expr> abs_element(Operands x) {
  if (non_negative(x[0])) return x[0];
  return non_negative(Expr(0) - x[0]) ? std::optional(Expr(0) - x[0]) : std::nullopt;
}
// Integer division truncates: it is floor_div where neither side is negative.
std::optional<Expr> div_element(Operands x) {
  const auto a = x[0].constant(), b = x[1].constant();
  if (b == 0) return std::nullopt;
  if (a && b && *b != -1) return Expr(*a / *b);
  if (b && *b > 0 && non_negative(x[0])) return floor_div(x[0], x[1]);
  return exact_quotient(x[0], x[1]);
}
// Of floats, only quotients that are whole.
std::optional<Contents> div_contents(const InferContext& c, const Type& output) {
  if (is_float(output.dtype))
    return elementwise_contents(c, output, [](Operands x) {
      return x[1].constant() == 0 ? std::nullopt : exact_quotient(x[0], x[1]);
    });
  return elementwise_contents(c, output, div_element);
}
// Python's: a positive divisor is all that mod() needs.
std::optional<Expr> mod_element(Operands x) {
  return x[1].is_constant() && *x[1].constant() > 0 ? std::optional(mod(x[0], x[1])) : std::nullopt;
}
std::optional<Expr> rem_element(Operands x) {
  return non_negative(x[0]) ? mod_element(x) : std::nullopt;
}
std::optional<Expr> eq_element(Operands x) {
  if (x[0] == x[1]) return truth(true);
  if (non_negative(x[0] - x[1] - Expr(1)) || non_negative(x[1] - x[0] - Expr(1)))
    return truth(false);
  return std::nullopt;
}
std::optional<Expr> lt_element(Operands x) {
  if (non_negative(x[1] - x[0] - Expr(1))) return truth(true);
  return non_negative(x[0] - x[1]) ? std::optional(truth(false)) : std::nullopt;
}
std::optional<Expr> le_element(Operands x) {
  if (non_negative(x[1] - x[0])) return truth(true);
  return non_negative(x[0] - x[1] - Expr(1)) ? std::optional(truth(false)) : std::nullopt;
}
std::optional<Expr> gt_element(Operands x) { return lt_element(std::array{x[1], x[0]}); }
std::optional<Expr> ge_element(Operands x) { return le_element(std::array{x[1], x[0]}); }
std::optional<Expr> not_element(Operands x) {
  return x[0].is_constant() ? std::optional(truth(*x[0].constant() == 0)) : std::nullopt;
}
std::optional<Expr> and_element(Operands x) {
  if (x[0].constant() == 0 || x[1].constant() == 0) return truth(false);
  return x[0].is_constant() && x[1].is_constant() ? std::optional(truth(true)) : std::nullopt;
}
std::optional<Expr> or_element(Operands x) {
  if (!x[0].is_constant() || !x[1].is_constant()) return std::nullopt;
  return truth(*x[0].constant() != 0 || *x[1].constant() != 0);
}
std::optional<Expr> select_element(Operands x) {
  if (x[1] == x[2]) return x[1];
  if (!x[0].is_constant()) return std::nullopt;
  return *x[0].constant() ? x[1] : x[2];
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
// Numbers that fit are kept, in floats too: sizes are often scaled as floats and brought back.
std::optional<Contents> convert_contents(const InferContext& c, const Type& output) {
  const Contents* known = c.content(0);
  if (!known) return std::nullopt;
  switch (output.dtype) {
    case DType::kI64:
    case DType::kI32:
    case DType::kF64:
    case DType::kF32:
      return *known;
    case DType::kBool:
      return elementwise_contents(c, output, [](std::span<const Expr> x) -> std::optional<Expr> {
        return x[0].is_constant() ? std::optional(Expr(int64_t{*x[0].constant() != 0}))
                                  : std::nullopt;
      });
    default:
      return std::nullopt;
  }
}

std::vector<OpDef> make_rows() {
  std::vector<OpDef> rows;
  for (std::string_view name :
       {"sign", "trunc", "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "bit_not"})
    rows.push_back(unary(name));
  rows.push_back(unary("neg", same_as_input, contents<neg_element>));
  rows.push_back(unary("abs", same_as_input, contents<abs_element>));
  for (std::string_view name : {"floor", "ceil", "round"})
    rows.push_back(unary(name, same_as_input, contents<same_element>));
  rows.push_back(unary("not", same_as_input, contents<not_element>));
  rows.push_back(unary("is_nan", to_bool));
  rows.push_back({"is_inf",
                  kPrimitive,
                  1,
                  1,
                  1,
                  1,
                  {{"positive", AttrKind::kInt}, {"negative", AttrKind::kInt}},
                  to_bool});
  rows.push_back(binary("add", broadcast_same_dtype, contents<add_element>));
  rows.push_back(binary("sub", broadcast_same_dtype, contents<sub_element>));
  rows.push_back(binary("mul", broadcast_same_dtype, contents<mul_element>));
  rows.push_back(binary("div", broadcast_same_dtype, div_contents));           // integers truncate
  rows.push_back(binary("min", broadcast_same_dtype, contents<min_element>));  // NaN wins
  rows.push_back(binary("max", broadcast_same_dtype, contents<max_element>));
  // "mod" has the divisor's sign (Python), "rem" the dividend's (C's fmod).
  rows.push_back(binary("mod", broadcast_same_dtype, contents<mod_element>));
  rows.push_back(binary("rem", broadcast_same_dtype, contents<rem_element>));
  rows.push_back(binary("and", broadcast_same_dtype, contents<and_element>));
  rows.push_back(binary("or", broadcast_same_dtype, contents<or_element>));
  for (std::string_view name : {"xor", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"})
    rows.push_back(binary(name));
  rows.push_back(binary("pow", pow_rule));
  rows.push_back(binary("eq", broadcast_to_bool, contents<eq_element>));
  rows.push_back(binary("lt", broadcast_to_bool, contents<lt_element>));
  rows.push_back(binary("le", broadcast_to_bool, contents<le_element>));
  rows.push_back(binary("gt", broadcast_to_bool, contents<gt_element>));
  rows.push_back(binary("ge", broadcast_to_bool, contents<ge_element>));
  rows.push_back(
      {"select", kPrimitive, 3, 3, 1, 1, {}, broadcast_same_dtype, contents<select_element>});
  rows.push_back(
      {"convert",
       kPrimitive,
       1,
       1,
       1,
       1,
       {{"to", AttrKind::kDType, true}, {"saturate", AttrKind::kInt}, {"round", AttrKind::kString}},
       convert_rule,
       convert_contents});
  return rows;
}

}  // namespace

std::span<const OpDef> elementwise_rows() {
  static const std::vector<OpDef> rows = make_rows();
  return rows;
}

}  // namespace tessera::op
