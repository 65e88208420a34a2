// Products of 8-bit integers on a unit of tiles (tile_unit.h): two rows of tiles by two panels at a
// time. A panel's quads are the rows of a tile as they lie; x is read in place where rows are
// evenly apart and its elements fill tiles, else from a copy.
#pragma once

#include "tessera/kernels/cpu/isa/integer_tile.h"
#include "tessera/kernels/cpu/isa/tile_unit.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Rows and columns of four tiles of sums: registers 0 to 3; 4 and 5 hold x, 6 and 7 the weights.
constexpr int kSumRows = 2 * kTileRows, kSumCols = 2 * static_cast<int>(kPanel);

// How many of `rows` rows at multiples of one distance begin at `at`.
[[maybe_unused]] static int64_t even_rows(const int64_t* at, int64_t rows) {
  int64_t count = least<int64_t>(rows, 2);
  while (count < rows && at[count] - at[count - 1] == at[1] - at[0]) ++count;
  return count;
}

// Cuts rows into tiles whose rows are evenly apart, those of a run of the same height but the last.
// Returns how many.
[[maybe_unused]] static int64_t cut_rows(const int64_t* at, int64_t rows, int8_t* heights) {
  int64_t tiles = 0;
  while (rows > 0) {
    const int64_t run = even_rows(at, rows);
    const int64_t parts = (run + kTileRows - 1) / kTileRows, height = (run + parts - 1) / parts;
    for (int64_t r = 0; r < run; r += height)
      heights[tiles++] = static_cast<int8_t>(least(height, run - r));
    at += run;
    rows -= run;
  }
  return tiles;
}

// The bytes of a row of a tile of x: such that a term's depth is a multiple, if that takes few more
// tiles than the fewest.
[[maybe_unused]] static int tile_bytes(int64_t depth) {
  const int64_t fewest = (depth + kTileBytes - 1) / kTileBytes;
  for (int64_t tiles = most<int64_t>(fewest, 1); tiles <= fewest + fewest / 2 + 1; ++tiles)
    if (depth % (tiles * kQuad) == 0 && depth > 0) return static_cast<int>(depth / tiles);
  return kTileBytes;
}

// A unit and the shape that it has now.
template <class Unit>
class IntegerUnit {
 public:
  explicit IntegerUnit(int64_t depth) : bytes(tile_bytes(depth)) {}
  // Tiles of `first` rows and, below those, of `second`; 0: none.
  void shape(int first, int second) {
    if (first == first_ && (second == second_ || second == 0)) return;
    first_ = first;
    second_ = second > 0 ? second : first;
    const int quads = bytes / static_cast<int>(kQuad);
    unit.configure({{first, 64},
                    {first, 64},
                    {second_, 64},
                    {second_, 64},
                    {first, bytes},
                    {second_, bytes},
                    {quads, 64},
                    {quads, 64}});
  }
  // Tiles along a term.
  int64_t steps(int64_t depth) const { return (depth + bytes - 1) / bytes; }
  Unit unit;
  const int bytes;  // of a row of a tile of x

 private:
  int first_ = 0, second_ = 0;
};

// Rows of x, evenly apart.
template <int T, class Unit>
void load_rows(IntegerUnit<Unit>& shaped, const uint8_t* x, int64_t pitch, int rows, int64_t bytes,
               uint8_t* copy) {
  if (bytes == shaped.bytes) return shaped.unit.template load<T>(x, pitch);
  for (int r = 0; r < rows; ++r) {
#if defined(__AVX512BW__)
    const __mmask64 mask = ~uint64_t{0} >> (kTileBytes - bytes);
    _mm512_store_si512(copy + r * kTileBytes, _mm512_maskz_loadu_epi8(mask, x + r * pitch));
#else
    __builtin_memset(copy + r * kTileBytes, 0, kTileBytes);
    __builtin_memcpy(copy + r * kTileBytes, x + r * pitch, static_cast<size_t>(bytes));
#endif
  }
  shaped.unit.template load<T>(copy, kTileBytes);
}

