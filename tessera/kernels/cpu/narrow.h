// Weights in a type of 16 bits, for products with activations in f32: panels of kPanel columns by
// pairs of k, so that a pair of a panel is one cache line. A panel's depth is filled up with zeros
// to whole tiles.
//   bf16: (panel, k / 2, column, k % 2), which is what vdpbf16ps and AMX read
//   f16:  (panel, k, column)
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu {

inline constexpr int64_t kPairSize = 2 * kPanel;  // elements of a pair of a panel

inline constexpr int64_t kTileDepth = 32;  // k of a tile of bf16
constexpr int64_t depth_tiles(int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }
constexpr int64_t pairs_of(int64_t depth) { return depth_tiles(depth) * kTileDepth / 2; }
// Elements of a packed matrix (depth, cols).
constexpr int64_t narrow_size(int64_t depth, int64_t cols) {
  return panels_of(cols) * kPairSize * pairs_of(depth);
}
// Elements of a's rows, rounded: whole tiles of `height` rows.
constexpr int64_t rounded_size(int64_t rows, int64_t depth, int64_t height) {
  return (rows + height - 1) / height * height * depth_tiles(depth) * kTileDepth;
}

// b (k, n), element (k, n) at k * k_stride + n * n_stride, to panels; what is beyond `cols` and
// `depth` is 0.
void pack_bf16(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
               uint16_t* panels);
void pack_f16(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
              uint16_t* panels);

}  // namespace tessera::kernels::cpu
