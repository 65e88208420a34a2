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
      const int64_t position =
          at[lead + i] * w.strides[i] + at[lead + axes + i] * w.dilations[i] - begin[i];
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

// One tap of the kernel over one channel's image: pairs each window with the element it reads.
struct Tap {
  const Window& window;
  const Dims &image_dims, &window_dims;
  Dims begin;  // padding
  Dims tap;

  // Calls row(element, window, count, step) for each run along the last axis: elements lie `step`
  // apart.
  template <class Row>
  void rows(Row row, int64_t element = 0, int64_t place = 0, size_t axis = 0) const {
    const int64_t step = window.strides[axis],
                  offset = tap[axis] * window.dilations[axis] - begin[axis];
    const auto [first, last] = op::inside(window_dims[axis], step, offset, image_dims[axis]);
    if (axis + 1 == window_dims.size()) {
      row(element + first * step + offset, place + first, last - first, step);
      return;
    }
    int64_t image_row = 1, window_row = 1;
    for (size_t i = axis + 1; i < window_dims.size(); ++i) {
      image_row *= image_dims[i];
      window_row *= window_dims[i];
    }
    for (int64_t o = first; o < last; ++o)
      rows(row, element + (o * step + offset) * image_row, place + o * window_row, axis + 1);
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
  const int64_t groups = call.attrs().i("groups", 1), channels = w.dim(1),
                per_group = w.dim(0) / groups;
  const Dims x_dims = spatial(x.dims()), kernel = spatial(w.dims());
  TRY_ASSIGN(const Window window, op::window_of(call.attrs(), kernel.size()));
  TRY_ASSIGN(Tensor y, call.make(0));
  if (y.count() == 0) return one(std::move(y));
  const Dims y_dims = spatial(y.dims());
  const int64_t x_size = product(x_dims), y_size = product(y_dims), taps = product(kernel);
  const std::vector<double> xs = to_doubles(x), ws = to_doubles(w),
                            bias = call.has(2) ? to_doubles(call.t(2))
                                               : std::vector<double>(static_cast<size_t>(w.dim(0)));
  std::vector<double> sums(static_cast<size_t>(y_size));
  Tap tap{window, x_dims, y_dims, {}, Dims(kernel.size())};
  for (size_t i = 0; i < kernel.size(); ++i)
    tap.begin.push_back(window.pads(i, x_dims[i], kernel[i]).first);
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t m = 0; m < w.dim(0); ++m) {
      std::fill(sums.begin(), sums.end(), bias[static_cast<size_t>(m)]);
      for (int64_t c = 0; c < channels; ++c) {
        const double* image = xs.data() + (n * x.dim(1) + m / per_group * channels + c) * x_size;
        const double* weights = ws.data() + (m * channels + c) * taps;
        for (Index at(kernel); !at.done(); at.next()) {
          tap.tap = *at;
          tap.rows([&, weight = weights[at.linear()]](int64_t element, int64_t place, int64_t count,
                                                      int64_t step) {
            for (int64_t i = 0; i < count; ++i)
              sums[static_cast<size_t>(place + i)] += weight * image[element + i * step];
          });
        }
      }
      const int64_t to = (n * w.dim(0) + m) * y_size;
      for (int64_t i = 0; i < y_size; ++i) y.set_f64(to + i, sums[static_cast<size_t>(i)]);
    }
  return one(std::move(y));
}

