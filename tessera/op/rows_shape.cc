// Primitives that move elements and do no arithmetic.
#include <algorithm>

#include "tessera/op/index.h"
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;

// reshape(x, shape): one -1 takes what is left; "zero_is_zero" = 0: a 0 copies the input's size.
Result<std::vector<Type>> reshape_rule(const InferContext& c) {
  const Type &x = c.in(0), &target = c.in(1);
  const Contents* shape = c.content(1);
  if (!shape) {
    if (target.ranked() && target.rank() == 1 && target.dim(0).is_constant())
      return std::vector<Type>{
          Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(*target.dim(0).constant())))};
    return std::vector<Type>{Type::unranked(x.dtype)};
  }
  Shape out;
  int open = -1;
  for (size_t i = 0; i < shape->size(); ++i) {
    Expr d = (*shape)[i];
    if (d.constant() == -1) {
      if (open >= 0) return c.fail("sizes {} and {} are both -1", open, i);
      open = static_cast<int>(i);
      d = Expr(1);
    } else if (d.constant() == 0 && c.attrs.i("zero_is_zero") == 0) {
      if (x.ranked() && static_cast<int>(i) >= x.rank())
        return c.fail("size {} is 0, but the input has rank {}", i, x.rank());
      d = x.ranked() ? x.dim(static_cast<int>(i)) : c.fresh();
    } else if (d.is_constant() && *d.constant() < 0) {
      return c.fail("size {} is {}", i, *d.constant());
    }
    out.push_back(d);
  }
  if (!x.ranked()) {
    if (open >= 0) out[static_cast<size_t>(open)] = c.fresh();
    return std::vector<Type>{Type::tensor(x.dtype, std::move(out))};
  }
  const Expr total = element_count(*x.shape), known = element_count(out);
  if (open >= 0) {
    if (known.constant() == 0)
      return c.fail("-1 is ambiguous beside a size of 0 in {}", to_string(*shape));
    if (total.is_constant() && known.is_constant() && *total.constant() % *known.constant() != 0)
      return c.fail("{} elements of {} do not divide by {}", *total.constant(), x.str(),
                    *known.constant());
    out[static_cast<size_t>(open)] = floor_div(total, known);
  } else if (total.is_constant() && known.is_constant() && !(total == known)) {
    return c.fail("{} has {} elements, the shape {} has {}", x.str(), *total.constant(),
                  to_string(*shape), *known.constant());
  }
  return std::vector<Type>{Type::tensor(x.dtype, std::move(out))};
}

// Contents that survive a change of shape.
std::optional<Contents> same_contents(const InferContext& c, const Type&) {
  return c.content(0) ? std::optional(*c.content(0)) : std::nullopt;
}

// The count of axes that an input of axes holds, where known.
std::optional<size_t> count_of(const InferContext& c, size_t i) {
  if (c.content(i)) return c.content(i)->size();
  if (!c.in(i).is_static()) return std::nullopt;
  return static_cast<size_t>(element_count(c.in(i).dims()).value_or(0));
}

// unsqueeze(x, axes): sizes of 1 at `axes` of the result.
Result<std::vector<Type>> unsqueeze_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const auto count = count_of(c, 1);
  if (!x.ranked() || !count) return std::vector<Type>{Type::unranked(x.dtype)};
  const int rank = x.rank() + static_cast<int>(*count);
  const auto given = c.ints(1);
  if (!given)
    return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(rank)))};
  std::vector<bool> added(static_cast<size_t>(rank));
  for (int64_t axis : *given) {
    auto at = normalize_axis(axis, rank);
    if (!at) return error(std::move(at).error().at(c.op));
    if (added[static_cast<size_t>(*at)]) return c.fail("axis {} is given twice", *at);
    added[static_cast<size_t>(*at)] = true;
  }
  Shape shape;
  int next = 0;
  for (bool one : added) shape.push_back(one ? Expr(1) : x.dim(next++));
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

// squeeze(x, axes?): drops axes, whose sizes must be 1; without axes, all sizes of 1.
Result<std::vector<Type>> squeeze_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return std::vector<Type>{x};
  std::vector<bool> dropped(static_cast<size_t>(x.rank()));
  if (!c.has(1)) {
    for (int a = 0; a < x.rank(); ++a) {
      if (!x.dim(a).is_constant()) return std::vector<Type>{Type::unranked(x.dtype)};
      dropped[static_cast<size_t>(a)] = x.dim(a).constant() == 1;
    }
  } else if (const auto given = c.ints(1)) {
    for (int64_t axis : *given) {
      auto at = normalize_axis(axis, x.rank());
      if (!at) return error(std::move(at).error().at(c.op));
      if (x.dim(*at).is_constant() && x.dim(*at).constant() != 1)
        return c.fail("axis {} of {} is not 1", *at, x.str());
      dropped[static_cast<size_t>(*at)] = true;
    }
  } else {
    const auto count = count_of(c, 1);
    if (!count || *count > dropped.size()) return std::vector<Type>{Type::unranked(x.dtype)};
    return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(dropped.size() - *count))};
  }
  Shape shape;
  for (int a = 0; a < x.rank(); ++a)
    if (!dropped[static_cast<size_t>(a)]) shape.push_back(x.dim(a));
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

