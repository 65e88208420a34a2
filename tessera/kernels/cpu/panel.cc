#include "tessera/kernels/cpu/panel.h"

#include <algorithm>
#include <cstring>

namespace tessera::kernels::cpu {

void pack_panels(const float* b, int64_t k_stride, int64_t n_stride, int64_t depth, int64_t cols,
                 float* panels) {
  // By squares: a run of k in each of a panel's columns is one cache line where k is innermost.
  constexpr int64_t kRun = 16;
  for (int64_t n = 0; n < cols; n += kPanel, panels += depth * kPanel) {
    const int64_t width = std::min(kPanel, cols - n);
    const float* from = b + n * n_stride;
    if (width < kPanel) std::fill(panels, panels + depth * kPanel, 0.0f);
    if (n_stride == 1) {
      for (int64_t k = 0; k < depth; ++k)
        std::memcpy(panels + k * kPanel, from + k * k_stride,
                    static_cast<size_t>(width) * sizeof(float));
      continue;
    }
    for (int64_t k0 = 0; k0 < depth; k0 += kRun) {
      const int64_t k1 = std::min(depth, k0 + kRun);
      for (int64_t j = 0; j < width; ++j)
        for (int64_t k = k0; k < k1; ++k)
          panels[k * kPanel + j] = from[k * k_stride + j * n_stride];
    }
  }
}

}  // namespace tessera::kernels::cpu
