#include "tessera/kernels/cpu/narrow.h"

#include <algorithm>

#include "tessera/base/float.h"

namespace tessera::kernels::cpu {
namespace {

// `at(k, j)`: the place of column j of row k in a panel.
template <class Round, class At>
void pack(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
          uint16_t* panels, Round round, At at) {
  // A run of k in each of a panel's columns is one cache line where k is innermost.
  constexpr int64_t kRun = 16;
  const int64_t size = pairs_of(depth) * kPairSize;
  for (int64_t n = 0; n < cols; n += kPanel, panels += size) {
    const int64_t width = std::min(kPanel, cols - n);
    const float* from = b + n * n_stride;
    if (width < kPanel || depth % kTileDepth != 0) std::fill(panels, panels + size, uint16_t{0});
    for (int64_t k0 = 0; k0 < depth; k0 += kRun) {
      const int64_t k1 = std::min(depth, k0 + kRun);
      for (int64_t j = 0; j < width; ++j)
        for (int64_t k = k0; k < k1; ++k)
          panels[at(k, j)] = round(from[k * k_stride + j * n_stride]);
    }
  }
}

}  // namespace

void pack_bf16(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
               uint16_t* panels) {
  pack(b, k_stride, n_stride, depth, cols, panels, f32_to_bf16,
       [](int64_t k, int64_t j) { return k / 2 * kPairSize + 2 * j + k % 2; });
}

void pack_f16(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
              uint16_t* panels) {
  pack(b, k_stride, n_stride, depth, cols, panels, f32_to_f16,
       [](int64_t k, int64_t j) { return k * kPanel + j; });
}

}  // namespace tessera::kernels::cpu
