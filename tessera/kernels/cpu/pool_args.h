// Constant block of the pooling entry.
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/epilogue_args.h"

namespace tessera::kernels::cpu {

enum class PoolKind : int32_t { kMax, kAverage };
enum class PoolType : int32_t { kF32, kF64, kI8, kU8 };

// Three spatial axes, leading ones of size 1. Ranges: x, y, places of the maxima (if any). Work
// item = `chunk` planes.
struct PoolArgs {
  int64_t planes, chunk;
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
  int64_t pad_end[3];
  PoolKind kind;
  PoolType type;
  int32_t count_padding;  // average: padding counts
  int32_t has_indices, column_major;
};

// Channels-last, f32, without places. Ranges: x, y, then the epilogue's. pool.planes and pool.chunk
// mean nothing. Work item = (image, `rows` output rows of its planes, `channels`).
struct PoolLastArgs {
  PoolArgs pool;
  int64_t images;
  int64_t x_ld, y_ld;  // elements between pixels
  int64_t rows, row_items;
  int64_t all_channels, channels, channel_items;
  Epilogue epilogue;
};

}  // namespace tessera::kernels::cpu
