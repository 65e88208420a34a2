// dot: the contraction that convolution, matrix products and attention come down to.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

// dot(a, b): a is (batch..., M, K), b is (batch..., K, N), batches broadcast: (batch..., M, N). A
// rank-1 side is a row (a) or a column (b) whose axis is dropped from the result. transpose_a,
// transpose_b: the last two axes of that side, of rank 2 or more, are stored the other way round.
// `accumulate`: dtype of the result, if not the inputs'. `compute`: what inputs of f32 may be
// rounded to before they are multiplied; with `compute_forced` they are, wherever a kernel can.
Result<std::vector<Type>> dot_rule(const InferContext& c) {
  const Type &a = c.in(0), &b = c.in(1);
  const DType dtype = c.attrs.dtype("accumulate", a.dtype);
  if (!a.is_tensor() || !b.is_tensor()) return c.fail("needs tensors");
  if (a.dtype != b.dtype && !c.attrs.has("accumulate"))
    return c.fail("types {} and {} differ", name_of(a.dtype), name_of(b.dtype));
  if (!a.ranked() || !b.ranked()) return std::vector<Type>{Type::unranked(dtype)};
  if (a.rank() == 0 || b.rank() == 0)
    return c.fail("needs rank 1 or more, got {} and {}", a.str(), b.str());
  const bool ta = c.attrs.i("transpose_a") != 0, tb = c.attrs.i("transpose_b") != 0;
  if ((ta && a.rank() < 2) || (tb && b.rank() < 2))
    return c.fail("cannot transpose {} and {}", a.str(), b.str());
  const Expr k_a = a.dim(a.rank() - (ta ? 2 : 1)),
             k_b = b.dim(b.rank() == 1 ? 0 : b.rank() - (tb ? 1 : 2));
  if (k_a.is_constant() && k_b.is_constant() && !(k_a == k_b))
    return c.fail("inner sizes differ: {} of {} and {} of {}", k_a.str(), a.str(), k_b.str(),
                  b.str());
  const Shape batch_a(a.shape->begin(), a.shape->end() - std::min(a.rank(), 2));
  const Shape batch_b(b.shape->begin(), b.shape->end() - std::min(b.rank(), 2));
  TRY_ASSIGN(Shape shape, broadcast_shapes(batch_a, batch_b));
  if (a.rank() > 1) shape.push_back(a.dim(a.rank() - (ta ? 1 : 2)));
  if (b.rank() > 1) shape.push_back(b.dim(b.rank() - (tb ? 2 : 1)));
  return std::vector<Type>{Type::tensor(dtype, std::move(shape))};
}

Flops dot_flops(const Attrs& attrs, std::span<const Type* const> in, std::span<const Type> out) {
  const Dims a = in[0]->dims();
  const int64_t k = a.empty() ? 1 : attrs.i("transpose_a") ? a[a.size() - 2] : a.back();
  return Flops(2 * element_count(out[0].dims()).value_or(0) * k);
}

// det(x): determinants of the matrices in the last two axes.
Result<std::vector<Type>> det_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!is_float(x.dtype)) return c.fail("needs floats, got {}", x.str());
  if (!x.ranked()) return std::vector<Type>{x};
  if (x.rank() < 2) return c.fail("needs matrices, got {}", x.str());
  const Expr rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1);
  if (rows.is_constant() && columns.is_constant() && !(rows == columns))
    return c.fail("needs square matrices, got {}", x.str());
  return std::vector<Type>{Type::tensor(x.dtype, Shape(x.shape->begin(), x.shape->end() - 2))};
}

}  // namespace

std::span<const OpDef> dot_rows() {
  static const std::vector<OpDef> rows{
      {"dot",
       OpClass::kPrimitive,
       2,
       2,
       1,
       1,
       {{"accumulate", AttrKind::kDType},
        {"compute", AttrKind::kDType},
        {"compute_forced", AttrKind::kInt},
        {"transpose_a", AttrKind::kInt},
        {"transpose_b", AttrKind::kInt}},
       dot_rule,
       nullptr,
       dot_flops},
      {"det", OpClass::kHost, 1, 1, 1, 1, {}, det_rule},
  };
  return rows;
}

}  // namespace tessera::op
