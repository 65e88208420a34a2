#include "tessera/op/resize.h"

#include <algorithm>
#include <cmath>

#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

constexpr double kMaxSize = 4e18;

Floats floats_of(const Tensor& t) {
  Floats values;
  for (int64_t i = 0; i < t.count(); ++i) values.push_back(t.f64(i));
  return values;
}

// Sizes as asked for, in proportion to x where a policy says so: every axis scaled by the least or
// the greatest scale.
Status apply_sizes(const Attrs& attrs, const Ints& sizes, std::vector<ResizeAxis>& axes) {
  const std::string policy = attrs.s("policy", "stretch");
  double scale = policy == "not_larger" ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0) return error(Code::kInvalidArgument, "size {} is {}", i, sizes[i]);
    axes[i].out = sizes[i];
    axes[i].scale =
        axes[i].in == 0 ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(axes[i].in);
    scale =
        policy == "not_larger" ? std::min(scale, axes[i].scale) : std::max(scale, axes[i].scale);
  }
  if (policy == "stretch") return {};
  if (policy != "not_larger" && policy != "not_smaller")
    return error(Code::kInvalidArgument, "unknown policy '{}'", policy);
  for (ResizeAxis& axis : axes) {
    if (scale * static_cast<double>(axis.in) > kMaxSize)
      return error(Code::kOutOfRange, "size {} times {} is too large", axis.in, scale);
    axis.scale = scale;
    axis.out = static_cast<int64_t>(scale * static_cast<double>(axis.in) + 0.5);
  }
  return {};
}

Status apply_scales(const Floats& scales, std::vector<ResizeAxis>& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto out = scales[i] > 0 ? scaled_size(Expr(axes[i].in), scales[i]) : std::nullopt;
    if (!out)
      return error(Code::kInvalidArgument, "scale {} is {}, of size {}", i, scales[i], axes[i].in);
    axes[i].scale = scales[i];
    axes[i].out = *out->constant();
  }
  return {};
}

}  // namespace

std::optional<Expr> scaled_size(const Expr& size, double scale) {
  const auto known = size.constant();
  if (!std::isfinite(scale) || scale < 0 ||
      (known && static_cast<double>(*known) * scale > kMaxSize))
    return std::nullopt;
  for (int64_t q = 1; q <= 64; ++q) {
    const double p = std::round(scale * static_cast<double>(q));
    if (p > 1e6 || static_cast<float>(p / static_cast<double>(q)) != static_cast<float>(scale))
      continue;
    return floor_div(size * Expr(static_cast<int64_t>(p)), Expr(q));
  }
  if (!known) return std::nullopt;
  return Expr(
      static_cast<int64_t>(std::floor(static_cast<float>(scale) * static_cast<float>(*known))));
}

Result<std::vector<ResizeAxis>> resize_axes(const Attrs& attrs, const Dims& x, const Tensor* roi,
                                            const Tensor* scales, const Tensor* sizes) {
  std::vector<ResizeAxis> axes;
  const int rank = static_cast<int>(x.size());
  if (attrs.has("axes")) {
    for (int64_t a : attrs.ints("axes")) {
      TRY_ASSIGN(const int axis, normalize_axis(a, rank));
      axes.push_back({.axis = axis});
    }
  } else {
    for (int a = 0; a < rank; ++a) axes.push_back({.axis = a});
  }
  for (ResizeAxis& axis : axes) axis.in = axis.out = x[static_cast<size_t>(axis.axis)];
  const Floats given_scales = scales ? floats_of(*scales) : attrs.floats("scales");
  const Ints given_sizes = sizes ? sizes->to_i64s() : attrs.ints("sizes");
  const Floats given_roi = roi ? floats_of(*roi) : attrs.floats("roi");
  if ((!given_scales.empty() && given_scales.size() != axes.size()) ||
      (!given_sizes.empty() && given_sizes.size() != axes.size()) ||
      (!given_roi.empty() && given_roi.size() != 2 * axes.size()))
    return error(Code::kInvalidArgument, "{} scales, {} sizes and {} bounds of regions for {} axes",
                 given_scales.size(), given_sizes.size(), given_roi.size(), axes.size());
  if (given_scales.empty() == given_sizes.empty() && !axes.empty())
    return error(Code::kInvalidArgument, "needs either scales or sizes, got {} and {} of them",
                 given_scales.size(), given_sizes.size());
  for (size_t i = 0; i < given_roi.size() / 2; ++i) {
    axes[i].begin = given_roi[i];
    axes[i].end = given_roi[axes.size() + i];
  }
  TRY(given_sizes.empty() ? apply_scales(given_scales, axes)
                          : apply_sizes(attrs, given_sizes, axes));
  return axes;
}

