// Composites that go between numbers and their quantised form.
#include "tessera/op/rules.h"
#include "tessera/op/window.h"

namespace tessera::op {
namespace {

using enum OpClass;

// How many elements share a scale is told by the scale's shape: one element for all; one per index
// of `axis` (rank 1); one per block of `block` along `axis` (as many axes as x).
Status check_scale(const InferContext& c, size_t i) {
  if (!c.has(i)) return {};
  const Type &x = c.in(0), &scale = c.in(i);
  if (!scale.is_tensor()) return c.fail("input {} is {}, need a tensor", i, scale.str());
  if (!scale.ranked() || !x.ranked() || scale.rank() == 0) return {};
  if (element_count(*scale.shape).constant() == 1) return {};
  auto axis = normalize_axis(x.rank() == 1 ? 0 : c.attrs.i("axis", 1), x.rank());
  if (!axis) return error(std::move(axis).error().at(c.op));
  const int64_t block = c.attrs.i("block");
  if (block < 0) return c.fail("block_size is {}", block);
  if (block == 0) {
    const Expr& size = scale.dim(0);
    if (scale.rank() != 1) return c.fail("{} for input {} needs a block_size", scale.str(), i);
    if (size.is_constant() && x.dim(*axis).is_constant() && !(size == x.dim(*axis)))
      return c.fail("input {} has {} elements for axis {} of size {}", i, size.str(), *axis,
                    x.dim(*axis).str());
    return {};
  }
  if (scale.rank() != x.rank())
    return c.fail("input {} is {}, need rank {}", i, scale.str(), x.rank());
  for (int a = 0; a < x.rank(); ++a) {
    const Expr want = a == *axis ? ceil_div(x.dim(a), Expr(block)) : x.dim(a);
    if (want.is_constant() && scale.dim(a).is_constant() && !(want == scale.dim(a)))
      return c.fail("dim {} of input {} is {}, need {} ({} in blocks of {} along axis {})", a, i,
                    scale.dim(a).str(), want.str(), x.str(), block, *axis);
  }
  return {};
}

Result<std::vector<Type>> convert_rule(const InferContext& c) {
  Type t = c.in(0);
  if (!t.is_tensor()) return c.fail("needs a tensor, got {}", t.str());
  TRY(check_scale(c, 1));
  TRY(check_scale(c, 2));
  t.dtype = c.attrs.dtype("to");
  return std::vector<Type>{t};
}

// quantize(x, scale, zero_point?){to, axis, block, saturate, precision}: round(x / scale) +
// zero_point, limited to what `to` holds (8-bit floats: only if saturate). The division is rounded
// to `precision`, the scale's type by default.
Result<std::vector<Type>> quantize_rule(const InferContext& c) {
  if (c.has(2) && c.in(2).is_tensor() && c.in(2).dtype != c.attrs.dtype("to"))
    return c.fail("the zero point is {}, the output {}", name_of(c.in(2).dtype),
                  name_of(c.attrs.dtype("to")));
  const DType precision = c.attrs.dtype("precision", c.in(1).dtype), to = c.attrs.dtype("to");
  if (precision != DType::kF16 && precision != DType::kBF16 && precision != DType::kF32 &&
      precision != DType::kF64)
    return c.fail("cannot divide in {}", name_of(precision));
  if ((!is_int(to) && !is_float(to)) || bits_of(to) > 16)
    return c.fail("cannot quantise to {}", name_of(to));
  return convert_rule(c);
}

// dequantize(x, scale, zero_point?){to, axis, block}: (x - zero_point) * scale
Result<std::vector<Type>> dequantize_rule(const InferContext& c) {
  if (c.has(2) && c.in(2).is_tensor() && c.in(0).is_tensor() && c.in(2).dtype != c.in(0).dtype)
    return c.fail("the zero point is {}, the input {}", name_of(c.in(2).dtype),
                  name_of(c.in(0).dtype));
  return convert_rule(c);
}

// dot_integer(a, b, a_zero?, b_zero?): (a - a_zero) @ (b - b_zero) in i32. A zero point is one
// element, or one for each row of a (column of b): rank 1, or a's (b's) rank with size 1 along the
// inner axis.
Result<std::vector<Type>> dot_integer_rule(const InferContext& c) {
  static const OpDef* dot = find("dot");
  Attrs attrs{{"accumulate", DType::kI32}};
  const InferContext inner{c.op, attrs, c.inputs.subspan(0, 2), {}, {}, {}, c.fresh};
  return dot->infer(inner);
}

// conv_integer(x, w, x_zero?, w_zero?, bias?): the convolution of x - x_zero and w - w_zero in i32,
// padded with x_zero. x_zero is one element, w_zero is one or one for each of w's (M, ...), the
// bias is i32 (M).
Result<std::vector<Type>> conv_integer_rule(const InferContext& c) {
  static const OpDef* conv = find("conv");
  Type x = c.in(0), w = c.in(1);
  for (const Type* t : {&x, &w})
    if (!t->is_tensor() || !is_int(t->dtype) || bits_of(t->dtype) != 8)
      return c.fail("is defined for i8 and u8, got {}", t->str());
  for (size_t i : {2, 3}) {
    if (!c.has(i)) continue;
    const Type& zero = c.in(i);
    if (!zero.is_tensor() || zero.dtype != c.in(i - 2).dtype)
      return c.fail("zero point {} is {}, need {}", i, zero.str(), name_of(c.in(i - 2).dtype));
    if (!zero.is_static() || element_count(zero.dims()) == 1) continue;
    if (i == 2 || zero.rank() != 1 ||
        (w.ranked() && w.dim(0).is_constant() && !(zero.dim(0) == w.dim(0))))
      return c.fail("zero point {} is {}, need one element{}", i, zero.str(),
                    i == 2 ? "" : " or one for each channel");
  }
  x.dtype = w.dtype = DType::kI32;
  const std::vector<const Type*> inputs{&x, &w, c.has(4) ? &c.in(4) : nullptr};
  return conv->infer({c.op, c.attrs, inputs, {}, {}, {}, c.fresh});
}

Flops conv_integer_flops(const Attrs& attrs, std::span<const Type* const> in,
                         std::span<const Type> out) {
  return find("conv")->flops(attrs, in, out);
}

Flops dot_integer_flops(const Attrs& attrs, std::span<const Type* const> in,
                        std::span<const Type> out) {
  return find("dot")->flops(attrs, in, out);
}

}  // namespace

std::span<const OpDef> quantize_rows() {
  static const std::vector<OpDef> rows{
      {"quantize",
       kComposite,
       2,
       3,
       1,
       1,
       {{"to", AttrKind::kDType, true},
        {"axis", AttrKind::kInt},
        {"block", AttrKind::kInt},
        {"saturate", AttrKind::kInt},
        {"precision", AttrKind::kDType}},
       quantize_rule},
      {"dequantize",
       kComposite,
       2,
       3,
       1,
       1,
       {{"to", AttrKind::kDType, true}, {"axis", AttrKind::kInt}, {"block", AttrKind::kInt}},
       dequantize_rule},
      {"dot_integer", kComposite, 2, 4, 1, 1, {}, dot_integer_rule, nullptr, dot_integer_flops},
      {"conv_integer", kComposite, 2, 5, 1, 1, window_attrs({{"groups", AttrKind::kInt}}),
       conv_integer_rule, nullptr, conv_integer_flops},
  };
  return rows;
}

}  // namespace tessera::op
