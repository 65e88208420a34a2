// Primitives that pick or join elements: slice, concat, pad, gather, range.
#include <algorithm>
#include <cmath>

#include "tessera/op/index.h"
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;

std::vector<Type> only(DType dtype, Shape shape) { return {Type::tensor(dtype, std::move(shape))}; }
std::vector<Type> unranked(const Type& x) { return {Type::unranked(x.dtype)}; }
Shape fresh_like(const InferContext& c, const Type& x) {
  return c.fresh_shape(static_cast<size_t>(x.rank()));
}

// ---- slice ----

// A bound as an index from the front, before it is clamped; bounds at the ends of the integers mean
// the ends of the axis. nullopt: its sign is not known.
std::optional<Expr> from_front(const Expr& bound, const Expr& size) {
  constexpr int64_t kFar = INT32_MAX;
  const bool small = !size.is_constant() || *size.constant() <= kFar;
  if (small && bound.is_constant() && *bound.constant() >= kFar) return size;
  if (small && bound.is_constant() && *bound.constant() <= -kFar) return Expr(-1);
  if (non_negative(bound)) return bound;
  if (non_negative(Expr(-1) - bound)) return size + bound;
  return std::nullopt;
}

Expr clamp(const Expr& e, const Expr& low, const Expr& high) {
  const Expr raised = max(e, low);
  return non_negative(high - e) ? raised : min(raised, high);
}

// The count of indices start, start + step, ... before `end`, clamped as Python clamps.
std::optional<Expr> slice_count(const Expr& size, const Expr& start, const Expr& end,
                                int64_t step) {
  const auto first = from_front(start, size), last = from_front(end, size);
  if (!first || !last) return std::nullopt;
  const Expr low = step > 0 ? Expr(0) : Expr(-1), high = step > 0 ? size : size - Expr(1);
  const Expr way = step > 0 ? Expr(1) : Expr(-1);
  if (non_negative(way * (*first - *last))) return Expr(0);
  const Expr length = way * (clamp(*last, low, high) - clamp(*first, low, high));
  // Clamping keeps the order, so an ordered pair has no negative length; nor has what starts or
  // ends at an end.
  const bool ordered = non_negative(way * (*last - *first)) ||
                       clamp(*first, low, high) == (step > 0 ? low : high) ||
                       clamp(*last, low, high) == (step > 0 ? high : low);
  return ceil_div(ordered ? length : max(length, 0), Expr(std::abs(step)));
}

struct SliceAxes {
  std::vector<int> axes;
  Ints steps;
};

// Axes and steps, where known; axes default to the first ones, steps to 1.
Result<std::optional<SliceAxes>> slice_axes(const InferContext& c, size_t count) {
  SliceAxes result;
  if (c.has(3)) {
    const auto given = c.ints(3);
    if (!given) return std::optional<SliceAxes>();
    std::vector<bool> seen(static_cast<size_t>(c.in(0).rank()));
    for (int64_t axis : *given) {
      auto at = normalize_axis(axis, c.in(0).rank());
      if (!at) return error(std::move(at).error().at(c.op));
      if (seen[static_cast<size_t>(*at)]) return c.fail("axis {} is given twice", *at);
      seen[static_cast<size_t>(*at)] = true;
      result.axes.push_back(*at);
    }
  } else {
    for (size_t i = 0; i < count; ++i) result.axes.push_back(static_cast<int>(i));
  }
  result.steps = Ints(count, 1);
  if (c.has(4)) {
    const auto given = c.ints(4);
    if (!given) return std::optional<SliceAxes>();
    result.steps = *given;
  }
  if (result.axes.size() != count || result.steps.size() != count ||
      count > static_cast<size_t>(c.in(0).rank()))
    return c.fail("{} starts, {} axes and {} steps for rank {}", count, result.axes.size(),
                  result.steps.size(), c.in(0).rank());
  for (int64_t step : result.steps)
    if (step == 0 || step == INT64_MIN) return c.fail("a step is {}", step);
  return std::optional(std::move(result));
}

// slice(x, starts, ends, axes?, steps?): as Python's x[start:end:step].
Result<std::vector<Type>> slice_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor()) return c.fail("needs a tensor, got {}", x.str());
  if (!x.ranked()) return unranked(x);
  const Contents *starts = c.content(1), *ends = c.content(2);
  size_t count = starts ? starts->size() : ends ? ends->size() : 0;
  if (starts && ends && starts->size() != ends->size())
    return c.fail("{} starts and {} ends", starts->size(), ends->size());
  if (!starts && !ends) {
    if (!c.in(1).is_static()) return only(x.dtype, fresh_like(c, x));
    count = static_cast<size_t>(element_count(c.in(1).dims()).value_or(0));
  }
  TRY_ASSIGN(auto known, slice_axes(c, count));
  if (!known) return only(x.dtype, fresh_like(c, x));
  Shape shape = *x.shape;
  for (size_t i = 0; i < count; ++i) {
    Expr& d = shape[static_cast<size_t>(known->axes[i])];
    const auto size =
        starts && ends ? slice_count(d, (*starts)[i], (*ends)[i], known->steps[i]) : std::nullopt;
    d = size ? *size : c.fresh();
  }
  return only(x.dtype, std::move(shape));
}

