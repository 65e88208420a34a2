// Products of 8-bit integers on a unit of tiles (tile_unit.h): 32 rows by two panels at a time. A
// panel's quads are the rows of a tile as they lie; x is read in place where rows are evenly apart
// and their elements fill a tile, else from a copy.
#pragma once

#include "tessera/kernels/cpu/isa/integer_tile.h"
#include "tessera/kernels/cpu/isa/tile_unit.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Rows and columns of four tiles of sums: registers 0 to 3; 4 and 5 hold x, 6 and 7 the weights.
constexpr int kSumRows = 2 * kTileRows, kSumCols = 2 * static_cast<int>(kPanel);

// Rows [first, first + rows) of x, up to kTileRows.
struct TileRows {
  const uint8_t* x;
  const int64_t* at;
  int rows;
  int64_t pitch;  // 0: rows are not evenly apart

  TileRows(const uint8_t* from, const int64_t* offsets, int count)
      : x(from), at(offsets), rows(count), pitch(count > 1 ? offsets[1] - offsets[0] : kTileBytes) {
    for (int r = 2; r < rows; ++r)
      if (at[r] - at[r - 1] != pitch) pitch = 0;
  }
};

template <int T, class Unit>
void load_rows(Unit& unit, const TileRows& rows, int64_t offset, int64_t bytes, uint8_t* copy) {
  if (bytes == kTileBytes && rows.pitch != 0)
    return unit.template load<T>(rows.x + rows.at[0] + offset, rows.pitch);
  for (int r = 0; r < rows.rows; ++r) {
    __builtin_memset(copy + r * kTileBytes, 0, kTileBytes);
    __builtin_memcpy(copy + r * kTileBytes, rows.x + rows.at[r] + offset,
                     static_cast<size_t>(bytes));
  }
  unit.template load<T>(copy, kTileBytes);
}

// The sums of up to kSumRows rows and two panels, as integer_tile makes them; `sums` (rows,
// kSumCols). Tiles of weights may reach beyond a panel's end, by less than kTileRows quads: those
// bytes meet zeros, but must be readable.
template <class Unit, bool kSigned>
void tile_sums(Unit& unit, const IntegerTile& t) {
  const bool low = t.rows > kTileRows, wide = t.vecs * kLanes > kPanel;
  const int first = low ? kTileRows : t.rows, second = t.rows - first;
  unit.configure({{first, 64},
                  {first, 64},
                  {low ? second : 1, 64},
                  {low ? second : 1, 64},
                  {first, kTileBytes},
                  {low ? second : 1, kTileBytes},
                  {16, 64},
                  {16, 64}});
  unit.template load<0>(t.start, 0);
  unit.template load<1>(wide ? t.start + kPanel : t.start, 0);
  unit.template load<2>(t.start, 0);
  unit.template load<3>(wide ? t.start + kPanel : t.start, 0);
  const TileRows top(t.x, t.at, first),
      bottom(t.x, low ? t.at + kTileRows : t.at, low ? second : 1);
  alignas(64) uint8_t copy[kTileRows * kTileBytes];
  const uint8_t* w = t.w;
  for (int64_t i = 0; i < t.count; ++i)
    for (int64_t k = 0; k < t.depth; k += kTileBytes) {
      const int64_t bytes = least<int64_t>(kTileBytes, t.depth - k);
      unit.template load<6>(w, 64);
      load_rows<4>(unit, top, t.terms[i] + k, bytes, copy);
      unit.template products<0, 4, 6, kSigned, !kSigned>();
      if (wide) {
        unit.template load<7>(w + t.panel, 64);
        unit.template products<1, 4, 7, kSigned, !kSigned>();
      }
      if (low) {
        load_rows<5>(unit, bottom, t.terms[i] + k, bytes, copy);
        unit.template products<2, 5, 6, kSigned, !kSigned>();
        if (wide) unit.template products<3, 5, 7, kSigned, !kSigned>();
      }
      w += (bytes + kQuad - 1) / kQuad * kQuad * kPanel;
    }
  constexpr int64_t kPitch = kSumCols * 4;
  unit.template store<0>(t.sums, kPitch);
  if (wide) unit.template store<1>(t.sums + kPanel, kPitch);
  if (low) {
    unit.template store<2>(t.sums + kTileRows * kSumCols, kPitch);
    if (wide) unit.template store<3>(t.sums + kTileRows * kSumCols + kPanel, kPitch);
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
