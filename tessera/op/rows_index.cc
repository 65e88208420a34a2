// Operators whose places are data: gathers and scatters by index, order, cumulation.
#include <algorithm>

#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;

std::vector<Type> only(DType dtype, Shape shape) { return {Type::tensor(dtype, std::move(shape))}; }
std::vector<Type> unranked(DType dtype) { return {Type::unranked(dtype)}; }

Status check_indices(const InferContext& c, size_t i) {
  if (!c.in(i).is_tensor() || !is_int(c.in(i).dtype))
    return c.fail("indices are {}, need integers", c.in(i).str());
  return {};
}

Result<int> axis_of(const InferContext& c, int64_t otherwise) {
  auto axis = normalize_axis(c.attrs.i("axis", otherwise), c.in(0).rank());
  if (!axis) return error(std::move(axis).error().at(c.op));
  return axis;
}

// gather_elements(x, indices; axis): y[.., i, ..] = x[.., indices[.., i, ..], ..], shaped as the
// indices.
Result<std::vector<Type>> gather_elements_rule(const InferContext& c) {
  const Type &x = c.in(0), &indices = c.in(1);
  TRY(check_indices(c, 1));
  if (!indices.ranked()) return unranked(x.dtype);
  if (x.ranked()) {
    if (x.rank() != indices.rank())
      return c.fail("{} and {} have different ranks", x.str(), indices.str());
    TRY(axis_of(c, 0));
  }
  return only(x.dtype, *indices.shape);
}

// gather_nd(x, indices; batch_dims = b): the indices' last axis holds places in the axes of x that
// follow the first b.
Result<std::vector<Type>> gather_nd_rule(const InferContext& c) {
  const Type &x = c.in(0), &indices = c.in(1);
  TRY(check_indices(c, 1));
  if (!x.ranked() || !indices.ranked()) return unranked(x.dtype);
  const int64_t batch = c.attrs.i("batch_dims");
  if (indices.rank() == 0 || batch < 0 || batch >= indices.rank() || batch > x.rank())
    return c.fail("{} batch axes for {} and {}", batch, x.str(), indices.str());
  const auto length = indices.dim(indices.rank() - 1).constant();
  if (!length) return unranked(x.dtype);
  if (*length + batch > x.rank())
    return c.fail("places of {} axes after {} in {}", *length, batch, x.str());
  Shape shape(indices.shape->begin(), indices.shape->end() - 1);
  shape.insert(shape.end(), x.shape->begin() + batch + *length, x.shape->end());
  return only(x.dtype, std::move(shape));
}

// scatter_elements(x, indices, updates; axis, reduction): x with y[.., indices[.., i, ..], ..] =
// updates[.., i, ..]. reduction: none, add, mul, max, min.
Result<std::vector<Type>> scatter_elements_rule(const InferContext& c) {
  const Type &x = c.in(0), &indices = c.in(1), &updates = c.in(2);
  TRY(check_indices(c, 1));
  if (updates.dtype != x.dtype)
    return c.fail("types {} and {} differ", name_of(x.dtype), name_of(updates.dtype));
  if (x.ranked() && indices.ranked()) {
    if (x.rank() != indices.rank())
      return c.fail("{} and {} have different ranks", x.str(), indices.str());
    TRY(axis_of(c, 0));
  }
  return std::vector<Type>{x};
}

// scatter_nd(x, indices, updates; reduction): slices of x at the places that the indices' last axis
// holds.
Result<std::vector<Type>> scatter_nd_rule(const InferContext& c) {
  const Type &x = c.in(0), &indices = c.in(1), &updates = c.in(2);
  TRY(check_indices(c, 1));
  if (updates.dtype != x.dtype)
    return c.fail("types {} and {} differ", name_of(x.dtype), name_of(updates.dtype));
  if (x.ranked() && indices.ranked()) {
    if (indices.rank() == 0) return c.fail("indices are a scalar");
    const auto length = indices.dim(indices.rank() - 1).constant();
    if (length && *length > x.rank()) return c.fail("places of {} axes in {}", *length, x.str());
    if (length && updates.ranked() &&
        updates.rank() != indices.rank() - 1 + x.rank() - static_cast<int>(*length))
      return c.fail("updates {} for indices {} and {}", updates.str(), indices.str(), x.str());
  }
  return std::vector<Type>{x};
}

// non_zero(x): the indices of elements other than zero, one column each, in row-major order.
Result<std::vector<Type>> non_zero_rule(const InferContext& c) {
  const Type& x = c.in(0);
  return only(DType::kI64, {x.ranked() ? Expr(x.rank()) : c.fresh(), c.fresh()});
}

// top_k(x, k; axis, largest, sorted) -> (values, indices): equal elements by rising index; NaN
// counts as the largest.
Result<std::vector<Type>> top_k_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return std::vector<Type>{Type::unranked(x.dtype), Type::unranked(DType::kI64)};
  TRY_ASSIGN(int axis, axis_of(c, -1));
  const Contents* k = c.content(1);
  if (k && k->size() != 1) return c.fail("k has {} elements, need 1", k->size());
  Shape shape = *x.shape;
  Expr& d = shape[static_cast<size_t>(axis)];
  if (k && (*k)[0].is_constant() &&
      (*(*k)[0].constant() < 0 || (d.is_constant() && *(*k)[0].constant() > *d.constant())))
    return c.fail("k is {}, axis {} of {} has {}", (*k)[0].str(), axis, x.str(), d.str());
  d = k ? (*k)[0] : c.fresh();
  return std::vector<Type>{Type::tensor(x.dtype, shape), Type::tensor(DType::kI64, shape)};
}