std::optional<Contents> slice_contents(const InferContext& c, const Type& output) {
  const auto starts = c.ints(1);
  if (!c.content(0) || !starts || !c.in(0).is_static() || !output.is_static()) return std::nullopt;
  const auto known = slice_axes(c, starts->size());
  if (!known || !*known) return std::nullopt;
  const Dims dims = c.in(0).dims();
  Dims strides = strides_of(dims);
  int64_t base = 0;
  for (size_t i = 0; i < starts->size(); ++i) {
    const size_t axis = static_cast<size_t>((*known)->axes[i]);
    const int64_t step = (*known)->steps[i],
                  start = (*starts)[i] < 0 ? (*starts)[i] + dims[axis] : (*starts)[i];
    base += strides[axis] * std::clamp<int64_t>(start, 0, step > 0 ? dims[axis] : dims[axis] - 1);
    strides[axis] *= step;
  }
  Contents result;
  for (Index at(output.dims()); !at.done(); at.next())
    result.push_back((*c.content(0))[static_cast<size_t>(base + at.dot(strides))]);
  return result;
}

// ---- concat ----

// concat(x..., axis)
Result<std::vector<Type>> concat_rule(const InferContext& c) {
  if (c.size() == 0 || !c.has(0)) return c.fail("needs at least one input");
  Shape shape;
  int axis = 0;
  const Type& first = c.in(0);
  for (size_t i = 0; i < c.size(); ++i) {
    if (!c.has(i) || !c.in(i).is_tensor()) return c.fail("input {} is not a tensor", i);
    if (c.in(i).dtype != first.dtype)
      return c.fail("types {} and {} differ", name_of(first.dtype), name_of(c.in(i).dtype));
  }
  const auto ranked =
      std::find_if(c.inputs.begin(), c.inputs.end(), [](const Type* t) { return t->ranked(); });
  if (ranked == c.inputs.end()) return unranked(first);
  shape = *(*ranked)->shape;
  auto normal = normalize_axis(c.attrs.i("axis"), (*ranked)->rank());
  if (!normal) return error(std::move(normal).error().at(c.op));
  axis = *normal;
  Expr& joined = shape[static_cast<size_t>(axis)];
  joined = Expr(0);
  bool known = true;
  for (const Type* x : c.inputs) {
    if (!x->ranked()) {
      known = false;
      continue;
    }
    if (x->rank() != static_cast<int>(shape.size()))
      return c.fail("{} and {} have different ranks", first.str(), x->str());
    for (int a = 0; a < x->rank(); ++a) {
      Expr& d = shape[static_cast<size_t>(a)];
      if (a == axis) {
        d = d + x->dim(a);
      } else if (!d.is_constant()) {
        d = x->dim(a).is_constant() ? x->dim(a) : d;
      } else if (x->dim(a).is_constant() && !(d == x->dim(a))) {
        return c.fail("axis {} is {} and {}", a, d.str(), x->dim(a).str());
      }
    }
  }
  if (!known) joined = c.fresh();
  return only(first.dtype, std::move(shape));
}

std::optional<Contents> concat_contents(const InferContext& c, const Type& output) {
  if (!output.is_static()) return std::nullopt;
  const Dims dims = output.dims();
  auto axis = normalize_axis(c.attrs.i("axis"), output.rank());
  const auto count = element_count(dims);
  if (!axis || !count || *count > static_cast<int64_t>(kMaxContents)) return std::nullopt;
  Contents result(static_cast<size_t>(*count));
  const Dims strides = strides_of(dims);
  int64_t base = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    if (!c.content(i) || !c.in(i).is_static()) return std::nullopt;
    const Dims own = c.in(i).dims();
    for (Index at(own); !at.done(); at.next())
      result[static_cast<size_t>(base + at.dot(strides))] =
          (*c.content(i))[static_cast<size_t>(at.linear())];
    base += own[static_cast<size_t>(*axis)] * strides[static_cast<size_t>(*axis)];
  }
  return result;
}

// ---- pad ----

// pad(x, pads, value?, axes?): pads are all begins, then all ends, of the axes (all of them by
// default); negative ones crop. mode: constant, reflect, edge, wrap.
Result<std::vector<Type>> pad_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return unranked(x);
  const Contents* pads = c.content(1);
  Ints axes;
  if (c.has(3)) {
    const auto given = c.ints(3);
    if (!given) return only(x.dtype, fresh_like(c, x));
    axes = *given;
  } else {
    for (int a = 0; a < x.rank(); ++a) axes.push_back(a);
  }
  if (pads && pads->size() != 2 * axes.size())
    return c.fail("{} pads for {} axes", pads->size(), axes.size());
  Shape shape = *x.shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    auto at = normalize_axis(axes[i], x.rank());
    if (!at) return error(std::move(at).error().at(c.op));
    Expr& d = shape[static_cast<size_t>(*at)];
    d = pads ? d + (*pads)[i] + (*pads)[axes.size() + i] : c.fresh();
    if (d.is_constant() && *d.constant() < 0)
      return c.fail("axis {} of {} is cropped to {}", *at, x.str(), *d.constant());
  }
  return only(x.dtype, std::move(shape));
}

