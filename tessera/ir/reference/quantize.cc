// Quantisation: the scale of an element is found by its index.
#include <algorithm>
#include <cmath>

#include "tessera/base/element.h"
#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

// Where an element's scale stands in the tensor of scales (see op/rows_quantize.cc).
class ScaleIndex {
 public:
  ScaleIndex(const Call& call, const Tensor& x, const Tensor& scale)
      : strides_(static_cast<size_t>(x.rank()), 0) {
    if (scale.count() == 1 || x.rank() == 0) return;
    const int64_t axis = x.rank() == 1 ? 0 : call.attrs().i("axis", 1);
    axis_ = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
    const int64_t block = call.attrs().i("block");
    if (block == 0) {
      strides_[axis_] = 1;
    } else {
      block_ = block;
      strides_ = op::strides_of(scale.dims());
    }
  }
  int64_t of(const Index& at) const {
    int64_t sum = 0;
    for (size_t a = 0; a < strides_.size(); ++a)
      sum += strides_[a] * (a == axis_ ? at[a] / block_ : at[a]);
    return sum;
  }

 private:
  Dims strides_;
  size_t axis_ = 0;
  int64_t block_ = 1;
};

// `value` as the nearest number of `dtype`.
double rounded(double value, DType dtype) {
  if (!is_float(dtype) || dtype == DType::kF64) return value;
  std::byte bits[8] = {};
  store_f64(dtype, bits, 0, value);
  return load_f64(dtype, bits, 0);
}

Result<std::vector<Value>> quantize(const Call& call) {
  const Tensor &x = call.t(0), &scale = call.t(1);
  const DType to = call.out[0].dtype;
  if (!is_int(to) && !is_float(to)) return call.fail("cannot yield {}", name_of(to));
  if (!is_float(scale.dtype()) && !is_int(scale.dtype()))
    return call.fail("a scale is a number, got {}", name_of(scale.dtype()));
  if (!is_float(x.dtype()) && !is_int(x.dtype()))
    return call.fail("cannot quantise {}", name_of(x.dtype()));
  TRY_ASSIGN(Tensor y, call.make(0));
  const DType precision = call.attrs().dtype("precision", scale.dtype());
  const ScaleIndex scales(call, x, scale);
  const ScaleIndex zeros(call, x, call.has(2) ? call.t(2) : scale);
  const int bits = bits_of(to);
  const double lowest = is_signed_int(to) ? -std::ldexp(1, bits - 1) : 0;
  const double highest = std::ldexp(1, is_signed_int(to) ? bits - 1 : bits) - 1;
  const FloatCast cast{Rounding::kNearestEven, call.attrs().i("saturate", 1) != 0};
  for (Index at(x.dims()); !at.done(); at.next()) {
    const double divisor = rounded(scale.f64(scales.of(at)), precision);
    double q = rounded(rounded(x.f64(at.linear()), precision) / divisor, precision);
    const double zero = call.has(2) ? call.t(2).f64(zeros.of(at)) : 0;
    if (is_float(to)) {
      store_f64(to, y.mutable_data(), at.linear(), q + zero, cast);
    } else {
      q = std::nearbyint(q) + zero;
      y.set_i64(at.linear(),
                std::isnan(q) ? 0 : static_cast<int64_t>(std::clamp(q, lowest, highest)));
    }
  }
  return one(std::move(y));
}

Result<std::vector<Value>> dequantize(const Call& call) {
  const Tensor &x = call.t(0), &scale = call.t(1);
  for (const Tensor* t : {&x, &scale})
    if (!is_float(t->dtype()) && !is_int(t->dtype()))
      return call.fail("is not defined for {}", name_of(t->dtype()));
  if (!is_float(call.out[0].dtype)) return call.fail("cannot yield {}", name_of(call.out[0].dtype));
  TRY_ASSIGN(Tensor y, call.make(0));
  const ScaleIndex scales(call, x, scale);
  const ScaleIndex zeros(call, x, call.has(2) ? call.t(2) : scale);
  for (Index at(x.dims()); !at.done(); at.next()) {
    const double zero = call.has(2) ? call.t(2).f64(zeros.of(at)) : 0;
    y.set_f64(at.linear(), (x.f64(at.linear()) - zero) * scale.f64(scales.of(at)));
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {{"quantize", quantize}, {"dequantize", dequantize}};

}  // namespace

std::span<const Row> quantize_rows() { return kRows; }

}  // namespace tessera::ir::reference
