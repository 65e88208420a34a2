// Constant blocks of the entries that move elements. Sizes and strides are in elements of `bytes`
// bytes: 1, 2, 4, 8 or 16.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

inline constexpr int kMoveRank = 8;

// y[at . out_strides] = x[at . in_strides] for all indices of dims. Ranges: x, y. The last axis is
// the one with the least out stride; `across` is the axis with the least in stride, if that is
// another one and both are walked in tiles, else -1. Work item = `chunk` units; a unit is a piece
// of a row (the last axis) or kStripe of the last axis by kAcross of `across`.
inline constexpr int64_t kRowPiece = 65536;  // bytes
inline constexpr int64_t kStripe = 64, kAcross = 512;
struct CopyArgs {
  int32_t rank, bytes, across;
  int64_t dims[kMoveRank], in_strides[kMoveRank], out_strides[kMoveRank];
  int64_t in_offset, out_offset;
  int64_t units, chunk;
};

// Ranges: x, value (if any), y. Work item = `chunk` rows of y.
enum class PadMode : int32_t { kConstant, kReflect, kEdge, kWrap };
struct PadArgs {
  int32_t rank, bytes, has_value;
  PadMode mode;
  int64_t in[kMoveRank], out[kMoveRank], begin[kMoveRank];
  int64_t rows, chunk;
};

// Ranges: y. The elements are in the block.
struct StoreArgs {
  int64_t count;
  int64_t values[64];
};

// convert: ranges x, y. Work item = kConvertChunk elements.
inline constexpr int64_t kConvertChunk = 32768;
struct ConvertArgs {
  int64_t count;
  int32_t from, to, rounding, saturate;  // DType, DType, Rounding, bool
};

}  // namespace tessera::kernels::cpu
