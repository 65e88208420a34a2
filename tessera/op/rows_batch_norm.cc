// Normalisation by channel, and dropout. N, C: batch and channels.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;
using enum AttrKind;

// x (N, C, ...) and one number per channel in every other input.
Result<std::vector<Type>> per_channel(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return std::vector<Type>{x};
  if (x.rank() < 2) return c.fail("needs rank 2 or more, got {}", x.str());
  for (size_t i = 1; i < c.size(); ++i) {
    const Type& t = c.in(i);
    if (t.dtype != x.dtype)
      return c.fail("types {} and {} differ", name_of(x.dtype), name_of(t.dtype));
    if (!t.ranked()) continue;
    if (t.rank() != 1 ||
        (t.dim(0).is_constant() && x.dim(1).is_constant() && !(t.dim(0) == x.dim(1))))
      return c.fail("input {} is {}, need one number for each of {} channels", i, t.str(),
                    x.dim(1).str());
  }
  return std::vector<Type>{x};
}

Result<std::vector<Type>> lrn_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (x.ranked() && x.rank() < 2) return c.fail("needs rank 2 or more, got {}", x.str());
  if (c.attrs.i("size") < 1 || c.attrs.i("size") > INT32_MAX)
    return c.fail("size is {}", c.attrs.i("size"));
  return std::vector<Type>{x};
}

Result<std::vector<Type>> dropout_rule(const InferContext& c) {
  Type mask = c.in(0);
  mask.dtype = DType::kBool;
  return std::vector<Type>{c.in(0), std::move(mask)};
}

}  // namespace

std::span<const OpDef> batch_norm_rows() {
  static const std::vector<OpDef> rows{
      // batch_norm(x, scale, bias, mean, var) = (x - mean) / sqrt(var + epsilon) * scale + bias
      {"batch_norm", kComposite, 5, 5, 1, 1, {{"epsilon", kFloat}}, per_channel},
      // instance_norm(x, scale, bias): as batch_norm, with the mean and variance of each (n, c)
      {"instance_norm", kComposite, 3, 3, 1, 1, {{"epsilon", kFloat}}, per_channel},
      // lrn(x) = x / (bias + alpha / size * s)^beta, s: the sum of squares over `size` channels
      // around, one more after
      // than before where size is even
      {"lrn",
       kComposite,
       1,
       1,
       1,
       1,
       {{"alpha", kFloat}, {"beta", kFloat}, {"bias", kFloat}, {"size", kInt, true}},
       lrn_rule},
      // dropout(x, ratio?, training?) -> y, mask. Not training: y = x. Else y = x / (1 - ratio)
      // where mask, 0 elsewhere;
      // the mask is u >= ratio for numbers u of numpy's RandomState(seed).random_sample().
      {"dropout", kComposite, 1, 3, 1, 2, {{"seed", kInt}}, dropout_rule},
  };
  return rows;
}

}  // namespace tessera::op
