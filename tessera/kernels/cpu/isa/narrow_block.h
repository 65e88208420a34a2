// Products with weights in 16 bits (narrow.h) in vector registers, a block at a time. Weights are
// widened; pairs of bf16 are multiplied as they are where there is an instruction for that. Each
// source that includes this has its own.
#pragma once

#include "tessera/kernels/cpu/isa/fuse.h"
#include "tessera/kernels/cpu/isa/half.h"
#include "tessera/kernels/cpu/narrow.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// The widest tile, and the rows of a tile of so many columns: what the registers hold.
constexpr int kTileVecs = kLanes == 16 ? 4 : 2;
constexpr int kTileCols = kTileVecs * kLanes;
constexpr int kMaxTileRows = kLanes == 16 ? 8 : 6;
constexpr int tile_rows(int64_t cols) {
  return kLanes == 16 && cols > 3 * kLanes ? 6 : kMaxTileRows;
}

typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
typedef uint32_t BitsU __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

// Each type of weights says where vector `v` of a pair of rows begins in its panel, what a step of
// the product does, and how A must lie: as `A`, in whole pairs where kRounds.

struct F16Widened {
  using A = float;
  static constexpr bool kRounds = false;
  static constexpr int64_t kVecSize = kLanes;
  static Vec row(const uint16_t* b, int half) {
    b += half * kPanel;
#if defined(__AVX512F__)
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
#else
    Vec v;
    for (int i = 0; i < kLanes; ++i) v[i] = from_f16(b[i]);
    return v;
#endif
  }
};

#if defined(__AVX512BF16__)
struct Bf16Pairs {
  using A = uint16_t;
  static constexpr bool kRounds = true;
  static constexpr int64_t kVecSize = 2 * kLanes;
};
using Bf16 = Bf16Pairs;
using Bf16Rounded = Bf16Pairs;

TESSERA_INLINE __m512bh pairs(__m512i v) { return reinterpret_cast<__m512bh>(v); }
#else
struct Bf16Widened {
  using A = float;
  static constexpr bool kRounds = false;
  static constexpr int64_t kVecSize = 2 * kLanes;  // elements of a pair's vector
  static Vec row(const uint16_t* b, int half) {
    const Bits bits = *reinterpret_cast<const BitsU*>(b);
    return reinterpret_cast<Vec>(half == 0 ? bits << 16 : bits & 0xffff0000u);
  }
};
// Of A's that has been rounded, too.
struct Bf16Rounded : Bf16Widened {
  using A = uint16_t;
};

using Bf16 = Bf16Widened;
#endif

TESSERA_INLINE float widened(float a) { return a; }
[[maybe_unused]] TESSERA_INLINE float widened(uint16_t a) { return float_of(uint32_t{a} << 16); }

// C (rows, cols) = A (rows, depth) times panels, as Block of tile_product.h; A as W says.
template <class W>
struct NarrowBlock {
  int64_t rows, cols, depth;
  const typename W::A* a;
  int64_t lda;
  const uint16_t* b;     // a panel's beginning
  int64_t panel_stride;  // elements from a panel to the next
  float* c;
  int64_t ldc;
  bool accumulate;
  const BoundEpilogue* epilogue;
  int64_t row, col;
  const uint16_t* ahead = nullptr;  // a line is fetched per pair from here
};

// Where vector v of the columns begins.
template <class W>
TESSERA_INLINE int64_t vec_offset(int v, int64_t panel_stride) {
  return v * kLanes / kPanel * panel_stride + v * kLanes % kPanel / kLanes * W::kVecSize;
}

template <class W, int R, int V>
TESSERA_INLINE void accumulate(const NarrowBlock<W>& t, Vec (&sum)[R][V]) {
  const int64_t stride = t.panel_stride, ahead_step = t.ahead ? kPairSize : 0;
  const uint16_t *b = t.b, *ahead = t.ahead ? t.ahead : t.b;
  const typename W::A* row[R];
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) row[r] = t.a + r * t.lda;
#if defined(__AVX512BF16__)
  if constexpr (W::kRounds) {
    for (int64_t k = 0; k < t.depth; k += 2, b += kPairSize) {
      __m512bh y[V];
      TESSERA_UNROLL
      for (int v = 0; v < V; ++v) y[v] = pairs(_mm512_loadu_si512(b + vec_offset<W>(v, stride)));
      __builtin_prefetch(ahead, 0, 2);
      ahead += ahead_step;
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) {
        int32_t pair;
        std::memcpy(&pair, row[r] + k, sizeof(pair));
        const __m512bh x = pairs(_mm512_set1_epi32(pair));
        TESSERA_UNROLL
        for (int v = 0; v < V; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, y[v]);
      }
    }
    return;
  }
