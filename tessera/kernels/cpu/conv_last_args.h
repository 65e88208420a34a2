// Constant blocks of the convolutions on channels-last operands. Letters as in conv_args.h; a pixel
// is an output pixel unless said otherwise.
#pragma once

#include "tessera/kernels/cpu/conv_args.h"
#include "tessera/kernels/cpu/epilogue_args.h"

namespace tessera::kernels::cpu {

// conv_last: a sum over the taps of products (pixels, C) times (C, M). Ranges: x, packed weights,
// y, then the epilogue's. Packed weights: (g, panel of M, tap, C, column of kPanel), then C zeros.
// Work item = (n, g, `pixels` of a plane, `cols` of M), the last fastest.
struct ConvLastArgs {
  ConvShape shape;
  int64_t x_ld, y_ld;  // elements between pixels
  int64_t pixels, pixel_items;
  int64_t cols, col_items;
  int32_t flat;  // one tap, one row of pixels, as many in x as in y
  Epilogue epilogue;
};

// conv_first: few channels; G = 1, kernel[0] = 1. An item gathers the rows of x that it reads on
// its stack, padded, channels innermost: (row, column, channel), so that the taps and channels of a
// row of taps are neighbours. Ranges as conv_last. Packed weights: (panel of M, row of taps, tap,
// C, column of kPanel). Work item = (n, `rows` output rows).
inline constexpr int64_t kFirstFloats = 24 << 10;
struct ConvFirstArgs {
  ConvShape shape;
  int64_t x_c, x_w;  // elements between channels and between columns of x; rows lie densely
  int64_t y_ld;
  int64_t columns;  // of the gathered rows
  int64_t rows, row_items;
  Epilogue epilogue;
};

// narrow_conv: G = 1. Ranges: pixels, packed weights, y, then the epilogue's. Pixels: x in bf16, as
// narrow_pixels has left them: each image with its padding, `extent` pixels of `depth` channels of
// which those beyond C are 0; a tile's pixels may be read behind the last. Where channels are few,
// a pixel for each output column holds all that a row of its window has: `run` pixels of x, and
// `shape` is what remains, with windows of one column. Packed weights: (panel of M, tap, pair of
// channels, column of kPanel, channel of the pair). Work item = (n, `rows` output rows, `cols` of
// M), the last fastest; of narrow_pixels, whose ranges are x and pixels: one row of an image.
inline constexpr int64_t kNarrowLine = 16 << 10;  // elements of a row of x, if `run` is not 1
struct NarrowConvArgs {
  ConvShape shape;
  int64_t x_image, x_row, x_ld, x_channel;    // elements between images, rows, pixels and channels
  int64_t y_ld;                               // between pixels
  int64_t run, run_stride, run_pad, x_width;  // x_width: pixels of a row of x
  int64_t depth, extent[3];
  int64_t rows, row_items;  // rows: along out[0] and out[1]
  int64_t cols, col_items;
  int64_t height;  // pixels of a tile
  Epilogue epilogue;
};

// depthwise_last: C = M = 1. Ranges as conv_last. Packed weights: (block of kChannelBlock groups,
// tap, group of the block). Work item = (n, `rows` output rows of the plane, `channels`).
inline constexpr int64_t kChannelBlock = 16;
struct DepthwiseLastArgs {
  ConvShape shape;
  int64_t x_ld, y_ld;
  int64_t rows, row_items;
  int64_t channels, channel_items;
  Epilogue epilogue;
};

}  // namespace tessera::kernels::cpu
