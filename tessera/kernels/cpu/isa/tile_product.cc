#include "tessera/kernels/cpu/isa/tile_product.h"

#include "tessera/kernels/cpu/isa/fuse.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// Vector v of a row of B.
TESSERA_INLINE int64_t panel_offset(int v, int64_t panel_stride) {
  return v * kLanes / kPanel * panel_stride + v * kLanes % kPanel;
}

// One step of the product, for each k of each term.
template <int R, int V>
TESSERA_INLINE void accumulate(const Tile& t, Vec (&sum)[R][V]) {
  const int64_t stride = t.panel_stride, step = t.b_step;
  [[maybe_unused]] const int64_t ahead_step = t.ahead ? kPanel : 0;
  [[maybe_unused]] const float* ahead = t.ahead ? t.ahead : t.c;
  for (int64_t i = 0; i < t.count; ++i) {
    const Term& term = t.terms[i];
    const float* row[R];
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) row[r] = term.rows ? term.rows[r] : term.a + r * t.lda;
    const float* b = term.b;
    for (int64_t k = 0; k < term.depth; ++k, b += step) {
      Vec y[V];
      TESSERA_UNROLL
      for (int v = 0; v < V; ++v) y[v] = load(b + panel_offset(v, stride));
      if constexpr (V >= kTileVecs) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += ahead_step;
      }
      TESSERA_EACH(x += splat(row[r][k]) * y[v])
    }
  }
}

template <int R, int V>
void tile_of(const Tile& t) {
  float* const c = t.c;
  const int64_t ldc = t.ldc;
  const int last = t.cols - (V - 1) * kLanes;
  const Part part(last);
  const Place<R, V> place{part, last == kLanes};
  // C is not near when its turn comes, unless it is asked for now.
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int v = 0; v < V; v += 16 / kLanes) __builtin_prefetch(c + r * ldc + v * kLanes, 1);
  }
  const BoundEpilogue* e = t.epilogue;
  int step = 0;
  Vec sum[R][V];
  if (e && !t.accumulate && e->fused > 0 && e->steps[0].fused == Fused::kAddCols) {
    Vec bias[V];
    place.load_row(e->steps[step++].operand + t.col, bias);
    TESSERA_EACH(x = bias[v])
  } else {
    TESSERA_EACH(x = Vec{})
  }
  accumulate<R, V>(t, sum);
  if (t.accumulate) TESSERA_EACH(x += place.load_at(c + r * ldc, v))
  if (e) {
    for (; step < e->fused; ++step) {
      const BoundStep& s = e->steps[step];
      fuse<R, V>(s, s.operand + offset_in(s, t.row, t.col), place, sum);
    }
    if (e->fused < e->count) return finish_rows<R, V>(t, place, sum);
  }
  TESSERA_EACH(place.store_at(c + r * ldc, v, x))
}
#undef TESSERA_EACH

using TileFn = void (*)(const Tile&);

struct TileTable {
  TileFn fn[kMaxTileRows + 1][kWidestVecs + 1] = {};

  template <int R, int V>
  constexpr void fill() {
    if constexpr (V <= tile_vecs(R)) fn[R][V] = tile_of<R, V>;
    if constexpr (V < kWidestVecs)
      fill<R, V + 1>();
    else if constexpr (R < kMaxTileRows)
      fill<R + 1, 1>();
  }
  constexpr TileTable() { fill<1, 1>(); }
};
constexpr TileTable kTiles;

}  // namespace

void tile_product(const Tile& tile) {
  kTiles.fn[tile.rows][(tile.cols + kLanes - 1) / kLanes](tile);
}

// Columns outermost: a tile's panels are read for all rows while they are in the cache. Tiles are
// of about the same size.
void block_product(const Block& b) {
  // Narrower vectors than panels: tiles must not straddle those.
  constexpr int64_t kUnit = kLanes < kPanel ? kTileCols : kLanes;
  // Rows that fit a narrower tile at once are not worth two wide ones.
  const int64_t rows_at_once =
      b.rows <= kMaxTileRows ? most<int64_t>(b.rows, 1) : tile_rows(kTileCols);
  const int64_t across = most<int64_t>(tile_vecs(rows_at_once) * kLanes / kUnit, 1);
  const int64_t units = (b.cols + kUnit - 1) / kUnit;
  int64_t n = 0;
  for (int64_t i = (units + across - 1) / across; i > 0; --i) {
    const int64_t left = (b.cols - n + kUnit - 1) / kUnit;
    const int64_t cols = least(b.cols - n, (left + i - 1) / i * kUnit);
    const float* from = b.b + n / kPanel * b.panel_stride + n % kPanel;
    const float* next = i > 1 ? from + cols / kPanel * b.panel_stride : b.ahead;
    Term term{b.a, nullptr, from, b.depth};
    Tile tile{.rows = 0,
              .cols = static_cast<int>(cols),
              .terms = &term,
              .count = 1,
              .lda = b.lda,
              .panel_stride = b.panel_stride,
              .b_step = b.b_step,
              .c = b.c + n,
              .ldc = b.ldc,
              .accumulate = b.accumulate,
              .epilogue = b.epilogue,
              .row = b.row,
              .col = b.col + n};
    int64_t left_rows = b.rows, panel = 0;
    for (int64_t j = (b.rows + tile_rows(cols) - 1) / tile_rows(cols); j > 0; --j) {
      const int64_t rows = (left_rows + j - 1) / j;
      tile.rows = static_cast<int>(rows);
      tile.ahead = next && panel < panels_of(kTileCols) ? next + panel++ * b.panel_stride : nullptr;
      tile_product(tile);
      left_rows -= rows;
      tile.row += rows;
      tile.c += rows * b.ldc;
      term.a += rows * b.lda;
    }
    n += cols;
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
