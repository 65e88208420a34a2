#include "tessera/hal/sim/product.h"

namespace tessera::hal::sim {
namespace {

template <class In, class Sum>
void in_order(int64_t m, int64_t n, int64_t k, const In* a, const In* b, Sum* c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const auto x = static_cast<Sum>(a[i * k + p]);
      const In* row = b + p * n;
      Sum* sums = c + i * n;
      for (int64_t j = 0; j < n; ++j) sums[j] += x * static_cast<Sum>(row[j]);
    }
}

}  // namespace

Result<Product> Product::of(const chip::Chip& chip, std::string_view type) {
  Product p;
  if (chip.numerics.contains(type)) {
    TRY_ASSIGN(MatrixUnit unit, MatrixUnit::make(chip, type));
    p.unit_ = std::move(unit);
  }
  return p;
}

void Product::multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                       float* c) const {
  if (unit_) return unit_->multiply(m, n, k, a, k, b, n, c, n);
  in_order(m, n, k, a, b, c);
}
void Product::multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                       int32_t* c) const {
  if (unit_) return unit_->multiply(m, n, k, a, k, b, n, c, n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) {
        const auto term = static_cast<int64_t>(a[i * k + p]) * static_cast<int64_t>(b[p * n + j]);
        c[i * n + j] =
            static_cast<int32_t>(static_cast<uint32_t>(c[i * n + j]) + static_cast<uint32_t>(term));
      }
}
void Product::multiply(int64_t m, int64_t n, int64_t k, const double* a, const double* b,
                       double* c) const {
  if (unit_) return unit_->multiply(m, n, k, a, k, b, n, c, n);
  in_order(m, n, k, a, b, c);
}

}  // namespace tessera::hal::sim
