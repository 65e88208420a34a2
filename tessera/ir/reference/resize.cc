// resize: interpolation along one axis after another.
#include "tessera/op/resize.h"

#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

using op::ResizeAxis;
using op::Taps;

// All axes at once, elements copied whatever their type.
Tensor nearest(const Tensor& x, Tensor y, const std::vector<ResizeAxis>& axes,
               const std::vector<Taps>& taps, double extrapolation) {
  const Dims strides = op::strides_of(x.dims());
  for (Index at(y.dims()); !at.done(); at.next()) {
    int64_t from = at.dot(strides);
    bool outside = false;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(axes[i].axis);
      from += (taps[i].indices[static_cast<size_t>(at[axis])] - at[axis]) * strides[axis];
      outside |= taps[i].outside[static_cast<size_t>(at[axis])];
    }
    if (outside)
      y.set_f64(at.linear(), extrapolation);
    else
      copy_element(x, from, y, at.linear());
  }
  return y;
}

// One axis of (outer, size, inner).
std::vector<double> interpolate(const std::vector<double>& x, int64_t outer, int64_t size,
                                int64_t inner, const Taps& taps, double extrapolation) {
  const auto out = static_cast<int64_t>(taps.outside.size());
  std::vector<double> y(static_cast<size_t>(outer * out * inner));
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t o = 0; o < out; ++o) {
      double* to = y.data() + (i * out + o) * inner;
      if (taps.outside[static_cast<size_t>(o)]) {
        std::fill(to, to + inner, extrapolation);
        continue;
      }
      for (int64_t t = taps.first[static_cast<size_t>(o)];
           t < taps.first[static_cast<size_t>(o) + 1]; ++t) {
        const double* from = x.data() + (i * size + taps.indices[static_cast<size_t>(t)]) * inner;
        for (int64_t k = 0; k < inner; ++k) to[k] += taps.weights[static_cast<size_t>(t)] * from[k];
      }
    }
  return y;
}

Result<std::vector<Value>> resize(const Call& call) {
  const Tensor& x = call.t(0);
  auto tensor = [&](size_t i) {
    return call.has(i) && call.t(i).count() > 0 ? &call.t(i) : nullptr;
  };
  auto axes = op::resize_axes(call.attrs(), x.dims(), tensor(1), tensor(2), tensor(3));
  if (!axes) return call.fail("{}", axes.error().message);
  Dims dims = x.dims();
  std::vector<Taps> taps;
  for (const ResizeAxis& axis : *axes) {
    if (axis.in == 0 && axis.out > 0)
      return call.fail("axis {} of size 0 cannot become {}", axis.axis, axis.out);
    dims[static_cast<size_t>(axis.axis)] = axis.out;
  }
  TRY_ASSIGN(Tensor y, Tensor::make(x.dtype(), dims));
  for (const ResizeAxis& axis : *axes) {
    auto axis_taps = op::resize_taps(call.attrs(), axis);
    if (!axis_taps) return call.fail("{}", axis_taps.error().message);
    taps.push_back(*std::move(axis_taps));
  }
  const double extrapolation = call.attrs().f("extrapolation");
  if (call.attrs().s("mode", "nearest") == "nearest")
    return one(nearest(x, std::move(y), *axes, taps, extrapolation));
  if (x.dtype() == DType::kString || is_complex(x.dtype()))
    return call.fail("cannot interpolate {}", name_of(x.dtype()));
  std::vector<double> values = to_doubles(x);
  dims = x.dims();
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto at = static_cast<size_t>((*axes)[i].axis);
    int64_t outer = 1, inner = 1;
    for (size_t a = 0; a < dims.size(); ++a) (a < at ? outer : inner) *= a == at ? 1 : dims[a];
    const ResizeAxis& axis = (*axes)[i];
    if (axis.out == axis.in && axis.scale == 1 && axis.begin == 0 && axis.end == 1) continue;
    values = interpolate(values, outer, dims[at], inner, taps[i], extrapolation);
    dims[at] = axis.out;
  }
  for (int64_t i = 0; i < y.count(); ++i) y.set_f64(i, values[static_cast<size_t>(i)]);
  return one(std::move(y));
}

constexpr Row kRows[] = {{"resize", resize}};

}  // namespace

std::span<const Row> resize_rows() { return kRows; }

}  // namespace tessera::ir::reference