#endif
  if constexpr (!W::kRounds) {
    auto step = [&](int64_t k, int half) __attribute__((always_inline)) {
      Vec y[V];
      TESSERA_UNROLL
      for (int v = 0; v < V; ++v) y[v] = W::row(b + vec_offset<W>(v, stride), half);
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) {
        const Vec x = splat(widened(row[r][k + half]));
        TESSERA_UNROLL
        for (int v = 0; v < V; ++v) sum[r][v] += x * y[v];
      }
    };
    int64_t k = 0;
    for (; k + 2 <= t.depth; k += 2, b += kPairSize) {
      step(k, 0);
      step(k, 1);
      __builtin_prefetch(ahead, 0, 2);
      ahead += ahead_step;
    }
    if (k < t.depth) step(k, 0);
  }
}

// A block of no more rows and columns than the registers hold.
template <class W, int R, int V>
void tile_of(const NarrowBlock<W>& t) {
  const int last = static_cast<int>(t.cols) - (V - 1) * kLanes;
  const Part part(last);
  const Place<R, V> place{part, last == kLanes};
  for (int r = 0; r < R; ++r)
    for (int v = 0; v * kLanes < t.cols; v += 16 / kLanes)
      __builtin_prefetch(t.c + r * t.ldc + v * kLanes, 1);
  Vec sum[R][V];
  TESSERA_EACH(x = Vec{})
  accumulate<W, R, V>(t, sum);
  finish<R, V>(t, place, sum);
}

template <class W>
struct TileTable {
  void (*fn[kMaxTileRows + 1][kTileVecs + 1])(const NarrowBlock<W>&) = {};

  template <int R, int V>
  constexpr void fill() {
    if constexpr (R <= tile_rows(V * kLanes)) fn[R][V] = tile_of<W, R, V>;
    if constexpr (V < kTileVecs)
      fill<R, V + 1>();
    else if constexpr (R < kMaxTileRows)
      fill<R + 1, 1>();
  }
  constexpr TileTable() { fill<1, 1>(); }
};
template <class W>
constexpr TileTable<W> kBlockTiles;

// Columns outermost: a tile's panels are read for all rows while they are in the cache.
template <class W>
void block_product(const NarrowBlock<W>& b) {
  constexpr int64_t kUnit = kLanes < kPanel ? kTileCols : kLanes;  // no tile straddles panels
  int64_t across = kTileCols / kUnit;
  if (b.rows > tile_rows(kTileCols) && b.rows <= kMaxTileRows)
    across = most<int64_t>(across - 1, 1);
  const int64_t units = (b.cols + kUnit - 1) / kUnit;
  int64_t n = 0;
  for (int64_t i = (units + across - 1) / across; i > 0; --i) {
    const int64_t left = (b.cols - n + kUnit - 1) / kUnit;
    NarrowBlock<W> tile = b;
    tile.cols = least(b.cols - n, (left + i - 1) / i * kUnit);
    tile.b = b.b + vec_offset<W>(static_cast<int>(n / kLanes), b.panel_stride);
    tile.c = b.c + n;
    tile.col = b.col + n;
    const int after = static_cast<int>((n + tile.cols) / kLanes);
    const uint16_t* next = i > 1 ? b.b + vec_offset<W>(after, b.panel_stride) : b.ahead;
    int64_t left_rows = b.rows, panel = 0;
    for (int64_t j = (b.rows + tile_rows(tile.cols) - 1) / tile_rows(tile.cols); j > 0; --j) {
      tile.rows = (left_rows + j - 1) / j;
      tile.ahead = next && panel < panels_of(kTileCols) ? next + panel++ * b.panel_stride : nullptr;
      kBlockTiles<W>.fn[tile.rows][(tile.cols + kLanes - 1) / kLanes](tile);
      left_rows -= tile.rows;
      tile.row += tile.rows;
      tile.c += tile.rows * b.ldc;
      tile.a += tile.rows * b.lda;
    }
    n += tile.cols;
  }
}

}  // namespace
}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
