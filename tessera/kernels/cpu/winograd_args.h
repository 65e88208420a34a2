// Constant block of the Winograd convolutions, F(m x m, 3x3), on channels-last operands. An input
// tile of e x e pixels, e = m + 2, yields m x m output pixels.
//
//   y = A^T [ sum over channels of (G w G^T) * (B^T x B) ] A
//
// is polynomial multiplication at the points 0, +-p, +-q, ... and infinity. Which points decides
// the rounding errors: those here let F(4x4) err by less than twice what the direct sum does.
#pragma once

#include "tessera/kernels/cpu/conv_last_args.h"

namespace tessera::kernels::cpu {

inline constexpr int64_t kWinogradKernel = 3;
inline constexpr int64_t kWinogradOut = 4;                                  // m
inline constexpr int64_t kWinogradIn = kWinogradOut + kWinogradKernel - 1;  // e
inline constexpr int64_t kWinogradPoints = kWinogradIn * kWinogradIn;       // products of a tile
inline constexpr double kWinogradP = 0.625, kWinogradQ = 1.5;

// G = 1, strides and dilations 1, the first spatial axis 1. Ranges: x, packed weights, y, the
// epilogue's, the workspace. Packed weights: (point, panel of M, C, column of kPanel). A tile is
// one of (n, row of tiles, column of tiles). Work item = (`tiles`, `cols` of M), the latter
// fastest. A call of the entry uses the part of the workspace that belongs to its first item:
// transformed input (point, tile of `block`, C rounded up to kPanel), each point `x_stride` floats,
// then products (point, tile of `block`, channel of `width`), each point `y_stride` floats.
struct WinogradArgs {
  ConvShape shape;
  int64_t x_ld, y_ld;            // elements between pixels
  int64_t tile_rows, tile_cols;  // of an image
  int64_t tiles, tile_items;
  int64_t cols, col_items;
  int64_t block, width;                // tiles and channels of M at a time
  int64_t x_stride, y_stride, region;  // floats; region: of one item
  int32_t workspace;                   // its range
  Epilogue epilogue;
};

}  // namespace tessera::kernels::cpu
