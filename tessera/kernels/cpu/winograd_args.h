// Constant block of the Winograd convolutions on channels-last operands: F(4x4, 3x3) and F(2x2,
// 5x5). An input tile of e x e pixels yields m x m output pixels under r x r taps, m = e - r + 1.
//
//   y = A^T [ sum over channels of (G w G^T) * (B^T x B) ] A
//
// multiplies polynomials at the points 0, +-p, +-q and infinity. Which points decides the rounding
// errors: with those here F(4x4, 3x3) errs by less than twice what the direct sum does.
#pragma once

#include "tessera/kernels/cpu/conv_last_args.h"

namespace tessera::kernels::cpu {

inline constexpr int64_t kWinogradIn = 6;                              // e
inline constexpr int64_t kWinogradPoints = kWinogradIn * kWinogradIn;  // products of a tile
inline constexpr double kWinogradP = 0.625, kWinogradQ = 1.5;

// Strides and dilations 1, the first spatial axis 1, kernel[1] == kernel[2]. Ranges: x, packed
// weights, y, the epilogue's, the workspace. Packed weights: (g, point, panel of M, C, column of
// kPanel). A tile is one of (n, row of tiles, column of tiles).
//
// The workspace holds transformed input, (point, tile, C rounded up to kPanel), and products,
// (point, tile of `block`, channel of `width`), points x_stride and y_stride floats apart. Either
// many tiles are cut into items: then each call of the entry has a region of both of its own, that
// of its first item, for a block of tiles at a time. Or they are few: then winograd_in transforms
// them all, (g, point, tile, ...), before regions of products only.
//
// winograd: work item = (g, `tiles`, `cols` of M), the last fastest. winograd_in: (g, `in_tiles`).
struct WinogradArgs {
  ConvShape shape;
  int64_t x_ld, y_ld;            // elements between pixels
  int64_t out;                   // m
  int64_t tile_rows, tile_cols;  // of an image
  int64_t tiles, tile_items;
  int64_t cols, col_items;
  int64_t block, width;  // tiles and channels of M at a time
  int64_t in_tiles, in_items;
  int64_t x_stride, y_stride;
  int64_t shared;     // floats of the input of all tiles; 0: regions have their own
  int64_t region;     // floats
  int32_t workspace;  // its range
  Epilogue epilogue;
};

}  // namespace tessera::kernels::cpu
