// resize as a gather or a dot along one axis after another.
#include "tessera/ir/composites.h"
#include "tessera/op/resize.h"

namespace tessera::ir {
namespace {

// x with `axis` interpolated: a product with the matrix of weights, computed wide.
ValueId interpolate(Builder& b, ValueId x, const op::ResizeAxis& axis, const op::Taps& taps) {
  auto matrix = op::Tensor::make(b.dtype(x), {axis.in, axis.out});
  if (!matrix) {
    b.fail(std::move(matrix).error());
    return kAbsent;
  }
  std::vector<double> column(static_cast<size_t>(axis.in));
  for (int64_t o = 0; o < axis.out; ++o) {
    std::fill(column.begin(), column.end(), 0.0);
    for (int64_t t = taps.first[static_cast<size_t>(o)]; t < taps.first[static_cast<size_t>(o) + 1];
         ++t)
      column[static_cast<size_t>(taps.indices[static_cast<size_t>(t)])] +=
          taps.weights[static_cast<size_t>(t)];
    for (int64_t i = 0; i < axis.in; ++i)
      matrix->set_f64(i * axis.out + o, column[static_cast<size_t>(i)]);
  }
  std::vector<int64_t> swap = range(0, b.rank(x));
  std::swap(swap[static_cast<size_t>(axis.axis)], swap.back());
  return b.transpose(b.op("dot", {b.transpose(x, swap), b.constant(*std::move(matrix))}), swap);
}

// Elements of `axis` whose place is outside become the extrapolation value.
ValueId extrapolate(Builder& b, ValueId x, const op::ResizeAxis& axis, const op::Taps& taps,
                    double value) {
  std::vector<int64_t> shape(static_cast<size_t>(b.rank(x)), 1);
  shape[static_cast<size_t>(axis.axis)] = axis.out;
  auto mask = op::Tensor::make(DType::kBool, shape);
  if (!mask) {
    b.fail(std::move(mask).error());
    return kAbsent;
  }
  for (int64_t o = 0; o < axis.out; ++o) mask->set_i64(o, taps.outside[static_cast<size_t>(o)]);
  return b.select(b.constant(*std::move(mask)), b.scalar_like(x, value), x);
}

std::vector<ValueId> resize(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in,
                            int) {
  const op::Type type = b.type(in[0]);
  const bool nearest = attrs.s("mode", "nearest") == "nearest";
  if (!type.is_static() || in.size() > 1 || (!nearest && !is_float(type.dtype))) {
    b.fail({Code::kUnimplemented,
            fmt::format("resize: no decomposition of {} where sizes, scales or regions are unknown",
                        type.str())});
    return {kAbsent};
  }
  auto axes = op::resize_axes(attrs, type.dims(), nullptr, nullptr, nullptr);
  if (!axes) {
    b.fail(std::move(axes).error());
    return {kAbsent};
  }
  ValueId x = nearest ? in[0] : widen(b, in[0]);
  for (const op::ResizeAxis& axis : *axes) {
    if (axis.out == axis.in && axis.scale == 1 && axis.begin == 0 && axis.end == 1) continue;
    auto taps = op::resize_taps(attrs, axis);
    if (!taps) {
      b.fail(std::move(taps).error());
      return {kAbsent};
    }
    x = nearest ? b.gather(x, b.ints(taps->indices), axis.axis) : interpolate(b, x, axis, *taps);
    if (std::find(taps->outside.begin(), taps->outside.end(), true) != taps->outside.end())
      x = extrapolate(b, x, axis, *taps, attrs.f("extrapolation"));
  }
  return {b.convert(x, type.dtype)};
}

constexpr Composite kRows[] = {{"resize", resize}};

}  // namespace

std::span<const Composite> image_composites() { return kRows; }

}  // namespace tessera::ir
