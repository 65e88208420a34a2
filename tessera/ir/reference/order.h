// Comparing elements of any type.
#pragma once

#include <cmath>

#include "tessera/op/tensor.h"

namespace tessera::ir::reference {

// Negative, zero, positive as element i of a is less than, equal to, greater than element j of b:
// numbers by value with NaN above all, strings by bytes. @pre equal dtypes, not complex
inline int compare(const op::Tensor& a, int64_t i, const op::Tensor& b, int64_t j) {
  auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.dtype() == DType::kString)
    return sign(a.text()[static_cast<size_t>(i)], b.text()[static_cast<size_t>(j)]);
  if (!is_float(a.dtype())) {
    if (is_unsigned_int(a.dtype()))
      return sign(static_cast<uint64_t>(a.i64(i)), static_cast<uint64_t>(b.i64(j)));
    return sign(a.i64(i), b.i64(j));
  }
  const double x = a.f64(i), y = b.f64(j);
  if (std::isnan(x) || std::isnan(y)) return sign(std::isnan(x), std::isnan(y));
  return sign(x, y);
}

}  // namespace tessera::ir::reference
