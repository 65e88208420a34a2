// Operands as the kernels read them.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/hal/sim/rule.h"

namespace tessera::hal::sim {

// Of one row (width 1), or of a strip of columns (width kStrip), for one block of k:
// [products][width]. Groups lie one after the other.
struct Unpacked {
  std::vector<float> values;       // as round_operand leaves them
  std::vector<double> wide;        // of fused sums: the same
  std::vector<int32_t> exponents;  // of aligned sums
  // By group:
  std::vector<int> spreads;      // of exact sums: binary places of the widest column
  std::vector<int32_t> largest;  // of aligned sums: exponent
  std::vector<char> special;     // whether it has infinities or NaNs

  // x[p, j] is at x[p * stride + j], of a row at x[p]; columns beyond `columns` are zeros.
  void unpack(const Rule& rule, const float* x, int64_t stride, int64_t products, int64_t columns,
              int64_t width);
};

bool any_special(const float* values, int64_t count);

}  // namespace tessera::hal::sim
