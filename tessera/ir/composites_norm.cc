// Layer, RMS and group normalisation.
#include "tessera/ir/composites.h"

namespace tessera::ir {
namespace {

using Values = std::vector<ValueId>;

struct Normalized {
  ValueId y, mean, inverse;
};

// (x - mean) / sqrt(variance + epsilon) over `axes`.
Normalized normalize(Builder& b, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  const ValueId average = mean(b, x, axes), d = b.sub(x, average);
  const ValueId variance = b.add(mean(b, b.mul(d, d), axes), b.scalar_like(x, epsilon));
  const ValueId inverse = b.div(b.scalar_like(x, 1), b.unary("sqrt", variance));
  return {b.mul(d, inverse), average, inverse};
}

DType compute_type(Builder& b, const op::Attrs& attrs, ValueId x) {
  return wider(wide(b.dtype(x)), attrs.dtype("stash", DType::kF32));
}

Values layer_norm(Builder& b, const op::Attrs& attrs, const Values& in, int outputs) {
  const DType type = compute_type(b, attrs, in[0]);
  const int64_t axis = axis_of(b, in[0], attrs.i("axis", -1));
  Normalized n =
      normalize(b, b.convert(in[0], type), range(axis, b.rank(in[0])), attrs.f("epsilon", 1e-5));
  if (in.size() > 1 && in[1] != kAbsent) n.y = b.mul(n.y, b.convert(in[1], type));
  if (in.size() > 2 && in[2] != kAbsent) n.y = b.add(n.y, b.convert(in[2], type));
  const DType stash = attrs.dtype("stash", DType::kF32);
  Values results{b.convert(n.y, b.dtype(in[0])), b.convert(n.mean, stash),
                 b.convert(n.inverse, stash)};
  results.resize(static_cast<size_t>(outputs));
  return results;
}

Values rms_norm(Builder& b, const op::Attrs& attrs, const Values& in, int) {
  const DType type = compute_type(b, attrs, in[0]);
  const int64_t axis = axis_of(b, in[0], attrs.i("axis", -1));
  const ValueId x = b.convert(in[0], type);
  const ValueId square = b.add(mean(b, b.mul(x, x), range(axis, b.rank(x))),
                               b.scalar_like(x, attrs.f("epsilon", 1e-5)));
  const ValueId y = b.mul(b.div(x, b.unary("sqrt", square)), b.convert(in[1], type));
  return {b.convert(y, b.dtype(in[1]))};
}

// x as (N, groups, -1), normalised over the last axis, back to its shape, then scaled per channel.
Values group_norm(Builder& b, const op::Attrs& attrs, const Values& in, int) {
  const DType type = compute_type(b, attrs, in[0]);
  axis_of(b, in[0], 1);
  const ValueId x = b.convert(in[0], type);
  const ValueId grouped = b.reshape(x, {0, attrs.i("groups"), -1});
  const ValueId y = b.op(
      "reshape", {normalize(b, grouped, {2}, attrs.f("epsilon", 1e-5)).y, b.op("shape_of", {x})},
      {{"zero_is_zero", int64_t{1}}});
  std::vector<int64_t> channels(static_cast<size_t>(std::max(b.rank(x) - 1, 1)), 1);  // (C, 1, ...)
  channels[0] = -1;
  const ValueId scale = b.reshape(b.convert(in[1], type), channels),
                bias = b.reshape(b.convert(in[2], type), channels);
  return {b.convert(b.add(b.mul(y, scale), bias), b.dtype(in[0]))};
}

constexpr Composite kRows[] = {
    {"layer_norm", layer_norm}, {"rms_norm", rms_norm}, {"group_norm", group_norm}};

}  // namespace

std::span<const Composite> norm_composites() { return kRows; }

}  // namespace tessera::ir
