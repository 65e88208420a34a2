// The microkernel under dot and convolution: a tile of C as a sum of products, in registers, with
// an epilogue before it is stored. A is read where it lies, B from panels (panel.h).
#pragma once

#include "tessera/kernels/cpu/isa/epilogue.h"
#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// The widest tile of several rows, and the rows of a tile of so many columns: what the registers
// hold. Without fused multiply-adds products take some, too.
constexpr int kTileVecs = kRegisters == 32 ? 4 : 2;
constexpr int kTileCols = kTileVecs * kLanes;
constexpr int kMaxTileRows = kRegisters == 32 ? 8 : kLanes == 8 ? 6 : 4;
constexpr int tile_rows(int64_t cols) {
  return kRegisters == 32 && cols > 3 * kLanes ? 6 : kMaxTileRows;
}
// The widest tile of so many rows, in vectors: narrow vectors need more of them where there are few
// rows, to keep the multipliers busy.
constexpr int kWidestVecs = kRegisters == 32 ? kTileVecs : kLanes;
constexpr int tile_vecs(int64_t rows) {
  if (rows <= 2 && kRegisters < 32) return rows == 1 ? kWidestVecs : kWidestVecs / 2;
  return rows > tile_rows(kTileCols) ? kTileVecs - 1 : kTileVecs;
}

// One of the products that are summed: A (rows, depth) times B (depth, cols).
struct Term {
  const float* a;            // row r of A begins at a + r * lda,
  const float* const* rows;  // or, if not null, at rows[r]
  const float* b;            // the tile's first column of B, in its panel
  int64_t depth;
};

struct Tile {
  int rows, cols;  // at most tile_rows(cols), and tile_vecs(rows) vectors
  const Term* terms;
  int64_t count;            // of terms; 0: the sum is 0
  int64_t lda;              // of terms without a table of rows
  int64_t panel_stride;     // floats from a panel of B to the next
  int64_t b_step = kPanel;  // floats from a row of B to the next: other than kPanel if B lies in
                            // rows, whose columns must be whole vectors
  float* c;
  int64_t ldc;
  bool accumulate;                // add to C
  const BoundEpilogue* epilogue;  // null: none
  int64_t row, col;               // of C's first element in the epilogue's operands
  const float* ahead = nullptr;  // a line of 16 floats is fetched into the L2 cache per k from here
};

void tile_product(const Tile& tile);

// C (rows, cols), any number of each, = A (rows, depth) times panels.
struct Block {
  int64_t rows, cols, depth;
  const float* a;
  int64_t lda;
  const float* b;        // a panel's beginning
  int64_t panel_stride;  // as of Tile
  int64_t b_step = kPanel;
  float* c;
  int64_t ldc;
  bool accumulate;
  const BoundEpilogue* epilogue;
  int64_t row, col;
  const float* ahead = nullptr;  // the panels that come after these, if that is known
};

void block_product(const Block& block);

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
