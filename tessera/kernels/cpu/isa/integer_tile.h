// The microkernel under the products of 8-bit integers: a tile of sums in registers, which goes
// through its epilogue from the first cache.
#pragma once

#include "tessera/kernels/cpu/integer_args.h"
#include "tessera/kernels/cpu/isa/epilogue.h"
#include "tessera/kernels/cpu/isa/quad.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// The widest tile, and the rows of a tile of so many vectors: what the registers hold.
// TESSERA_TILES: the class of a unit of tiles (tile_unit.h), if one is used: then of so many tiles
// as are summed before any goes through its epilogue.
#if defined(TESSERA_TILES)
constexpr int kIntegerVecs = 32 / kLanes, kIntegerRows = 192;
#elif defined(__AVX512VNNI__)
constexpr int kIntegerVecs = 4, kIntegerRows = 8;
constexpr int integer_rows(int vecs) { return vecs == 4 ? 6 : 8; }
#elif defined(__AVX512F__)
constexpr int kIntegerVecs = 3, kIntegerRows = 8;
constexpr int integer_rows(int vecs) { return vecs == 3 ? 6 : 8; }
#else
constexpr int kIntegerVecs = 2, kIntegerRows = 4;
constexpr int integer_rows(int) { return 4; }
#endif
constexpr int kIntegerCols = kIntegerVecs * kLanes;

struct IntegerTile {
  int rows, vecs;
  int first;            // of units of tiles: rows of the upper tiles,
  int64_t step, steps;  // and the tiles along the terms
  const uint8_t* x;
  const int64_t* at;     // from x to each row's first element
  const int64_t* terms;  // from there to those of the terms
  int64_t count;         // of terms
  int64_t depth;         // elements of a term
  const uint8_t* w;      // the tile's first column in its panel, first term
  int64_t panel;         // bytes from a panel to the next
  const int32_t* start;  // per column: what its sums begin with
  int32_t* sums;         // (rows, vecs * kLanes)
};

// Terms and result, bound to a launch's ranges.
struct BoundInteger {
  bool x_signed, w_signed;
  int32_t moved, x_zero;
  const uint8_t* w_zero;  // null: none
  int64_t w_step;         // 0: one for all columns
  const int32_t* bias;    // null: none
  IntegerType type;
  float scale;
  int32_t zero;
  BoundEpilogue steps;
  // If `plain`, all steps are x * factor + term, limited to [low, high]; a factor or a term is one
  // for all columns (step 0), one per column, or null.
  bool plain;
  const float *factor, *term;
  int64_t factor_step, term_step;
  float low, high;
};
BoundInteger bind_integer(const IntegerTerms& terms, const IntegerResult& result,
                          const tessera_launch* launch);

// Of up to kIntegerCols columns: what sums begin with, and the zero point of the weights as stored.
struct IntegerColumns {
  alignas(64) int32_t start[kIntegerCols], zeros[kIntegerCols];
  alignas(64) float factors[kIntegerCols], terms[kIntegerCols];  // of plain steps
  bool any, same;  // whether there are zero points other than 0; all are the same
};
// Columns [col, col + cols) of the result; `sums`: of the first of them; K: elements of a sum.
void set_columns(const BoundInteger& b, int64_t col, int64_t cols, const int32_t* sums, int64_t K,
                 IntegerColumns& columns);

// The sum of `count` elements of x.
int32_t sum_of(const uint8_t* x, int64_t count, bool is_signed);

// Where a tile of sums goes, whose first element is at `row` and `col` of the result, `y` there.
struct IntegerPlace {
  int rows, cols;
  int64_t row, col;
  char* y;
  int64_t ld;  // elements
};
// What is behind the sums (rows, pitch). x_sums: the sum of x for each row, where columns.any.
void finish_sums(const BoundInteger& b, const IntegerColumns& columns, const int32_t* sums,
                 int64_t pitch, const int32_t* x_sums, const IntegerPlace& place);

// From a row of sums to the next.
constexpr int64_t sums_pitch(int vecs) {
#if defined(TESSERA_TILES)
  return vecs > 0 ? kIntegerCols : 0;
#else
  return vecs * kLanes;
#endif
}

constexpr int64_t bytes_of(IntegerType type) {
  return type == IntegerType::kI32 || type == IntegerType::kF32 ? 4 : 1;
}

// Rows of x, up to kIntegerPixels, times `cols` columns from `col` on: all of their tiles.
struct IntegerBlock {
  int64_t rows, cols;
  const uint8_t* x;
  const int64_t* at;  // of each row
  const int64_t* terms;
  int64_t count, depth;
  const uint8_t* w;       // the first panel of these columns
  int64_t panel;          // bytes
  const int32_t* w_sums;  // of these columns
  int64_t row, col;       // of the result
  char* y;                // there
  int64_t ld;             // elements between rows of y
};
void integer_block(const BoundInteger& b, const IntegerBlock& block);

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
