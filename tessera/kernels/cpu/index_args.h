// Constant blocks of the entries whose places are data. Elements of x have `bytes` bytes; indices
// are i32 or i64.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

inline constexpr int kIndexRank = 8;

// gather: x is (outer, n, inner), y (outer, count, inner). Ranges: x, indices, y. Work item =
// `chunk` of (outer, count).
struct GatherArgs {
  int64_t outer, n, inner, count, chunk;
  int32_t bytes, wide;  // wide: indices are i64
};

// gather_elements: y and the indices have shape `dims`. Ranges: x, indices, y. Work item = `chunk`
// elements.
struct GatherElementsArgs {
  int32_t rank, axis, bytes, wide;
  int64_t dims[kIndexRank], strides[kIndexRank];  // strides of x
  int64_t n, count, chunk;
};

// gather_nd, scatter_nd: `count` places of `length` numbers, one slice of `inner` elements each;
// place i lies in batch i / per_batch. Ranges: x, indices, y; or updates, indices, y.
enum class ScatterKind : int32_t { kNone, kAdd, kMul, kMax, kMin };
enum class ScatterType : int32_t { kRaw, kF32, kF64, kI32, kI64 };
struct PlacesArgs {
  int32_t length, bytes, wide;
  ScatterKind kind;
  ScatterType type;
  int64_t n[kIndexRank], strides[kIndexRank];  // of the axes that the numbers address
  int64_t count, inner, per_batch, batch_stride, chunk;
};

// scatter_elements: as gather_elements, from updates to y. One work item: later updates win.
struct ScatterElementsArgs {
  GatherElementsArgs places;
  ScatterKind kind;
  ScatterType type;
};

// argmax, argmin, cumulative, top_k: x is (outer, n, inner).
enum class LineType : int32_t { kF32, kF64, kI32, kI64, kI8, kU8 };
struct LinesArgs {
  int64_t outer, n, inner, chunk;  // work item = `chunk` lines
  LineType type;
  int32_t flag[4];  // argmax: largest, select_last. cumulative: product, exclusive, reverse. top_k:
                    // largest
  int64_t k;        // top_k; its order is in the workspace, n numbers for each work item
};

// range: ranges start, delta, y
struct RangeArgs {
  int64_t count;
  LineType type;
};

}  // namespace tessera::kernels::cpu
