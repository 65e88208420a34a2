// Weights in a type of 16 bits, for products with activations in f32: panels of kPanel columns by
// pairs of k, so that a pair of a panel is one cache line.
//   bf16: (panel, k / 2, column, k % 2), which is what vdpbf16ps and AMX read
//   f16:  (panel, k, column)
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu {

inline constexpr int64_t kPairSize = 2 * kPanel;  // elements of a pair of a panel

constexpr int64_t pairs_of(int64_t depth) { return (depth + 1) / 2; }
// Elements of a packed matrix (depth, cols).
constexpr int64_t narrow_size(int64_t depth, int64_t cols) {
  return panels_of(cols) * kPairSize * pairs_of(depth);
}

// b (k, n), element (k, n) at k * k_stride + n * n_stride, to panels; what is beyond `cols` and
// `depth` is 0.
void pack_bf16(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
               uint16_t* panels);
void pack_f16(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
              uint16_t* panels);

}  // namespace tessera::kernels::cpu
