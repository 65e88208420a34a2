// Constant blocks of the matrix product entries. M, N, K: extents of one product, y (M, N) = a (M,
// K) b (K, N); batches broadcast.
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/epilogue_args.h"
#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu {

// Of isa/gemm.h, which packs both sides.
inline constexpr int64_t kPanelRows = 12;  // A is packed in panels of so many rows: (panel, k, row)
inline constexpr int64_t kPanelCols = 32;  // B in panels of so many columns: (panel, k, column)
inline constexpr int64_t kDepth = 128;     // k is cut into blocks of so many
inline constexpr int64_t kStrip = 256;  // columns of B that an entry packs at a time, on its stack

inline constexpr int kMaxBatchRank = 6;

// Work item = (batch, block of rows, block of columns), columns fastest.
struct Products {
  int64_t M, N, K;
  int64_t m_step, n_step;    // of one item
  int64_t m_items, n_items;  // items per batch
  int32_t batch_rank;
  int64_t batch_dims[kMaxBatchRank];
  // Elements from a batch's matrix to the next: of b, as it is stored.
  int64_t a_batch[kMaxBatchRank], b_batch[kMaxBatchRank], y_batch[kMaxBatchRank];
};

// How b lies and what an item does about it.
enum class RightSide : int32_t {
  kPanels,   // in panels
  kRows,     // rows of neighbours, read in place
  kStrided,  // packed by the item, a block at a time
};

// Ranges: a, b, y, then the epilogue's. Strides in floats: row: from a row to the next; col: from
// a column to the next. y's columns are neighbours.
// gemm: any of them. gemv: at most kMaxDotRows rows of a; k is innermost on both sides, and b_col
// is what separates the vectors that a's rows are multiplied with.
struct GemmArgs {
  Products products;
  int64_t a_row, a_col, b_row, b_col, y_row;
  RightSide right;
  Epilogue epilogue;
};
inline constexpr int64_t kMaxDotRows = 4;

// gemm_bf16, gemm_f16: b is in the panels of narrow.h. Ranges as gemm's, then, at `rounded`, the
// rows of all a's as narrow_rows has left them; -1: items read a itself. narrow_rows, whose ranges
// are a and what it writes: work item = (batch, `height` rows); a variant keeps the form that it
// likes best, in rounded_size() elements for each batch, or none.
struct NarrowArgs {
  GemmArgs gemm;
  int64_t height;  // rows of a tile of a; m_step is a multiple
  int32_t rounded;
};
// The fewest tiles of at most 16 rows, of about the same size.
constexpr int64_t tile_height(int64_t rows) {
  constexpr int64_t kMost = 16;
  const int64_t tiles = (rows + kMost - 1) / kMost;
  return tiles > 1 ? (rows + tiles - 1) / tiles : rows > 1 ? rows : 1;
}

// pack_b: all of b (K, N) into panels. Ranges: b, panels. Work item = one panel.
struct PackArgs {
  int64_t K, N;
  int64_t row, col;
};

enum class DotTypes : int32_t {
  kF64,
  kF16,
  kBF16,
  kF16ToF32,
  kBF16ToF32,
  kI8I8,
  kI8U8,
  kU8I8,
  kU8U8,
  kI32,
  kI64
};

// Ranges: a, b, y, row-major.
struct PlainDotArgs {
  Products products;
  DotTypes types;
};

}  // namespace tessera::kernels::cpu