// argmax, argmin(x; axis, keepdims, select_last): index of the extreme; of equal ones the first (or
// last). NaN wins.
Result<std::vector<Type>> arg_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return unranked(DType::kI64);
  TRY_ASSIGN(int axis, axis_of(c, 0));
  Shape shape = *x.shape;
  if (shape[static_cast<size_t>(axis)].constant() == 0)
    return c.fail("axis {} of {} is empty", axis, x.str());
  if (c.attrs.i("keepdims", 1))
    shape[static_cast<size_t>(axis)] = Expr(1);
  else
    shape.erase(shape.begin() + axis);
  return only(DType::kI64, std::move(shape));
}

// unique(x; axis, sorted) -> (values, first index, inverse, counts); without axis, of the flat
// elements.
Result<std::vector<Type>> unique_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const Expr n = c.fresh();
  Type values = Type::tensor(x.dtype, {n});
  Expr whole = x.ranked() ? element_count(*x.shape) : c.fresh();
  if (c.attrs.has("axis")) {
    values = x;
    if (x.ranked()) {
      TRY_ASSIGN(int axis, axis_of(c, 0));
      whole = x.dim(axis);
      (*values.shape)[static_cast<size_t>(axis)] = n;
    }
  }
  return std::vector<Type>{values, Type::tensor(DType::kI64, {n}),
                           Type::tensor(DType::kI64, {whole}), Type::tensor(DType::kI64, {n})};
}

// tile(x, repeats)
Result<std::vector<Type>> tile_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return unranked(x.dtype);
  const Contents* repeats = c.content(1);
  if (!repeats) return only(x.dtype, c.fresh_shape(static_cast<size_t>(x.rank())));
  if (repeats->size() != x.shape->size())
    return c.fail("{} repeats for {}", repeats->size(), x.str());
  Shape shape;
  for (int a = 0; a < x.rank(); ++a) {
    const Expr& r = (*repeats)[static_cast<size_t>(a)];
    if (r.is_constant() && *r.constant() < 0)
      return c.fail("axis {} is repeated {} times", a, *r.constant());
    shape.push_back(x.dim(a) * r);
  }
  return only(x.dtype, std::move(shape));
}

Result<std::vector<Type>> bit_cast_rule(const InferContext& c) {
  Type t = c.in(0);
  const DType to = c.attrs.dtype("to");
  if (!t.is_tensor() || t.dtype == DType::kString || bits_of(t.dtype) != bits_of(to))
    return c.fail("{} has not the width of {}", t.str(), name_of(to));
  t.dtype = to;
  return std::vector<Type>{t};
}

constexpr AttrDef kAxis{"axis", AttrKind::kInt}, kReduction{"reduction", AttrKind::kString};

}  // namespace

std::span<const OpDef> index_rows() {
  static const std::vector<AttrDef> arg_attrs{
      kAxis, {"keepdims", AttrKind::kInt}, {"select_last", AttrKind::kInt}};
  static const std::vector<OpDef> rows{
      {"gather_elements", kPrimitive, 2, 2, 1, 1, {kAxis}, gather_elements_rule},
      {"gather_nd", kPrimitive, 2, 2, 1, 1, {{"batch_dims", AttrKind::kInt}}, gather_nd_rule},
      {"scatter_elements", kPrimitive, 3, 3, 1, 1, {kAxis, kReduction}, scatter_elements_rule},
      {"scatter_nd", kPrimitive, 3, 3, 1, 1, {kReduction}, scatter_nd_rule},
      {"non_zero", kHost, 1, 1, 1, 1, {}, non_zero_rule},
      {"unique", kHost, 1, 1, 1, 4, {kAxis, {"sorted", AttrKind::kInt}}, unique_rule},
      {"top_k",
       kPrimitive,
       2,
       2,
       1,
       2,
       {kAxis, {"largest", AttrKind::kInt}, {"sorted", AttrKind::kInt}},
       top_k_rule},
      {"argmax", kPrimitive, 1, 1, 1, 1, arg_attrs, arg_rule},
      {"argmin", kPrimitive, 1, 1, 1, 1, arg_attrs, arg_rule},
      // cumulative(x, axis; kind sum or prod, exclusive, reverse)
      {"cumulative",
       kPrimitive,
       2,
       2,
       1,
       1,
       {{"kind", AttrKind::kString, true},
        {"exclusive", AttrKind::kInt},
        {"reverse", AttrKind::kInt}},
       same_as_input},
      {"tile", kComposite, 2, 2, 1, 1, {}, tile_rule},
      {"bit_cast", kPrimitive, 1, 1, 1, 1, {{"to", AttrKind::kDType, true}}, bit_cast_rule},
  };
  return rows;
}

}  // namespace tessera::op