namespace {

// Where element o of the result lies in the input. L: sizes; `exact` is the size of the result
// before it is rounded down.
struct Coordinates {
  std::string_view name;
  double (*at)(double o, const ResizeAxis& a, double exact);
};

double in(const ResizeAxis& a) { return static_cast<double>(a.in); }
double half_pixel(double o, const ResizeAxis& a, double) { return (o + 0.5) / a.scale - 0.5; }

constexpr Coordinates kCoordinates[] = {
    {"half_pixel", half_pixel},
    {"half_pixel_symmetric",
     [](double o, const ResizeAxis& a, double exact) {
       return in(a) / 2 * (1 - static_cast<double>(a.out) / exact) + (o + 0.5) / a.scale - 0.5;
     }},
    {"pytorch_half_pixel",
     [](double o, const ResizeAxis& a, double exact) {
       return a.out == 1 && exact == 1 ? -0.5 : half_pixel(o, a, exact);
     }},
    {"align_corners", [](double o, const ResizeAxis& a,
                         double exact) { return exact == 1 ? 0 : o * (in(a)-1) / (exact - 1); }},
    {"asymmetric", [](double o, const ResizeAxis& a, double) { return o / a.scale; }},
    {"tf_half_pixel_for_nn",
     [](double o, const ResizeAxis& a, double) { return (o + 0.5) / a.scale; }},
    {"tf_crop_and_resize",
     [](double o, const ResizeAxis& a, double exact) {
       const double from_begin = exact == 1 ? (a.end - a.begin) * (in(a)-1) / 2
                                            : o * (a.end - a.begin) * (in(a)-1) / (exact - 1);
       return from_begin + a.begin * (in(a)-1);
     }},
};

// Kernels of interpolation over the distance to an element.
double triangle(double x, double) { return std::max(0.0, 1 - std::abs(x)); }
// R. Keys, Cubic convolution interpolation, 1981, equation 4.
double keys(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double nearest(std::string_view rounding, double floor, double ratio) {
  if (rounding == "floor") return ratio == 1 ? floor + 1 : floor;
  if (rounding == "ceil") return floor + 1;
  if (rounding == "round_prefer_ceil") return ratio >= 0.5 ? floor + 1 : floor;
  return ratio > 0.5 ? floor + 1 : floor;
}

}  // namespace

Result<Taps> resize_taps(const Attrs& attrs, const ResizeAxis& axis) {
  const std::string mode = attrs.s("mode", "nearest"),
                    coordinates = attrs.s("coordinates", "half_pixel");
  const std::string rounding = attrs.s("nearest", "round_prefer_floor");
  const auto transform = std::find_if(std::begin(kCoordinates), std::end(kCoordinates),
                                      [&](auto& row) { return row.name == coordinates; });
  if (transform == std::end(kCoordinates))
    return error(Code::kInvalidArgument, "unknown coordinates '{}'", coordinates);
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return error(Code::kInvalidArgument, "unknown mode '{}'", mode);
  const bool crop = coordinates == "tf_crop_and_resize", exclude = attrs.i("exclude_outside") != 0,
             antialias = attrs.i("antialias") != 0;
  const double a = attrs.f("cubic_a", -0.75), stretch = antialias ? std::min(axis.scale, 1.0) : 1;
  const double exact = axis.scale * in(axis), last = in(axis)-1;
  auto* kernel = mode == "linear" ? triangle : keys;
  const double lowest = std::floor((mode == "linear" ? -1 : -2) / stretch) + 1;
  Taps taps;
  auto add = [&](double index, double weight) {
    taps.indices.push_back(static_cast<int64_t>(std::clamp(index, 0.0, last)));
    taps.weights.push_back(weight);
  };
  for (int64_t o = 0; o < axis.out; ++o) {
    const double x = transform->at(static_cast<double>(o), axis, exact);
    if (!std::isfinite(x))
      return error(Code::kInvalidArgument, "axis {}: element {} lies at {}", axis.axis, o, x);
    taps.outside.push_back(crop && (x < 0 || x > last));
    // The element to the left, strictly, so that the ratio is in (0, 1].
    const double floor = std::ceil(x) - 1, ratio = x - floor;
    if (mode == "nearest") {
      add(nearest(rounding, floor, ratio), 1);
    } else {
      const size_t begin = taps.weights.size();
      double sum = 0;
      for (double i = lowest; i < 2 - lowest; ++i) {
        const bool outside = floor + i < 0 || floor + i > last;
        const double weight = exclude && outside ? 0 : kernel(stretch * (i - ratio), a);
        add(floor + i, weight);
        sum += weight;
      }
      if ((antialias || exclude) && sum != 0)
        for (size_t i = begin; i < taps.weights.size(); ++i) taps.weights[i] /= sum;
    }
    taps.first.push_back(static_cast<int64_t>(taps.indices.size()));
  }
  return taps;
}

}  // namespace tessera::op
