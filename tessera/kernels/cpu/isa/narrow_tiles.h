// Products of bf16 on a unit of tiles (tile_unit.h): two rows of tiles of a by two panels of b at a
// time, so that each tile that is loaded is used twice. Tiles of a lie apart, each in one piece:
//   (row / height, k / kTileDepth, row % height, k % kTileDepth)
// and what is beyond the rows and k is 0, so that one shape of tiles serves for all.
#pragma once

#include "tessera/kernels/cpu/isa/fuse.h"
#include "tessera/kernels/cpu/isa/half.h"
#include "tessera/kernels/cpu/isa/tile_unit.h"
#include "tessera/kernels/cpu/narrow.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

constexpr int64_t kPairCols = 2 * kPanel;                 // columns of two panels
constexpr int64_t kPanelTile = kTileDepth * kPanel;       // elements of a tile of b
constexpr int64_t kPairSums = 2 * kTileRows * kPairCols;  // of two rows of tiles and two panels

// Registers 0 to 3 hold sums, 4 and 5 tiles of a, 6 and 7 those of b.
template <class Unit>
void configure_narrow(Unit& unit, int64_t height) {
  const int rows = static_cast<int>(height);
  unit.configure({{rows, 64},
                  {rows, 64},
                  {rows, 64},
                  {rows, 64},
                  {rows, kTileBytes},
                  {rows, kTileBytes},
                  {kTileRows, 64},
                  {kTileRows, 64}});
}

// kTileDepth neighbours, of which `count` are there, to bf16.
TESSERA_INLINE void round_run(const float* from, int64_t count, uint16_t* to) {
#if defined(__AVX512BF16__)
  const auto low = static_cast<int>(least<int64_t>(count, kLanes)),
             high = static_cast<int>(count - low);
  const Vec a = Part(low).load(from), b = high > 0 ? Part(high).load(from + kLanes) : Vec{};
  _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
#else
  for (int64_t k = 0; k < count; ++k) to[k] = to_bf16(from[k]);
  for (int64_t k = count; k < kTileDepth; ++k) to[k] = 0;
#endif
}

// `height` rows of tiles from a, `row` and `col` floats between rows and columns of a, of which
// `rows` and `depth` are there.
[[maybe_unused]] static void round_tiles(const float* a, int64_t row, int64_t col, int64_t rows,
                                         int64_t depth, int64_t height, uint16_t* to) {
  const int64_t tile = height * kTileDepth;
  for (int64_t k = 0; k < depth; k += kTileDepth, to += tile) {
    const int64_t count = least(kTileDepth, depth - k);
    const float* from = a + k * col;
    if (col == 1) {
      for (int64_t r = 0; r < rows; ++r) round_run(from + r * row, count, to + r * kTileDepth);
    } else {
      __builtin_memset(to, 0, static_cast<size_t>(tile) * sizeof(*to));
      for (int64_t i = 0; i < count; ++i)
        for (int64_t r = 0; r < rows; ++r)
          to[r * kTileDepth + i] = to_bf16(from[r * row + i * col]);
    }
    for (int64_t r = rows; r < height; ++r) __builtin_memset(to + r * kTileDepth, 0, kTileBytes);
  }
}

// What four tiles of sums are made of. A tile of a: rows `a_pitch` bytes apart, the next along k
// `a_step` elements on; of b: in one piece, one behind the other.
struct NarrowTerm {
  const uint16_t *a, *a_low;   // a_low: if kLow
  const uint16_t *b, *b_wide;  // b_wide: if kWide
  int64_t depth;               // tiles
};

template <bool kLow, bool kWide, class Unit>
TESSERA_INLINE void add_tiles(Unit& unit, const NarrowTerm& t, int64_t a_pitch, int64_t a_step) {
  const uint16_t *a = t.a, *b = t.b;
  [[maybe_unused]] const uint16_t *low = t.a_low, *wide = t.b_wide;
  for (int64_t k = 0; k < t.depth; ++k) {
    unit.template load<6>(b, 64);
    unit.template load<4>(a, a_pitch);
    unit.template bf16_products<0, 4, 6>();
    if constexpr (kWide) {
      unit.template load<7>(wide, 64);
      unit.template bf16_products<1, 4, 7>();
    }
    if constexpr (kLow) {
      unit.template load<5>(low, a_pitch);
      unit.template bf16_products<2, 5, 6>();
      if constexpr (kWide) unit.template bf16_products<3, 5, 7>();
      low += a_step;
    }
    a += a_step;
    b += kPanelTile;
    if constexpr (kWide) wide += kPanelTile;
  }
}

