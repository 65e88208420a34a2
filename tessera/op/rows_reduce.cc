// Reductions over axes.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

// reduce(x, axes?): kind is sum, prod, max, min, and, or; axes absent: all.
Result<std::vector<Type>> reduce_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  const bool keep = c.attrs.i("keepdims", 1) != 0;
  std::optional<Ints> axes = c.has(1) ? c.ints(1) : Ints{};
  if (!axes) {
    if (!keep) return std::vector<Type>{Type::unranked(x.dtype)};
    return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(x.rank())))};
  }
  auto normal = normalize_axes(*axes, x.rank());
  if (!normal) return error(std::move(normal).error().at(c.op));
  Shape shape;
  size_t next = 0;
  for (int a = 0; a < x.rank(); ++a) {
    const bool reduced = next < normal->size() && (*normal)[next] == a;
    next += reduced;
    if (!reduced) shape.push_back(x.dim(a));
    if (reduced && keep) shape.push_back(Expr(1));
  }
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

// Of a list, to one element.
std::optional<Contents> reduce_contents(const InferContext& c, const Type& output) {
  const Contents* x = c.content(0);
  if (!x || !c.in(0).ranked() || c.in(0).rank() != 1 || !output.is_static() ||
      element_count(output.dims()).value_or(0) != 1)
    return std::nullopt;
  const std::string kind = c.attrs.s("kind");
  if (kind == "prod") return Contents{element_count(*x)};
  if (x->empty() && kind != "sum") return std::nullopt;
  Expr total = kind == "sum" ? Expr(0) : x->front();
  for (const Expr& e : *x) {
    if (kind == "sum")
      total = total + e;
    else if (kind == "max")
      total = max(total, e);
    else if (kind == "min")
      total = min(total, e);
    else
      return std::nullopt;
  }
  return Contents{total};
}

}  // namespace

std::span<const OpDef> reduce_rows() {
  static const std::vector<OpDef> rows{
      {"reduce",
       OpClass::kPrimitive,
       1,
       2,
       1,
       1,
       {{"kind", AttrKind::kString, true}, {"keepdims", AttrKind::kInt}},
       reduce_rule,
       reduce_contents},
  };
  return rows;
}

}  // namespace tessera::op
