// Windows and convolutions. N, C: batch and channels; M: channels of the result; G: groups.
#include "tessera/ir/reference/loops.h"
#include "tessera/op/window.h"

namespace tessera::ir::reference {
namespace {

using op::Window;

Result<std::vector<Value>> window(const Call& call) {
  const Tensor& x = call.t(0);
  const Dims kernel = call.attrs().ints("kernel");
  TRY_ASSIGN(const Window w, op::window_of(call.attrs(), kernel.size()));
  TRY_ASSIGN(Tensor y, call.make(0));
  const size_t axes = kernel.size(), lead = static_cast<size_t>(x.rank()) - axes;
  const Dims strides = op::strides_of(x.dims());
  Dims begin;
  for (size_t i = 0; i < axes; ++i) begin.push_back(w.pads(i, x.dims()[lead + i], kernel[i]).first);
  for (Index at(y.dims()); !at.done(); at.next()) {
    int64_t from = 0;
    bool inside = true;
    for (size_t i = 0; i < lead; ++i) from += at[i] * strides[i];
    for (size_t i = 0; i < axes; ++i) {
      const int64_t position = at[lead + i] * w.strides[i] + at[lead + axes + i] * w.dilations[i] - begin[i];
      inside &= position >= 0 && position < x.dims()[lead + i];
      from += position * strides[lead + i];
    }
    if (inside)
      copy_element(x, from, y, at.linear());
    else if (call.has(1))
      copy_element(call.t(1), 0, y, at.linear());
  }
  return one(std::move(y));
}

// y += w * the elements of one channel's x that one tap of the kernel meets.
struct Tap {
  const Window& window;
  const Dims &x_dims, &y_dims;  // spatial
  Dims begin;                   // padding
  Dims tap;
  double weight = 0;

  void add(const double* x, double* y, size_t axis = 0) const {
    const int64_t step = window.strides[axis], offset = tap[axis] * window.dilations[axis] - begin[axis];
    const auto [first, last] = op::inside(y_dims[axis], step, offset, x_dims[axis]);
    if (axis + 1 == y_dims.size()) {
      for (int64_t o = first; o < last; ++o) y[o] += weight * x[o * step + offset];
      return;
    }
    int64_t x_row = 1, y_row = 1;
    for (size_t i = axis + 1; i < y_dims.size(); ++i) {
      x_row *= x_dims[i];
      y_row *= y_dims[i];
    }
    for (int64_t o = first; o < last; ++o) add(x + (o * step + offset) * x_row, y + o * y_row, axis + 1);
  }
};

Dims spatial(const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); }
int64_t product(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

Result<std::vector<Value>> conv(const Call& call) {
  const Tensor &x = call.t(0), &w = call.t(1);
  const int64_t groups = call.attrs().i("groups", 1), channels = w.dim(1), per_group = w.dim(0) / groups;
  const Dims x_dims = spatial(x.dims()), kernel = spatial(w.dims());
  TRY_ASSIGN(const Window window, op::window_of(call.attrs(), kernel.size()));
  TRY_ASSIGN(Tensor y, call.make(0));
  if (y.count() == 0) return one(std::move(y));
  const Dims y_dims = spatial(y.dims());
  const int64_t x_size = product(x_dims), y_size = product(y_dims), taps = product(kernel);
  const std::vector<double> xs = to_doubles(x), ws = to_doubles(w), bias = call.has(2) ? to_doubles(call.t(2)) : std::vector<double>(static_cast<size_t>(w.dim(0)));
  std::vector<double> sums(static_cast<size_t>(y_size));
  Tap tap{window, x_dims, y_dims, {}, Dims(kernel.size()), 0};
  for (size_t i = 0; i < kernel.size(); ++i) tap.begin.push_back(window.pads(i, x_dims[i], kernel[i]).first);
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t m = 0; m < w.dim(0); ++m) {
      std::fill(sums.begin(), sums.end(), bias[static_cast<size_t>(m)]);
      for (int64_t c = 0; c < channels; ++c) {
        const double* image = xs.data() + (n * x.dim(1) + m / per_group * channels + c) * x_size;
        const double* weights = ws.data() + (m * channels + c) * taps;
        for (Index at(kernel); !at.done(); at.next()) {
          tap.tap = *at;
          tap.weight = weights[at.linear()];
          tap.add(image, sums.data());
        }
      }
      const int64_t to = (n * w.dim(0) + m) * y_size;
      for (int64_t i = 0; i < y_size; ++i) y.set_f64(to + i, sums[static_cast<size_t>(i)]);
    }
  return one(std::move(y));
}

constexpr Row kRows[] = {
    {"conv", conv},
    {"window", window},
};

}  // namespace

std::span<const Row> conv_rows() { return kRows; }

}  // namespace tessera::ir::reference