// broadcast_to(x, shape): both broadcast, so a 1 in `shape` keeps the input's size.
Result<std::vector<Type>> broadcast_to_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const Contents* target = c.content(1);
  if (!target) {
    const auto count = count_of(c, 1);
    if (!x.ranked() || !count) return std::vector<Type>{Type::unranked(x.dtype)};
    return std::vector<Type>{
        Type::tensor(x.dtype, c.fresh_shape(std::max(*count, static_cast<size_t>(x.rank()))))};
  }
  for (const Expr& d : *target)
    if (d.is_constant() && *d.constant() < 0)
      return c.fail("the shape {} has a negative size", to_string(*target));
  if (!x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  auto shape = broadcast_shapes(*x.shape, *target);
  if (!shape) return error(std::move(shape).error().at(c.op));
  return std::vector<Type>{Type::tensor(x.dtype, *std::move(shape))};
}
std::optional<Contents> broadcast_to_contents(const InferContext& c, const Type& output) {
  if (!c.content(0) || !c.in(0).is_static() || !output.is_static()) return std::nullopt;
  const auto count = element_count(output.dims());
  if (!count || *count > static_cast<int64_t>(kMaxContents)) return std::nullopt;
  const Dims strides = broadcast_strides(c.in(0).dims(), output.dims());
  Contents result;
  for (Index at(output.dims()); !at.done(); at.next())
    result.push_back((*c.content(0))[static_cast<size_t>(at.dot(strides))]);
  return result;
}

Result<std::vector<Type>> transpose_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return std::vector<Type>{x};
  Ints perm = c.attrs.ints("perm");
  if (perm.size() != static_cast<size_t>(x.rank()))
    return c.fail("perm has {} axes, the input rank {}", perm.size(), x.rank());
  std::vector<bool> seen(perm.size());
  Shape shape;
  for (int64_t p : perm) {
    if (p < 0 || p >= x.rank() || seen[static_cast<size_t>(p)])
      return c.fail("perm is not a permutation: {}", to_string(Dims(perm)));
    seen[static_cast<size_t>(p)] = true;
    shape.push_back(x.dim(static_cast<int>(p)));
  }
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

std::optional<Contents> transpose_contents(const InferContext& c, const Type& output) {
  if (!c.content(0) || !output.is_static()) return std::nullopt;
  const Dims own = strides_of(c.in(0).dims());
  Dims strides;
  for (int64_t p : c.attrs.ints("perm")) strides.push_back(own[static_cast<size_t>(p)]);
  Contents result;
  for (Index at(output.dims()); !at.done(); at.next())
    result.push_back((*c.content(0))[static_cast<size_t>(at.dot(strides))]);
  return result;
}

Result<std::vector<Type>> shape_of_rule(const InferContext& c) {
  const Expr n = c.in(0).ranked() ? Expr(c.in(0).rank()) : c.fresh();
  return std::vector<Type>{Type::tensor(DType::kI64, {n})};
}
std::optional<Contents> shape_of_contents(const InferContext& c, const Type&) {
  if (!c.in(0).ranked()) return std::nullopt;
  return *c.in(0).shape;
}

}  // namespace

std::span<const OpDef> shape_rows() {
  static const std::vector<OpDef> rows{
      // The same elements in another layout: what ir::ValueInfo::layout says of input and output.
      {"relayout", kPrimitive, 1, 1, 1, 1, {}, same_as_input, same_contents},
      {"identity", kPrimitive, 1, 1, 1, 1, {}, same_as_input, same_contents},
      {"reshape",
       kPrimitive,
       2,
       2,
       1,
       1,
       {{"zero_is_zero", AttrKind::kInt}},
       reshape_rule,
       same_contents},
      {"transpose",
       kPrimitive,
       1,
       1,
       1,
       1,
       {{"perm", AttrKind::kInts, true}},
       transpose_rule,
       transpose_contents},
      {"unsqueeze", kPrimitive, 2, 2, 1, 1, {}, unsqueeze_rule, same_contents},
      {"squeeze", kPrimitive, 1, 2, 1, 1, {}, squeeze_rule, same_contents},
      {"broadcast_to", kPrimitive, 2, 2, 1, 1, {}, broadcast_to_rule, broadcast_to_contents},
      {"shape_of", kPrimitive, 1, 1, 1, 1, {}, shape_of_rule, shape_of_contents},
  };
  return rows;
}

}  // namespace tessera::op
