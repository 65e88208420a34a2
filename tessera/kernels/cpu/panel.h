// How the right-hand side of a product is packed, whatever the instruction set: panels of kPanel
// columns, (panel, k, column), so that a tile of any width reads each of its panels in order.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

inline constexpr int64_t kPanel = 16;  // columns; one cache line of floats

constexpr int64_t panels_of(int64_t cols) { return (cols + kPanel - 1) / kPanel; }
// Floats of a packed matrix (depth, cols).
constexpr int64_t packed_size(int64_t depth, int64_t cols) {
  return panels_of(cols) * kPanel * depth;
}

// b (k, n), element (k, n) at k * k_stride + n * n_stride, to panels; columns beyond `cols` are 0.
// Meant for what is packed once: strides of any kind.
void pack_panels(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
                 float* panels);

}  // namespace tessera::kernels::cpu
