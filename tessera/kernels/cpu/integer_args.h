// Constant blocks of the products of 8-bit integers. Letters as in dot_args.h and conv_args.h.
#pragma once

#include "tessera/kernels/cpu/conv_args.h"
#include "tessera/kernels/cpu/dot_args.h"
#include "tessera/kernels/cpu/epilogue_args.h"

namespace tessera::kernels::cpu {

// Weights are packed in panels of kPanel columns: (panel, term, quad, column, k of the quad), where
// a quad is kQuad neighbours along k; what is beyond a term's depth or the columns is 0. An i32 for
// each column of all panels follows: the sum of its elements as stored. They are stored with the
// signedness that x does not have, moved by 128 if they do not have it themselves.
inline constexpr int64_t kQuad = 4;
// Bytes behind all that is packed, which tiles may read.
inline constexpr int64_t kTileSlack = 1024;

// One matrix (terms * outer * inner, columns) to be packed. Strides in elements of the source:
// element k of a term is (k / inner, k % inner).
struct IntegerPack {
  int64_t terms, term_stride;
  int64_t outer, outer_stride, inner, inner_stride;
  int64_t columns, column_stride;
  int32_t moved;          // added to each element: -128, 0 or 128
  int32_t stored_signed;  // otherwise unsigned
};

// Zero points and bias. Ranges of the launch, -1 where there are none.
struct IntegerTerms {
  int32_t x_signed, w_signed, moved;  // as given; what packing has added to w
  int32_t x_zero;                     // one element
  int32_t w_zero, w_zeros;            // one element, or one per column if `w_zeros`
  int32_t bias;                       // i32, one per column
};

enum class IntegerType : int32_t { kI32, kF32, kU8, kI8 };

// What becomes of a sum: it is stored as it is; or converted to f32, sent through the steps, and
// stored or quantised, with a scale (f32) and a zero point (of the stored type, may be -1: none).
struct IntegerResult {
  IntegerType type;
  int32_t scale, zero;
  Epilogue steps;
};

// integer_dot. Ranges: a, packed b, y, then those named above. a_row, y_row: elements between rows;
// the columns of both are neighbours. products.b_batch: bytes.
struct IntegerDotArgs {
  Products products;
  int64_t a_row, y_row;
  IntegerTerms terms;
  IntegerResult result;
};

// integer_pack: matrices at multiples of `stride` elements, packed one after the other. Ranges: b,
// packed. Work item = one matrix.
struct IntegerPackArgs {
  IntegerPack pack;
  int64_t stride;
};

// integer_conv: y channels-last. A block of output pixels reads x in place, or from a copy that the
// item makes on its stack: (depth, row, column, channel), padded with the zero point. Weights:
// groups one after the other; a term is a tap, or a row of taps if `merged`. Ranges: x, packed
// weights, y, then those named above. Work item = (n, g, block of pixels, `cols` of M), the last
// fastest.
inline constexpr int64_t kIntegerCopy = 96 << 10;  // bytes
inline constexpr int64_t kIntegerPixels = 1024;    // of a block, at most
struct IntegerConvArgs {
  ConvShape shape;
  int64_t x_batch, x_channel, x_step[3];  // elements between images, channels, and along in[]
  int64_t y_ld;                           // elements between pixels
  int32_t copies, merged;
  int64_t block[3], blocks[3];  // output pixels of a block along out[]; blocks of a plane
  int64_t cols, col_items;
  IntegerTerms terms;
  IntegerResult result;
};

// integer_depthwise: C = M = 1; x and y channels-last. Packed weights: (block of
// kIntegerChannels groups, quad of taps, group of the block, tap of the quad), then the sums. Work
// item = (n, `rows` output rows, `channels`), the last fastest.
inline constexpr int64_t kIntegerChannels = 16;
struct IntegerDepthwiseArgs {
  ConvShape shape;
  int64_t x_ld, y_ld;
  int64_t rows, row_items;
  int64_t channels, channel_items;
  IntegerTerms terms;
  IntegerResult result;
};

}  // namespace tessera::kernels::cpu
