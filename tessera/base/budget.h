// The error budget: how far a sum of products may lie from its exact value. Tests, compare and
// explain quote it.
//
//   |d| <= u_out |ref| + (c u_acc sqrt(K) + 2 u_in) sum(|a| |b|)
//
// u: unit roundoff (half the distance from 1 to the next value) of the type of the output and of
// the accumulator, and of what the inputs are rounded to first (0: they are not); K: number of
// products; sum(|a| |b|): what the sum would be without cancellation.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "tessera/base/dtype.h"
#include "tessera/base/float.h"

namespace tessera {

// c of the budget: sums of products as written, and forms that transform their inputs first
// (Winograd and its like; a form that needs more is refused).
inline constexpr double kDirectForm = 4;
inline constexpr double kTransformedForm = 64;

// Zero for integers and bool, which are exact.
inline double unit_roundoff(DType dtype) {
  if (dtype == DType::kC64) return float_format(DType::kF32).unit_roundoff();
  if (dtype == DType::kC128) return float_format(DType::kF64).unit_roundoff();
  return is_float(dtype) ? float_format(dtype).unit_roundoff() : 0.0;
}

struct ErrorBudget {
  DType out = DType::kF32;
  DType accumulate = DType::kF32;
  double c = kDirectForm;
  std::optional<DType> rounded_to = {};  // the inputs, before they are multiplied

  // The bound on |value - ref|. `products` is K; `sum_abs` is sum(|a| |b|).
  double bound(double ref, int64_t products, double sum_abs) const {
    const double inputs = rounded_to ? 2 * unit_roundoff(*rounded_to) : 0;
    return unit_roundoff(out) * std::abs(ref) +
           (c * unit_roundoff(accumulate) * std::sqrt(static_cast<double>(products)) + inputs) *
               sum_abs;
  }

  // Whether `value` keeps the bound. NaN matches only NaN, and an infinity only itself.
  bool holds(double value, double ref, int64_t products, double sum_abs) const {
    if (std::isnan(ref) || std::isnan(value)) return std::isnan(ref) && std::isnan(value);
    if (std::isinf(ref) || std::isinf(value)) return ref == value;
    return std::abs(value - ref) <= bound(ref, products, sum_abs);
  }
};

}  // namespace tessera