// What the sums of `cols` columns from `col` on begin with, if it is one value for each; else null.
// `copy`: for columns that do not fill their panels.
[[maybe_unused]] static const float* start_of(const BoundEpilogue* e, int64_t col, int64_t cols,
                                              float* copy) {
  if (!e || e->fused == 0 || e->steps[0].fused != Fused::kAddCols) return nullptr;
  const float* bias = e->steps[0].operand + col;
  if (cols % kPanel == 0) return bias;
  for (int64_t c = 0; c < kPairCols; ++c) copy[c] = c < cols ? bias[c] : 0.0f;
  return copy;
}

// Where sums begin: `pitch` bytes between rows, 0: one row for all; null: at 0.
template <bool kLow, bool kWide, class Unit>
TESSERA_INLINE void begin_sums(Unit& unit, const float* from, int64_t pitch, int64_t height) {
  if (!from) {
    unit.template zero<0>();
    if constexpr (kWide) unit.template zero<1>();
    if constexpr (kLow) unit.template zero<2>();
    if constexpr (kLow && kWide) unit.template zero<3>();
    return;
  }
  [[maybe_unused]] const float* low = from + height * (pitch / 4);
  unit.template load<0>(from, pitch);
  if constexpr (kWide) unit.template load<1>(from + kPanel, pitch);
  if constexpr (kLow) unit.template load<2>(low, pitch);
  if constexpr (kLow && kWide) unit.template load<3>(low + kPanel, pitch);
}

template <bool kLow, bool kWide, class Unit>
TESSERA_INLINE void end_sums(Unit& unit, float* to, int64_t pitch, int64_t height) {
  [[maybe_unused]] float* low = to + height * (pitch / 4);
  unit.template store<0>(to, pitch);
  if constexpr (kWide) unit.template store<1>(to + kPanel, pitch);
  if constexpr (kLow) unit.template store<2>(low, pitch);
  if constexpr (kLow && kWide) unit.template store<3>(low + kPanel, pitch);
}

// A part of the result, whose first element is at `row` and `col` of it.
struct NarrowPlace {
  float* c;
  int64_t ldc;
  const BoundEpilogue* epilogue;  // null: none
  int64_t row, col;
};

// The steps from `first` on, in registers, on R rows of sums, `count` columns.
template <int R, int V>
TESSERA_INLINE void finish_part(const NarrowPlace& to, int first, float* sums, int64_t row,
                                int64_t col, int count) {
  const Part part(count - (V - 1) * kLanes);
  const Place<R, V> place{part, count == V * kLanes};
  Vec sum[R][V];
  float *from = sums + row * kPairCols + col, *c = to.c + row * to.ldc + col;
  TESSERA_EACH(x = load(from + r * kPairCols + v * kLanes))
  const BoundEpilogue& e = *to.epilogue;
  for (int i = first; i < e.fused; ++i) {
    const BoundStep& s = e.steps[i];
    fuse<R, V>(s, s.operand + offset_in(s, to.row + row, to.col + col), place, sum);
  }
  if (e.fused < e.count)
    TESSERA_EACH(store(from + r * kPairCols + v * kLanes, x))
  else
    TESSERA_EACH(place.store_at(c + r * to.ldc, v, x))
}

template <int V>
TESSERA_INLINE void finish_cols(const NarrowPlace& to, int first, float* sums, int64_t rows,
                                int64_t col, int count) {
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) finish_part<8, V>(to, first, sums, r, col, count);
  for (; r + 2 <= rows; r += 2) finish_part<2, V>(to, first, sums, r, col, count);
  if (r < rows) finish_part<1, V>(to, first, sums, r, col, count);
}

[[maybe_unused]] static void copy_sums(const float* from, int64_t from_ld, float* to, int64_t to_ld,
                                       int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, from += from_ld, to += to_ld) {
    int64_t c = 0;
    for (; c + kLanes <= cols; c += kLanes) store(to + c, load(from + c));
    if (c < cols) {
      const Part part(static_cast<int>(cols - c));
      part.store(to + c, part.load(from + c));
    }
  }
}

