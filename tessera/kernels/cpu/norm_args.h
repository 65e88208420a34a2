// Constant blocks of the entries that work on rows, on columns along an axis, or per channel. f32
// or f64.
#pragma once

#include "tessera/kernels/cpu/epilogue_args.h"

namespace tessera::kernels::cpu {

// The axes around rows that are worked on one by one, merged, outermost first; strides of x and y.
struct RowSpace {
  int32_t rank;
  int64_t count;
  int64_t dims[kMaxSpaceRank];
  int64_t strides[2][kMaxSpaceRank];
};

// softmax, log_softmax along an axis. Ranges: x, y, operands of the epilogue. Work item = `chunk`
// rows; if neighbours along the axis are not neighbours in memory, a run of kSoftmaxCols columns of
// the axis `inner`, which are, columns fastest.
inline constexpr int64_t kSoftmaxCols = 64;
struct SoftmaxArgs {
  RowSpace rows;
  int64_t axis, chunk;
  int64_t inner;            // 0: by rows
  int64_t axis_strides[2];  // by columns
  int32_t log, wide;        // wide: f64
  Epilogue epilogue;        // by rows
};

// (x - mean) / sqrt(variance + epsilon) of each row, then scaled and shifted. Ranges: x, scale and
// bias (if any), y, mean and inverse (if any), operands of the epilogue. Work item = `chunk` rows.
enum class Affine : int32_t {
  kAlongRow,    // scale[i] for element i of a row
  kPerChannel,  // the row is channels x inner; scale[(row * channels + i / inner) % all_channels]
};
struct RowNormArgs {
  RowSpace rows;
  int64_t length, chunk;
  int64_t inner, channels, all_channels;  // kPerChannel
  double epsilon;
  Affine affine;
  int32_t rms;  // no mean is subtracted, and the mean square stands for the variance
  int32_t has_scale, has_bias, has_mean, has_inverse;
  int32_t wide;
  Epilogue epilogue;  // y is packed if it has steps
};

// batch_norm: ranges x, scale, bias, mean, variance, y, operands of the epilogue. Work item =
// `chunk` planes of `inner` elements, or, channels last, `chunk` pixels.
struct BatchNormArgs {
  int64_t planes, channels, inner, chunk;
  int64_t pixels, x_ld, y_ld;  // channels last: elements from a pixel to the next
  double epsilon;
  int32_t wide, channels_last;
  Epilogue epilogue;
};

// lrn: x is (outer, channels, inner). Ranges: x, y. Work item = of one outer index a run of
// kLrnCols columns, or, channels last, `chunk` pixels of `inner` = 1.
inline constexpr int64_t kLrnCols = 256;
inline constexpr int64_t kLrnChannels = 4096, kLrnWindow = 64;  // at most, channels last
struct LrnArgs {
  int64_t outer, channels, inner;
  int64_t before, size, chunk;
  double factor, bias, beta;  // x / (bias + factor * sum)^beta
  int32_t channels_last;
};

}  // namespace tessera::kernels::cpu