// ---- gather ----

// gather(x, indices; axis): the axis is replaced by the indices' axes; negative indices count from
// the end.
Result<std::vector<Type>> gather_rule(const InferContext& c) {
  const Type &x = c.in(0), &indices = c.in(1);
  if (!is_int(indices.dtype))
    return c.fail("indices are {}, need integers", name_of(indices.dtype));
  if (!x.ranked() || !indices.ranked()) return unranked(x);
  auto axis = normalize_axis(c.attrs.i("axis"), x.rank());
  if (!axis) return error(std::move(axis).error().at(c.op));
  Shape shape(x.shape->begin(), x.shape->begin() + *axis);
  shape.insert(shape.end(), indices.shape->begin(), indices.shape->end());
  shape.insert(shape.end(), x.shape->begin() + *axis + 1, x.shape->end());
  return only(x.dtype, std::move(shape));
}

std::optional<Contents> gather_contents(const InferContext& c, const Type& output) {
  const auto indices = c.ints(1);
  if (!c.content(0) || !indices || !c.in(0).is_static() || !output.is_static()) return std::nullopt;
  const Dims dims = c.in(0).dims();
  const auto count = element_count(output.dims());
  auto axis = normalize_axis(c.attrs.i("axis"), static_cast<int>(dims.size()));
  if (!axis || !count || *count > static_cast<int64_t>(kMaxContents)) return std::nullopt;
  const int64_t n = dims[static_cast<size_t>(*axis)];
  int64_t outer = 1;
  for (int a = 0; a < *axis; ++a) outer *= dims[static_cast<size_t>(a)];
  const int64_t inner = strides_of(dims)[static_cast<size_t>(*axis)];
  Contents result;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : *indices) {
      const int64_t at = index < 0 ? index + n : index;
      if (at < 0 || at >= n) return std::nullopt;
      for (int64_t i = 0; i < inner; ++i)
        result.push_back((*c.content(0))[static_cast<size_t>((o * n + at) * inner + i)]);
    }
  return result;
}

// ---- range ----

// range(start, limit, delta): start, start + delta, ... before limit.
Result<std::vector<Type>> range_rule(const InferContext& c) {
  const DType dtype = c.in(0).dtype;
  if (c.in(1).dtype != dtype || c.in(2).dtype != dtype) return c.fail("types differ");
  if (c.constants[0] && c.constants[1] && c.constants[2] && is_float(dtype)) {
    for (const Tensor* t : c.constants)
      if (t->count() != 1) return c.fail("needs scalars");
    auto count =
        range_count(c.constants[0]->f64(0), c.constants[1]->f64(0), c.constants[2]->f64(0));
    if (!count) return error(std::move(count).error().at(c.op));
    return only(dtype, {Expr(*count)});
  }
  const Contents *start = c.content(0), *limit = c.content(1), *delta = c.content(2);
  for (const Contents* side : {start, limit, delta})
    if (side && side->size() != 1) return c.fail("needs scalars");
  if (!start || !limit || !delta || !(*delta)[0].is_constant()) return only(dtype, {c.fresh()});
  const int64_t step = *(*delta)[0].constant();
  if (step == 0 || step == INT64_MIN) return c.fail("delta is {}", step);
  const Expr length = step > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  return only(dtype, {max(ceil_div(length, Expr(std::abs(step))), 0)});
}

std::optional<Contents> range_contents(const InferContext& c, const Type& output) {
  const Contents *start = c.content(0), *delta = c.content(2);
  if (!start || !delta || !output.is_static() ||
      output.dims()[0] > static_cast<int64_t>(kMaxContents))
    return std::nullopt;
  Contents result;
  for (int64_t i = 0; i < output.dims()[0]; ++i)
    result.push_back((*start)[0] + Expr(i) * (*delta)[0]);
  return result;
}

}  // namespace

Result<int64_t> range_count(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (delta == 0 || !(std::abs(count) < 0x1p62))
    return error(Code::kInvalidArgument, "no range from {} to {} by {}", start, limit, delta);
  return std::max<int64_t>(0, static_cast<int64_t>(count));
}

std::span<const OpDef> move_rows() {
  static const std::vector<OpDef> rows{
      {"slice", kPrimitive, 3, 5, 1, 1, {}, slice_rule, slice_contents},
      {"concat",
       kPrimitive,
       1,
       kVariadic,
       1,
       1,
       {{"axis", AttrKind::kInt, true}},
       concat_rule,
       concat_contents},
      {"pad", kPrimitive, 2, 4, 1, 1, {{"mode", AttrKind::kString}}, pad_rule},
      {"gather", kPrimitive, 2, 2, 1, 1, {{"axis", AttrKind::kInt}}, gather_rule, gather_contents},
      {"range", kPrimitive, 3, 3, 1, 1, {}, range_rule, range_contents},
  };
  return rows;
}

}  // namespace tessera::op
