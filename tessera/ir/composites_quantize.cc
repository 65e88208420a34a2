// Quantisation in terms of arithmetic.
#include <algorithm>
#include <cmath>

#include "tessera/ir/builder.h"

namespace tessera::ir {
namespace {

// Zero points of rows: rank 1 becomes a column.
ValueId shifted(Builder& b, ValueId x, ValueId zero, bool rows) {
  if (zero == kAbsent) return x;
  zero = b.convert(zero, DType::kI32);
  if (rows && b.rank(zero) == 1 && b.rank(x) > 1) zero = b.reshape(zero, {-1, 1});
  return b.sub(b.convert(x, DType::kI32), zero);
}

// dot_integer(a, b, a_zero?, b_zero?)
std::vector<ValueId> dot_integer(Builder& b, const op::Attrs&, const std::vector<ValueId>& in,
                                 int) {
  auto at = [&](size_t i) { return i < in.size() ? in[i] : kAbsent; };
  return {b.op("dot", {shifted(b, in[0], at(2), true), shifted(b, in[1], at(3), false)},
               {{"accumulate", DType::kI32}})};
}

// conv_integer(x, w, x_zero?, w_zero?, bias?)
std::vector<ValueId> conv_integer(Builder& b, const op::Attrs& attrs,
                                  const std::vector<ValueId>& in, int) {
  auto at = [&](size_t i) { return i < in.size() ? in[i] : kAbsent; };
  auto centred = [&](ValueId x, ValueId zero) {
    x = b.convert(x, DType::kI32);
    if (zero == kAbsent) return x;
    // One element, or one for each channel of the weights, which stand first.
    std::vector<int64_t> shape(static_cast<size_t>(std::max(b.rank(in[1]), 1)), 1);
    shape[0] = -1;
    return b.sub(x, b.reshape(b.convert(zero, DType::kI32), shape));
  };
  return {b.op("conv", {centred(in[0], at(2)), centred(in[1], at(3)), at(4)}, attrs)};
}

// Scales or zero points, laid out to broadcast against x (see op/rows_quantize.cc), as `to`.
ValueId spread(Builder& b, const op::Attrs& attrs, ValueId x, ValueId scale, DType to) {
  scale = b.convert(scale, to);
  const op::Type type = b.type(scale);
  if (!b.ok() || (type.ranked() && type.rank() == 0)) return scale;
  if (type.ranked() && op::element_count(*type.shape).constant() == 1) return b.reshape(scale, {});
  const int rank = b.rank(x);
  if (rank < 0 || !type.ranked()) {
    b.fail({Code::kUnimplemented, "scales of a tensor of unknown rank"});
    return kAbsent;
  }
  int64_t axis = rank == 1 ? 0 : attrs.i("axis", 1);
  if (axis < 0) axis += rank;
  if (const int64_t block = attrs.i("block"); block > 0) {
    const ValueId axis_only = b.ints({axis}),
                  size = b.reshape(
                      b.op("gather", {b.op("shape_of", {x}), axis_only}, {{"axis", int64_t{0}}}),
                      {});
    const ValueId place = b.op("range", {b.scalar(DType::kI64, 0), size, b.scalar(DType::kI64, 1)});
    return b.op("gather", {scale, b.div(place, b.scalar(DType::kI64, static_cast<double>(block)))},
                {{"axis", axis}});
  }
  std::vector<int64_t> shape(static_cast<size_t>(rank - axis), 1);
  shape[0] = -1;
  return b.reshape(scale, shape);
}

// round(x / scale) + zero_point within the bounds of `to`; floats are rounded by the conversion
std::vector<ValueId> quantize(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in,
                              int) {
  const DType to = attrs.dtype("to"), precision = attrs.dtype("precision", b.dtype(in[1]));
  const DType work = precision == DType::kF64 ? DType::kF64 : DType::kF32;
  ValueId q = b.convert(
      b.div(b.convert(in[0], precision), spread(b, attrs, in[0], in[1], precision)), work);
  if (is_int(to)) q = b.unary("round", q);
  if (in.size() > 2 && in[2] != kAbsent) q = b.add(q, spread(b, attrs, in[0], in[2], work));
  if (!is_int(to))
    return {b.op("convert", {q}, {{"to", to}, {"saturate", attrs.i("saturate", 1)}})};
  const int bits = bits_of(to);
  const double lowest = is_signed_int(to) ? -std::ldexp(1, bits - 1) : 0,
               highest = std::ldexp(1, is_signed_int(to) ? bits - 1 : bits) - 1;
  return {b.convert(b.max(b.min(q, b.scalar(work, highest)), b.scalar(work, lowest)), to)};
}

// (x - zero_point) * scale
std::vector<ValueId> dequantize(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in,
                                int) {
  const DType to = attrs.dtype("to");
  const bool wide = to == DType::kF64 || b.dtype(in[1]) == DType::kF64 ||
                    (is_int(b.dtype(in[0])) && bits_of(b.dtype(in[0])) > 16);
  const DType work = wide ? DType::kF64 : DType::kF32;
  ValueId x = b.convert(in[0], work);
  if (in.size() > 2 && in[2] != kAbsent) x = b.sub(x, spread(b, attrs, in[0], in[2], work));
  return {b.convert(b.mul(x, spread(b, attrs, in[0], in[1], work)), to)};
}

constexpr Composite kRows[] = {
    {"conv_integer", conv_integer},
    {"dequantize", dequantize},
    {"dot_integer", dot_integer},
    {"quantize", quantize},
};

}  // namespace

std::span<const Composite> quantize_composites() { return kRows; }

}  // namespace tessera::ir
