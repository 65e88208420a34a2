// Products as a chip's matrix unit takes them.
#pragma once

#include <optional>
#include <string_view>

#include "tessera/base/dtype.h"
#include "tessera/chip/chip.h"
#include "tessera/hal/sim/numerics.h"

namespace tessera::hal::sim {

class Product {
 public:
  // For operands of this type or mode. Chips that tell nothing of it sum in order.
  static Result<Product> of(const chip::Chip& chip, std::string_view type);

  // c += a b, row-major and packed, c of the type that the unit sums in.
  void multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) const;
  void multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, int32_t* c) const;
  void multiply(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) const;

 private:
  std::optional<MatrixUnit> unit_;
};

}  // namespace tessera::hal::sim