// Sums (rows, kPairCols) to where they go, `first` steps being done.
[[maybe_unused]] static void finish_narrow(const NarrowPlace& to, int first, float* sums,
                                           int64_t rows, int64_t cols) {
  if (!to.epilogue) return copy_sums(sums, kPairCols, to.c, to.ldc, rows, cols);
  const BoundEpilogue& e = *to.epilogue;
  if (first < e.fused || e.fused == e.count) {
    int64_t col = 0;
    for (; col + kLanes < cols; col += 2 * kLanes)
      finish_cols<2>(to, first, sums, rows, col,
                     static_cast<int>(least<int64_t>(2 * kLanes, cols - col)));
    if (col < cols) finish_cols<1>(to, first, sums, rows, col, static_cast<int>(cols - col));
  }
  if (e.fused == e.count) return;
  apply_rows(e, most(first, e.fused), to.row, to.col, rows, cols, sums, kPairCols);
  copy_sums(sums, kPairCols, to.c, to.ldc, rows, cols);
}

// C (rows, cols), any number of each, = tiles of a times panels.
struct NarrowTiles {
  int64_t rows, cols, height;
  int64_t depth;  // tiles
  const uint16_t* a;
  int64_t a_row;  // elements from a row of tiles to the next
  const uint16_t* b;
  int64_t panel;  // elements from a panel to the next
  bool accumulate;
  NarrowPlace place;
};

template <bool kLow, bool kWide, class Unit>
void narrow_pair(Unit& unit, const NarrowTiles& t, int64_t m, int64_t n, const float* start) {
  alignas(64) float sums[kPairSums];
  const int64_t rows = least(t.rows - m, kLow ? 2 * t.height : t.height),
                cols = least(t.cols - n, kPairCols), pitch = t.place.ldc * 4;
  NarrowPlace place = t.place;
  place.c += m * place.ldc + n;
  place.row += m;
  place.col += n;
  // Sums go to and come from where they belong, where they fill it.
  const bool whole =
      cols == (kWide ? kPairCols : kPanel) && rows == (kLow ? 2 * t.height : t.height);
  if (!t.accumulate) {
    begin_sums<kLow, kWide>(unit, start, 0, t.height);
  } else if (whole) {
    begin_sums<kLow, kWide>(unit, place.c, pitch, t.height);
  } else {
    copy_sums(place.c, place.ldc, sums, kPairCols, rows, cols);
    begin_sums<kLow, kWide>(unit, sums, kPairCols * 4, t.height);
  }
  const uint16_t *a = t.a + m / t.height * t.a_row, *b = t.b + n / kPanel * t.panel;
  add_tiles<kLow, kWide>(unit, {a, a + t.a_row, b, b + t.panel, t.depth}, 64,
                         t.height * kTileDepth);
  const int first = start != nullptr;
  if (whole && (!place.epilogue || place.epilogue->count == first))
    return end_sums<kLow, kWide>(unit, place.c, pitch, t.height);
  end_sums<kLow, kWide>(unit, sums, kPairCols * 4, t.height);
  finish_narrow(place, first, sums, rows, cols);
}

// Rows outermost, so that whole rows of C are written, if all panels stay in the second cache; else
// columns, so that two panels stay in the first for all rows.
template <class Unit>
void narrow_tiles(Unit& unit, const NarrowTiles& t) {
  constexpr int64_t kTilesNear = 512;  // of b, of 1 KiB
  alignas(64) float copy[kPairCols];
  const BoundEpilogue* e = t.accumulate ? nullptr : t.place.epilogue;
  const auto pair = [&](int64_t m, int64_t n) {
    const int64_t cols = least(kPairCols, t.cols - n);
    const float* start = start_of(e, t.place.col + n, cols, copy);
    if (t.rows - m > t.height)
      (cols > kPanel ? narrow_pair<true, true, Unit> : narrow_pair<true, false, Unit>)(unit, t, m,
                                                                                       n, start);
    else
      (cols > kPanel ? narrow_pair<false, true, Unit> : narrow_pair<false, false, Unit>)(unit, t, m,
                                                                                         n, start);
  };
  const int64_t rows = 2 * t.height;
  if (panels_of(t.cols) * t.depth <= kTilesNear) {
    for (int64_t m = 0; m < t.rows; m += rows)
      for (int64_t n = 0; n < t.cols; n += kPairCols) pair(m, n);
  } else {
    for (int64_t n = 0; n < t.cols; n += kPairCols)
      for (int64_t m = 0; m < t.rows; m += rows) pair(m, n);
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
