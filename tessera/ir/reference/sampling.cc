// grid_sample, affine_grid and deform_conv: sampling images at points given as data.
#include "tessera/ir/reference/sampling.h"

#include <algorithm>
#include <cmath>

#include "tessera/op/window.h"

namespace tessera::ir::reference {

double reflect(double x, double low, double high) {
  if (!(high > low)) return low;
  const double span = high - low, away = std::abs(x - low), left = std::fmod(away, 2 * span);
  return low + (left <= span ? left : 2 * span - left);
}

int64_t Image::resolve(int64_t i, size_t axis) const {
  const int64_t size = dims[axis];
  if (i >= 0 && i < size) return i;
  if (padding == Padding::kZeros || size == 0) return -1;
  if (padding == Padding::kBorder) return std::clamp<int64_t>(i, 0, size - 1);
  const double edge = align_corners ? 0 : -0.5, far = static_cast<double>(size) - 1 - edge;
  return std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<double>(i), edge, far)), 0,
                             size - 1);
}

namespace {

// Weights of the elements around, from the ratio past the element to the left; cubic as Keys's with
// a = -0.75.
void weights_of(Interpolation interpolation, double ratio, std::vector<double>& weights) {
  if (interpolation == Interpolation::kLinear) {
    weights = {1 - ratio, ratio};
    return;
  }
  constexpr double a = -0.75;
  auto inner = [](double t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
  auto outer = [](double t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
  weights = {outer(1 + ratio), inner(ratio), inner(1 - ratio), outer(2 - ratio)};
}

}  // namespace

double Image::at(std::span<const double> point) const {
  constexpr double kFar = 1e12;  // beyond any image
  const size_t axes = dims.size();
  if (interpolation == Interpolation::kNearest) {
    int64_t place = 0;
    for (size_t i = 0; i < axes; ++i) {
      if (!(std::abs(point[i]) < kFar)) return 0;
      const int64_t index = resolve(static_cast<int64_t>(std::nearbyint(point[i])), i);
      if (index < 0) return 0;
      place += index * strides[i];
    }
    return data[place];
  }
  const int64_t before = interpolation == Interpolation::kCubic ? 1 : 0,
                taps = interpolation == Interpolation::kCubic ? 4 : 2;
  std::vector<std::vector<double>> weights(axes);
  std::vector<int64_t> first(axes);
  for (size_t i = 0; i < axes; ++i) {
    if (!(std::abs(point[i]) < kFar)) return 0;
    const double floor = std::floor(point[i]);
    weights_of(interpolation, point[i] - floor, weights[i]);
    first[i] = static_cast<int64_t>(floor) - before;
  }
  double sum = 0;
  for (Index tap(Dims(axes, taps)); !tap.done(); tap.next()) {
    int64_t place = 0;
    double weight = 1;
    bool inside = true;
    for (size_t i = 0; i < axes && inside; ++i) {
      const int64_t index = resolve(first[i] + tap[i], i);
      inside = index >= 0;
      place += index * strides[i];
      weight *= weights[i][static_cast<size_t>(tap[i])];
    }
    if (inside) sum += weight * data[place];
  }
  return sum;
}

namespace {

Dims spatial(const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); }
int64_t product(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// A coordinate in [-1, 1] in elements, with the precision that the grid has.
template <class T>
double denormalise(double coordinate, int64_t size, bool align_corners) {
  const T n = static_cast<T>(coordinate), length = static_cast<T>(size);
  const T x = align_corners ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2;
  return static_cast<double>(x);
}

Result<std::vector<Value>> grid_sample(const Call& call) {
  const Tensor &x = call.t(0), &grid = call.t(1);
  const std::string mode = call.attrs().s("mode", "linear"),
                    padding = call.attrs().s("padding", "zeros");
  const bool align = call.attrs().i("align_corners") != 0;
  TRY_ASSIGN(Tensor y, call.make(0));
  if (y.count() == 0) return one(std::move(y));
  const Dims dims = spatial(x.dims());
  const size_t axes = dims.size();
  const int64_t x_size = product(dims), points = product(spatial(y.dims())), C = x.dim(1);
  const std::vector<double> xs = to_doubles(x), gs = to_doubles(grid);
  Image image{xs.data(), dims, op::strides_of(dims)};
  image.align_corners = align;
  image.interpolation = mode == "nearest" ? Interpolation::kNearest
                        : mode == "cubic" ? Interpolation::kCubic
                                          : Interpolation::kLinear;
  image.padding = padding == "border"       ? Padding::kBorder
                  : padding == "reflection" ? Padding::kReflection
                                            : Padding::kZeros;
  std::vector<double> point(axes);
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t p = 0; p < points; ++p) {
      for (size_t i = 0; i < axes; ++i) {
        // Coordinates are listed from the last axis to the first.
        const double given =
            gs[static_cast<size_t>((n * points + p) * static_cast<int64_t>(axes)) + axes - 1 - i];
        double v = grid.dtype() == DType::kF64 ? denormalise<double>(given, dims[i], align)
                                               : denormalise<float>(given, dims[i], align);
        if (image.interpolation == Interpolation::kNearest) v = std::nearbyint(v);
        const double low = align ? 0 : -0.5, high = static_cast<double>(dims[i]) - 1 - low;
        if ((v < low || v > high) && image.padding == Padding::kBorder)
          v = std::clamp(v, 0.0, static_cast<double>(dims[i] - 1));
        if ((v < low || v > high) && image.padding == Padding::kReflection)
          v = reflect(v, low, high);
        point[i] = v;
      }
      for (int64_t c = 0; c < C; ++c) {
        image.data = xs.data() + (n * C + c) * x_size;
        y.set_f64((n * C + c) * points + p, image.at(point));
      }
    }
  return one(std::move(y));
}

// Positions of evenly spaced elements in [-1, 1]: at their centres, or with the outer centres at
// the ends.
double position(int64_t i, int64_t size, bool align_corners) {
  const double n = static_cast<double>(size), at = static_cast<double>(i);
  if (align_corners) return size == 1 ? -1 : -1 + 2 * at / (n - 1);
  return -1 + (2 * at + 1) / n;
}

Result<std::vector<Value>> affine_grid(const Call& call) {
  const Tensor& theta = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  const bool align = call.attrs().i("align_corners") != 0;
  const Dims dims(y.dims().begin() + 1, y.dims().end() - 1);
  const int64_t axes = static_cast<int64_t>(dims.size()), points = product(dims);
  for (int64_t n = 0; n < theta.dim(0); ++n)
    for (Index at(dims); !at.done(); at.next())
      for (int64_t row = 0; row < axes; ++row) {
        const int64_t base = (n * axes + row) * (axes + 1);
        double sum = theta.f64(base + axes);
        for (int64_t k = 0; k < axes; ++k) {
          const auto axis = static_cast<size_t>(axes - 1 - k);  // x first
          sum += theta.f64(base + k) * position(at[axis], dims[axis], align);
        }
        y.set_f64((n * points + at.linear()) * axes + row, sum);
      }
  return one(std::move(y));
}

Result<std::vector<Value>> deform_conv(const Call& call) {
  const Tensor &x = call.t(0), &w = call.t(1), &offset = call.t(2);
  const int64_t groups = call.attrs().i("groups", 1),
                offset_groups = call.attrs().i("offset_groups", 1);
  const Dims dims = spatial(x.dims()), kernel = spatial(w.dims());
  TRY_ASSIGN(const op::Window window, op::window_of(call.attrs(), kernel.size()));
  TRY_ASSIGN(Tensor y, call.make(0));
  if (y.count() == 0) return one(std::move(y));
  const Dims outs = spatial(y.dims());
  const int64_t axes = static_cast<int64_t>(kernel.size()), taps = product(kernel),
                points = product(outs), C = x.dim(1), M = w.dim(0);
  const int64_t per_group = w.dim(1), x_size = product(dims);
  Dims offset_dims{x.dim(0), offset_groups * taps * axes},
      mask_dims{x.dim(0), offset_groups * taps};
  offset_dims.insert(offset_dims.end(), outs.begin(), outs.end());
  mask_dims.insert(mask_dims.end(), outs.begin(), outs.end());
  if (C % offset_groups != 0)
    return call.fail("{} channels do not divide into {} offset groups", C, offset_groups);
  if (offset.dims() != offset_dims)
    return call.fail("offset is {}, need {}", op::to_string(offset.dims()),
                     op::to_string(offset_dims));
  if (call.has(4) && call.t(4).dims() != mask_dims)
    return call.fail("mask is {}, need {}", op::to_string(call.t(4).dims()),
                     op::to_string(mask_dims));
  const std::vector<double> xs = to_doubles(x), ws = to_doubles(w), os = to_doubles(offset);
  const std::vector<double> ms = call.has(4) ? to_doubles(call.t(4)) : std::vector<double>();
  Image image{xs.data(), dims, op::strides_of(dims)};
  std::vector<double> point(kernel.size()), samples(static_cast<size_t>(C * taps));
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (Index at(outs); !at.done(); at.next()) {
      for (int64_t c = 0; c < C; ++c) {
        image.data = xs.data() + (n * C + c) * x_size;
        const int64_t group = n * offset_groups + c / (C / offset_groups);
        for (Index tap(kernel); !tap.done(); tap.next()) {
          const int64_t which = group * taps + tap.linear();
          for (size_t i = 0; i < kernel.size(); ++i)
            point[i] = static_cast<double>(at[i] * window.strides[i] +
                                           tap[i] * window.dilations[i] - window.pads_begin[i]) +
                       os[static_cast<size_t>((which * axes + static_cast<int64_t>(i)) * points +
                                              at.linear())];
          const double mask =
              ms.empty() ? 1 : ms[static_cast<size_t>(which * points + at.linear())];
          samples[static_cast<size_t>(c * taps + tap.linear())] = mask * image.at(point);
        }
      }
      for (int64_t m = 0; m < M; ++m) {
        double sum = call.has(3) ? call.t(3).f64(m) : 0;
        const int64_t first = m / (M / groups) * per_group * taps;
        for (int64_t k = 0; k < per_group * taps; ++k)
          sum += ws[static_cast<size_t>(m * per_group * taps + k)] *
                 samples[static_cast<size_t>(first + k)];
        y.set_f64((n * M + m) * points + at.linear(), sum);
      }
    }
  return one(std::move(y));
}

constexpr Row kRows[] = {
    {"affine_grid", affine_grid},
    {"deform_conv", deform_conv},
    {"grid_sample", grid_sample},
};

}  // namespace

std::span<const Row> sampling_rows() { return kRows; }

}  // namespace tessera::ir::reference
