// Constant blocks of the matrix product entries. M, N, K: extents of one product; batches
// broadcast.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

inline constexpr int64_t kPanelRows = 12;  // A is packed in panels of so many rows: (panel, k, row)
inline constexpr int64_t kPanelCols = 32;  // B in panels of so many columns: (panel, k, column)
inline constexpr int64_t kDepth = 128;     // k is cut into blocks of so many
inline constexpr int64_t kStrip = 256;  // columns of B that an entry packs at a time, on its stack
inline constexpr int kMaxBatchRank = 6;

// Ranges: a, b, y. Work item = (batch, block of rows, block of columns), columns fastest.
struct GemmArgs {
  int64_t M, N, K;
  int64_t m_step, n_step;    // of one item; multiples of the panel sizes
  int64_t m_items, n_items;  // items per batch
  int64_t b_batch_size;      // floats of one batch of b
  int32_t b_packed;          // b is in panels; else row-major
  int32_t batch_rank;
  int64_t batch_dims[kMaxBatchRank], a_strides[kMaxBatchRank],
      b_strides[kMaxBatchRank];  // strides in matrices
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

struct PlainDotArgs {
  GemmArgs gemm;
  DotTypes types;
};

}  // namespace tessera::kernels::cpu