// The sums of two tiles of rows, or one, and two panels, or one, (rows, kSumCols), of the steps
// that the tile names; the first begins them. Tiles of weights may reach beyond a panel's end, by
// less than kTileRows quads: those bytes meet zeros, but must be readable.
template <bool kSigned, bool kLow, bool kWide, class Unit>
void tile_sums(IntegerUnit<Unit>& shaped, const IntegerTile& t) {
  const int second = t.rows - t.first;
  shaped.shape(t.first, second);
  Unit& unit = shaped.unit;
  constexpr int64_t kPitch = kSumCols * 4;
  [[maybe_unused]] int32_t* low = t.sums + t.first * kSumCols;
  const bool begins = t.step == 0;
  const int32_t* from = begins ? t.start : t.sums;
  [[maybe_unused]] const int32_t* from_low = begins ? t.start : low;
  const int64_t from_pitch = begins ? 0 : kPitch;
  unit.template load<0>(from, from_pitch);
  if constexpr (kWide) unit.template load<1>(from + kPanel, from_pitch);
  if constexpr (kLow) unit.template load<2>(from_low, from_pitch);
  if constexpr (kLow && kWide) unit.template load<3>(from_low + kPanel, from_pitch);
  const uint8_t* top = t.x + t.at[0];
  const int64_t pitch = t.first > 1 ? t.at[1] - t.at[0] : kTileBytes;
  [[maybe_unused]] const uint8_t* bottom = kLow ? t.x + t.at[t.first] : top;
  [[maybe_unused]] const int64_t bottom_pitch =
      second > 1 ? t.at[t.first + 1] - t.at[t.first] : kTileBytes;
  alignas(64) uint8_t copy[kTileRows * kTileBytes];
  const auto in_quads = [](int64_t bytes) { return (bytes + kQuad - 1) / kQuad * kQuad; };
  const int64_t across = most<int64_t>(shaped.steps(t.depth), 1);
  int64_t i = t.step / across, k = t.step % across * shaped.bytes;
  const uint8_t* w = t.w + (i * in_quads(t.depth) + k) * kPanel;
  for (int64_t left = t.steps; left > 0; --left) {
    const int64_t bytes = least<int64_t>(shaped.bytes, t.depth - k), at = t.terms[i] + k;
    unit.template load<6>(w, 64);
    load_rows<4>(shaped, top + at, pitch, t.first, bytes, copy);
    unit.template products<0, 4, 6, kSigned, !kSigned>();
    if constexpr (kWide) {
      unit.template load<7>(w + t.panel, 64);
      unit.template products<1, 4, 7, kSigned, !kSigned>();
    }
    if constexpr (kLow) {
      load_rows<5>(shaped, bottom + at, bottom_pitch, second, bytes, copy);
      unit.template products<2, 5, 6, kSigned, !kSigned>();
      if constexpr (kWide) unit.template products<3, 5, 7, kSigned, !kSigned>();
    }
    w += in_quads(bytes) * kPanel;
    k += bytes;
    if (k == t.depth) k = 0, ++i;
  }
  unit.template store<0>(t.sums, kPitch);
  if constexpr (kWide) unit.template store<1>(t.sums + kPanel, kPitch);
  if constexpr (kLow) unit.template store<2>(low, kPitch);
  if constexpr (kLow && kWide) unit.template store<3>(low + kPanel, kPitch);
}

template <bool kSigned, class Unit>
void tile_sums(IntegerUnit<Unit>& shaped, const IntegerTile& t) {
  if (t.vecs * kLanes > kPanel)
    (t.rows > t.first ? tile_sums<kSigned, true, true, Unit>
                      : tile_sums<kSigned, false, true, Unit>)(shaped, t);
  else
    (t.rows > t.first ? tile_sums<kSigned, true, false, Unit>
                      : tile_sums<kSigned, false, false, Unit>)(shaped, t);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
