// Random numbers: functions of a key and an element's index.
#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

// A shape given as an i64 list.
std::optional<Shape> shape_from(const InferContext& c, size_t i) {
  if (const Contents* known = c.content(i)) return Shape(known->begin(), known->end());
  const Type& t = c.in(i);
  if (t.ranked() && t.rank() == 1 && t.dim(0).is_constant() && *t.dim(0).constant() >= 0 &&
      *t.dim(0).constant() < 64)
    return c.fresh_shape(static_cast<size_t>(*t.dim(0).constant()));
  return std::nullopt;
}

// random(shape){key} -> u32: element i is word i of the Philox4x32-10 stream of the key.
Result<std::vector<Type>> random_rule(const InferContext& c) {
  const Type& shape = c.in(0);
  if (!shape.is_tensor() || shape.dtype != DType::kI64 || (shape.ranked() && shape.rank() != 1))
    return c.fail("a shape is a list of i64, got {}", shape.str());
  const auto known = shape_from(c, 0);
  if (!known) return std::vector<Type>{Type::unranked(DType::kU32)};
  for (const Expr& d : *known)
    if (d.is_constant() && *d.constant() < 0) return c.fail("size {} is negative", *d.constant());
  return std::vector<Type>{Type::tensor(DType::kU32, *known)};
}

// multinomial(logits){samples, key, to}: for each row of [batch, classes] unnormalised
// log-probabilities, `samples` classes drawn independently: sample s of row b is where the running
// sum of the probabilities first exceeds u in [0, 1), which is element b * samples + s of the
// stream, over 2^32.
Result<std::vector<Type>> multinomial_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor() || !is_float(x.dtype) || (x.ranked() && x.rank() != 2))
    return c.fail("needs floats of rank 2, got {}", x.str());
  if (c.attrs.i("samples", 1) < 0) return c.fail("{} samples", c.attrs.i("samples"));
  return std::vector<Type>{Type::tensor(
      c.attrs.dtype("to"), {x.ranked() ? x.dim(0) : c.fresh(), Expr(c.attrs.i("samples", 1))})};
}

}  // namespace

std::span<const OpDef> random_rows() {
  static const std::vector<OpDef> rows{
      {"random", OpClass::kPrimitive, 1, 1, 1, 1, {{"key", AttrKind::kInt, true}}, random_rule},
      {"multinomial",
       OpClass::kHost,
       1,
       1,
       1,
       1,
       {{"samples", AttrKind::kInt}, {"key", AttrKind::kInt, true}, {"to", AttrKind::kDType, true}},
       multinomial_rule},
  };
  return rows;
}

}  // namespace tessera::op
