// Primitives that move elements and do no arithmetic.
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
      return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(*target.dim(0).constant())))};
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
      if (x.ranked() && static_cast<int>(i) >= x.rank()) return c.fail("size {} is 0, but the input has rank {}", i, x.rank());
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
    if (known.constant() == 0) return c.fail("-1 is ambiguous beside a size of 0 in {}", to_string(*shape));
    if (total.is_constant() && known.is_constant() && *total.constant() % *known.constant() != 0)
      return c.fail("{} elements of {} do not divide by {}", *total.constant(), x.str(), *known.constant());
    out[static_cast<size_t>(open)] = floor_div(total, known);
  } else if (total.is_constant() && known.is_constant() && !(total == known)) {
    return c.fail("{} has {} elements, the shape {} has {}", x.str(), *total.constant(), to_string(*shape), *known.constant());
  }
  return std::vector<Type>{Type::tensor(x.dtype, std::move(out))};
}

// Contents that survive a change of shape.
std::optional<Contents> same_contents(const InferContext& c, const Type& output) {
  if (!c.content(0) || !output.ranked() || output.rank() > 1) return std::nullopt;
  return *c.content(0);
}

Result<std::vector<Type>> transpose_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return std::vector<Type>{x};
  Ints perm = c.attrs.ints("perm");
  if (perm.size() != static_cast<size_t>(x.rank())) return c.fail("perm has {} axes, the input rank {}", perm.size(), x.rank());
  std::vector<bool> seen(perm.size());
  Shape shape;
  for (int64_t p : perm) {
    if (p < 0 || p >= x.rank() || seen[static_cast<size_t>(p)]) return c.fail("perm is not a permutation: {}", to_string(Dims(perm)));
    seen[static_cast<size_t>(p)] = true;
    shape.push_back(x.dim(static_cast<int>(p)));
  }
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
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
      {"identity", kPrimitive, 1, 1, 1, 1, {}, same_as_input, same_contents},
      {"reshape", kPrimitive, 2, 2, 1, 1, {{"zero_is_zero", AttrKind::kInt}}, reshape_rule, same_contents},
      {"transpose", kPrimitive, 1, 1, 1, 1, {{"perm", AttrKind::kInts, true}}, transpose_rule, same_contents},
      {"shape_of", kPrimitive, 1, 1, 1, 1, {}, shape_of_rule, shape_of_contents},
  };
  return rows;
}

}  // namespace tessera::op
