// How results are cut into tiles of products.
#pragma once

#include "tessera/kernels/cpu/isa/tile_product.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Vectors of columns in `count` parts of about the same width.
struct Widths {
  int64_t vecs, count;

  // Tiles of `rows` rows.
  int64_t tiles(int64_t rows) const {
    const int64_t low = vecs / count, wider = vecs % count;
    const auto high = [&](int64_t v) {
      const int64_t most = tile_rows(v * kLanes);
      return (rows + most - 1) / most;
    };
    return wider * high(low + 1) + (count - wider) * high(low);
  }
};

// Calls body(m, cols) for columns [m0, m1) in order, m0 at the beginning of a panel, in widths for
// which `rows` rows take the fewest tiles, each in whole panels or within one.
template <class Body>
TESSERA_INLINE void each_width(int64_t m0, int64_t m1, int64_t rows, const Body& body) {
  if constexpr (kLanes < kPanel) {
    static_assert(kLanes == kPanel || kPanel % kTileCols == 0);
    for (int64_t m = m0; m < m1; m += kTileCols) body(m, least<int64_t>(m1 - m, kTileCols));
    return;
  }
  const int64_t vecs = (m1 - m0 + kLanes - 1) / kLanes;
  Widths widths{vecs, (vecs + kTileVecs - 1) / kTileVecs};
  const Widths narrower{vecs, (vecs + kTileVecs - 2) / (kTileVecs - 1)};
  if (narrower.tiles(rows) < widths.tiles(rows)) widths = narrower;
  for (int64_t m = m0, left = widths.count; m < m1; --left) {
    const int64_t v = ((m1 - m + kLanes - 1) / kLanes + left - 1) / left;
    const int64_t cols = least(m1 - m, v * kLanes);
    body(m, cols);
    m += cols;
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
