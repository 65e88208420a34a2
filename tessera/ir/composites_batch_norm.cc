// Normalisation by channel. N, C: batch and channels.
#include "tessera/ir/builder.h"

namespace tessera::ir {
namespace {

using Axes = std::vector<int64_t>;

// (C) -> (C, 1...), to stand beside x (N, C, ...)
ValueId by_channel(Builder& b, ValueId v, ValueId x) {
  Axes shape(static_cast<size_t>(std::max(1, b.rank(x) - 1)), 1);
  shape[0] = -1;
  return b.reshape(v, shape);
}

bool ranked(Builder& b, ValueId x, std::string_view op) {
  if (!b.type(x).ranked())
    b.fail(
        {Code::kUnimplemented, fmt::format("{}: no decomposition where the rank is unknown", op)});
  return b.ok();
}

// (x - mean) / sqrt(var + epsilon) * scale + bias
ValueId normalise(Builder& b, ValueId x, ValueId mean, ValueId var, ValueId scale, ValueId bias,
                  double epsilon) {
  const ValueId deviation = b.unary("sqrt", b.add(var, b.scalar_like(var, epsilon)));
  return b.add(b.mul(b.div(b.sub(x, mean), deviation), by_channel(b, scale, x)),
               by_channel(b, bias, x));
}

std::vector<ValueId> batch_norm(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in,
                                int) {
  if (!ranked(b, in[0], "batch_norm")) return {kAbsent};
  return {normalise(b, in[0], by_channel(b, in[3], in[0]), by_channel(b, in[4], in[0]), in[1],
                    in[2], attrs.f("epsilon", 1e-5))};
}

std::vector<ValueId> instance_norm(Builder& b, const op::Attrs& attrs,
                                   const std::vector<ValueId>& in, int) {
  if (!ranked(b, in[0], "instance_norm")) return {kAbsent};
  const ValueId x = in[0], mean = b.op("global_average_pool", {x}), centred = b.sub(x, mean);
  const ValueId var = b.op("global_average_pool", {b.mul(centred, centred)});
  return {normalise(b, x, mean, var, in[1], in[2], attrs.f("epsilon", 1e-5))};
}

// Squares summed over windows along the channels, moved to the end meanwhile.
std::vector<ValueId> lrn(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in, int) {
  if (!ranked(b, in[0], "lrn")) return {kAbsent};
  const ValueId x = in[0];
  const int64_t rank = b.rank(x), size = attrs.i("size");
  Axes to_end{0}, back{0, rank - 1};
  for (int64_t i = 2; i < rank; ++i) to_end.push_back(i);
  to_end.push_back(1);
  for (int64_t i = 1; i + 1 < rank; ++i) back.push_back(i);
  const ValueId squares = b.transpose(b.mul(x, x), to_end);
  const ValueId windows = b.op("window", {squares},
                               {{"kernel", op::Ints{size}},
                                {"pads_begin", op::Ints{(size - 1) / 2}},
                                {"pads_end", op::Ints{size / 2}}});
  const ValueId sum = b.transpose(b.reduce("sum", windows, {rank}, false), back);
  const double factor = attrs.f("alpha", 1e-4) / static_cast<double>(size);
  const ValueId base =
      b.add(b.mul(sum, b.scalar_like(x, factor)), b.scalar_like(x, attrs.f("bias", 1)));
  return {b.div(x, b.op("pow", {base, b.scalar_like(x, attrs.f("beta", 0.75))}))};
}

constexpr Composite kRows[] = {
    {"batch_norm", batch_norm},
    {"instance_norm", instance_norm},
    {"lrn", lrn},
};

}  // namespace

std::span<const Composite> batch_norm_composites() { return kRows; }

}  // namespace tessera::ir
