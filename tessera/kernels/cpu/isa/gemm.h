// The register-tiled product of packed panels, shared by dot and convolution.
#pragma once

#include "tessera/kernels/cpu/dot_args.h"
#include "tessera/kernels/cpu/isa/vec.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Register tile: kTileRows x kTileVecs accumulators; both divide the panel.
constexpr int kTileRows = kRegisters == 32 ? 12 : kLanes == 8 ? 6 : 4, kTileVecs = 2;
constexpr int kTileCols = kTileVecs * kLanes;

// c (R, V * lanes) = a (k, row; kPanelRows apart) * b (k, column; ldb apart), added to c or to
// `bias` (per row; may be null).
template <int R, int V>
static void tile(int64_t depth, const float* a, const float* b, int64_t ldb, float* c, int64_t ldc,
                 bool accumulate, const float* bias) {
  Vec sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v)
      sum[r][v] = accumulate ? load(c + r * ldc + v * kLanes) : bias ? splat(bias[r]) : Vec{};
  for (int64_t k = 0; k < depth; ++k, a += kPanelRows, b += ldb) {
    Vec row[V];
    for (int v = 0; v < V; ++v) row[v] = load(b + v * kLanes);
    for (int r = 0; r < R; ++r) {
      const Vec x = splat(a[r]);
      for (int v = 0; v < V; ++v) sum[r][v] += x * row[v];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store(c + r * ldc + v * kLanes, sum[r][v]);
}

using TileFn = void (*)(int64_t, const float*, const float*, int64_t, float*, int64_t, bool,
                        const float*);

template <int R>
constexpr TileFn tile_for(int rows, int vecs) {
  if constexpr (R == 0) {
    return nullptr;
  } else {
    if (rows != R) return tile_for<R - 1>(rows, vecs);
    return vecs == 1 ? tile<R, 1> : tile<R, kTileVecs>;
  }
}

struct TileTable {
  TileFn fn[kTileRows + 1][kTileVecs + 1] = {};
  constexpr TileTable() {
    for (int r = 1; r <= kTileRows; ++r)
      for (int v = 1; v <= kTileVecs; ++v) fn[r][v] = tile_for<kTileRows>(r, v);
  }
};
static constexpr TileTable kTiles;

// One panel of a (rows <= kPanelRows) times one of b (cols <= kPanelCols, readable up to the next
// full vector).
[[maybe_unused]] static void panel_product(int64_t rows, int64_t cols, int64_t depth,
                                           const float* a, const float* b, int64_t ldb, float* c,
                                           int64_t ldc, bool accumulate, const float* bias) {
  for (int64_t j = 0; j < cols; j += kTileCols) {
    const int64_t width = least<int64_t>(kTileCols, cols - j);
    const int vecs = static_cast<int>((width + kLanes - 1) / kLanes);
    for (int64_t i = 0; i < rows; i += kTileRows) {
      const int height = static_cast<int>(least<int64_t>(kTileRows, rows - i));
      const TileFn fn = kTiles.fn[height][vecs];
      const float* tile_bias = bias ? bias + i : nullptr;
      float* to = c + i * ldc + j;
      if (width == vecs * kLanes) {
        fn(depth, a + i, b + j, ldb, to, ldc, accumulate, tile_bias);
        continue;
      }
      float edge[kTileRows * kTileCols];
      if (accumulate)
        for (int r = 0; r < height; ++r)
          for (int64_t x = 0; x < vecs * kLanes; ++x)
            edge[r * kTileCols + x] = x < width ? to[r * ldc + x] : 0.0f;
      fn(depth, a + i, b + j, ldb, edge, kTileCols, accumulate, tile_bias);
      for (int r = 0; r < height; ++r)
        for (int64_t x = 0; x < width; ++x) to[r * ldc + x] = edge[r * kTileCols + x];
    }
  }
}

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadU __attribute__((vector_size(16), aligned(4), may_alias));

// `rows` rows of `depth` floats, lda apart, into a panel: (k, row). Rows beyond are not written.
[[maybe_unused]] static void pack_rows(const float* a, int64_t lda, int64_t rows, int64_t depth,
                                       float* panel) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* from = a + r * lda;
    float* to = panel + r;
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      Quad q[4];
      for (int i = 0; i < 4; ++i) q[i] = *reinterpret_cast<const QuadU*>(from + i * lda + k);
      const Quad ab_low = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5),
                 ab_high = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
      const Quad cd_low = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5),
                 cd_high = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
      const Quad out[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                           __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                           __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                           __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
      for (int i = 0; i < 4; ++i) *reinterpret_cast<QuadU*>(to + (k + i) * kPanelRows) = out[i];
    }
    for (; k < depth; ++k)
      for (int i = 0; i < 4; ++i) to[k * kPanelRows + i] = from[i * lda + k];
  }
  for (; r < rows; ++r)
    for (int64_t k = 0; k < depth; ++k) panel[k * kPanelRows + r] = a[r * lda + k];
}

// `cols` columns of `depth` rows, ldb apart, into panels of kPanelCols columns, `depth` rows each;
// the last is filled with 0.
[[maybe_unused]] static void pack_cols(const float* b, int64_t ldb, int64_t cols, int64_t depth,
                                       float* panels) {
  for (int64_t j = 0; j < cols; j += kPanelCols, panels += depth * kPanelCols) {
    const int64_t width = least<int64_t>(kPanelCols, cols - j);
    const float* from = b + j;
    if (width == kPanelCols) {
      for (int64_t k = 0; k < depth; ++k)
        for (int v = 0; v < kPanelCols / kLanes; ++v)
          store(panels + k * kPanelCols + v * kLanes, load(from + k * ldb + v * kLanes));
    } else {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t x = 0; x < kPanelCols; ++x)
          panels[k * kPanelCols + x] = x < width ? from[k * ldb + x] : 0.0f;
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