Result<std::vector<Value>> conv_transpose(const Call& call) {
  const Tensor &x = call.t(0), &w = call.t(1);
  const int64_t groups = call.attrs().i("groups", 1), C = x.dim(1), M = w.dim(1) * groups;
  const Dims x_dims = spatial(x.dims()), kernel = spatial(w.dims());
  TRY_ASSIGN(const Window window, op::transposed_window(call.attrs(), x_dims, kernel));
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims y_dims = spatial(y.dims());
  const int64_t x_size = product(x_dims), y_size = product(y_dims), taps = product(kernel);
  const std::vector<double> xs = to_doubles(x), ws = to_doubles(w),
                            bias = call.has(2) ? to_doubles(call.t(2))
                                               : std::vector<double>(static_cast<size_t>(M));
  std::vector<double> sums(static_cast<size_t>(y_size));
  Tap tap{window, y_dims, x_dims, window.pads_begin, Dims(kernel.size())};
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t m = 0; m < M; ++m) {
      std::fill(sums.begin(), sums.end(), bias[static_cast<size_t>(m)]);
      const int64_t per_group = C / groups, group = m / w.dim(1);
      for (int64_t c = group * per_group; c < (group + 1) * per_group; ++c) {
        const double* image = xs.data() + (n * C + c) * x_size;
        const double* weights = ws.data() + (c * w.dim(1) + m % w.dim(1)) * taps;
        for (Index at(kernel); !at.done(); at.next()) {
          tap.tap = *at;
          tap.rows([&, weight = weights[at.linear()]](int64_t element, int64_t place, int64_t count,
                                                      int64_t step) {
            for (int64_t i = 0; i < count; ++i)
              sums[static_cast<size_t>(element + i * step)] += weight * image[place + i];
          });
        }
      }
      for (int64_t i = 0; i < y_size; ++i)
        y.set_f64((n * M + m) * y_size + i, sums[static_cast<size_t>(i)]);
    }
  return one(std::move(y));
}

// (images, taps, windows) summed into (images, size...)
Result<Tensor> folded(const Call& call, const Tensor& x, int64_t images, const Dims& size,
                      const Dims& kernel, Dims dims) {
  TRY_ASSIGN(const Window window, op::window_of(call.attrs(), kernel.size()));
  Dims windows;
  for (size_t i = 0; i < size.size(); ++i) {
    const auto count = window.count(i, op::Expr(size[i]), op::Expr(kernel[i])).constant();
    if (!count || *count < 0)
      return call.fail("size {} of axis {} is smaller than the kernel, {}", size[i], i, kernel[i]);
    windows.push_back(*count);
  }
  TRY_ASSIGN(const int64_t window_count, op::element_count(windows));
  const int64_t taps = product(kernel), image_size = product(size);
  if (taps < 1 || images * taps * window_count != x.count())
    return call.fail("{} does not hold {} taps of {} windows", op::to_string(x.dims()), taps,
                     window_count);
  TRY_ASSIGN(Tensor y, Tensor::make(x.dtype(), std::move(dims)));
  const std::vector<double> xs = to_doubles(x);
  std::vector<double> sums(static_cast<size_t>(image_size));
  Tap tap{window, size, windows, {}, Dims(kernel.size())};
  for (size_t i = 0; i < size.size(); ++i)
    tap.begin.push_back(window.pads(i, size[i], kernel[i]).first);
  for (int64_t image = 0; image < images; ++image) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (Index at(kernel); !at.done(); at.next()) {
      tap.tap = *at;
      const double* from = xs.data() + (image * taps + at.linear()) * window_count;
      tap.rows([&](int64_t element, int64_t place, int64_t count, int64_t step) {
        for (int64_t i = 0; i < count; ++i)
          sums[static_cast<size_t>(element + i * step)] += from[place + i];
      });
    }
    for (int64_t i = 0; i < image_size; ++i)
      y.set_f64(image * image_size + i, sums[static_cast<size_t>(i)]);
  }
  return y;
}

Result<std::vector<Value>> fold(const Call& call) {
  const Dims dims = call.out[0].dims(), kernel = call.attrs().ints("kernel");
  const auto lead = static_cast<int64_t>(dims.size() - kernel.size());
  const Dims size(dims.begin() + lead, dims.end());
  TRY_ASSIGN(Tensor y, folded(call, call.t(0), product(Dims(dims.begin(), dims.begin() + lead)),
                              size, kernel, dims));
  return one(std::move(y));
}

Result<std::vector<Value>> col2im(const Call& call) {
  if (!call.out[0].is_static())
    return call.fail("image_shape and block_shape must be lists of numbers");
  const Dims dims = call.out[0].dims();
  TRY_ASSIGN(Tensor y,
             folded(call, call.t(0), dims[0] * dims[1], spatial(dims), call.t(2).to_i64s(), dims));
  return one(std::move(y));
}

constexpr Row kRows[] = {
    {"col2im", col2im}, {"conv", conv},     {"conv_transpose", conv_transpose},
    {"fold", fold},     {"window", window},
};

}  // namespace

std::span<const Row> conv_rows() { return kRows; }

}  // namespace tessera::ir::reference
