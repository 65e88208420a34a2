// Normalisations: composites that the kernels claim whole. Statistics are computed in the wider of
// the input's type and `stash`; narrow floats at least in f32.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum AttrKind;

Status check_axis(const InferContext& c) {
  if (!c.in(0).is_tensor() || !is_float(c.in(0).dtype))
    return error(Code::kInvalidArgument, "{}: needs a tensor of floats, got {}", c.op,
                 c.in(0).str());
  if (!c.in(0).ranked()) return {};
  auto axis = normalize_axis(c.attrs.i("axis", -1), c.in(0).rank());
  return axis ? Status() : error(std::move(axis).error().at(c.op));
}

// layer_norm(x, scale?, bias?) -> (y, mean, inverse standard deviation): over all axes from `axis`
// on; the statistics keep them as 1 and have type `stash`.
Result<std::vector<Type>> layer_norm_rule(const InferContext& c) {
  TRY(check_axis(c));
  const Type& x = c.in(0);
  Type statistic = Type::unranked(c.attrs.dtype("stash", DType::kF32));
  if (x.ranked()) {
    TRY_ASSIGN(const int axis, normalize_axis(c.attrs.i("axis", -1), x.rank()));
    statistic.shape = Shape(x.shape->begin(), x.shape->begin() + axis);
    statistic.shape->resize(x.shape->size(), Expr(1));
  }
  return std::vector<Type>{x, statistic, statistic};
}

// rms_norm(x, scale): x / sqrt(mean(x^2) + epsilon) * scale, over all axes from `axis` on; typed as
// scale.
Result<std::vector<Type>> rms_norm_rule(const InferContext& c) {
  TRY(check_axis(c));
  Type y = c.in(0);
  y.dtype = c.in(1).dtype;
  return std::vector<Type>{y};
}

// group_norm(x, scale, bias): x is (N, C, ...), scale and bias (C); over each of `groups` groups of
// channels.
Result<std::vector<Type>> group_norm_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor() || !is_float(x.dtype))
    return c.fail("needs a tensor of floats, got {}", x.str());
  const int64_t groups = c.attrs.i("groups");
  if (groups < 1) return c.fail("groups is {}, need 1 or more", groups);
  if (!x.ranked()) return std::vector<Type>{x};
  if (x.rank() < 2) return c.fail("needs rank 2 or more, got {}", x.str());
  if (const auto channels = x.dim(1).constant(); channels && *channels % groups != 0)
    return c.fail("{} channels do not divide into {} groups", *channels, groups);
  return std::vector<Type>{x};
}

}  // namespace

std::span<const OpDef> norm_rows() {
  static const std::vector<OpDef> rows{
      {"layer_norm",
       OpClass::kComposite,
       1,
       3,
       1,
       3,
       {{"axis", kInt}, {"epsilon", kFloat}, {"stash", kDType}},
       layer_norm_rule},
      {"rms_norm",
       OpClass::kComposite,
       2,
       2,
       1,
       1,
       {{"axis", kInt}, {"epsilon", kFloat}, {"stash", kDType}},
       rms_norm_rule},
      {"group_norm",
       OpClass::kComposite,
       3,
       3,
       1,
       1,
       {{"groups", kInt, true}, {"epsilon", kFloat}, {"stash", kDType}},
       group_norm_rule},
  };
  return rows;
}

}  // namespace tessera::op
