// Constant blocks of the entries that work on rows, on columns along an axis, or per channel. f32
// or f64.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

// softmax, log_softmax along an axis: x is (outer, axis, inner). Ranges: x, y. Work item = `chunk`
// rows (inner is 1), or of one outer index a run of kSoftmaxCols columns, columns fastest.
inline constexpr int64_t kSoftmaxCols = 64;
struct SoftmaxArgs {
  int64_t outer, axis, inner, chunk;
  int32_t log, wide;  // wide: f64
};

// (x - mean) / sqrt(variance + epsilon) of each row, then scaled and shifted. Ranges: x, scale and
// bias (if any), y, mean and inverse (if any). Work item = `chunk` rows.
enum class Affine : int32_t {
  kAlongRow,    // scale[i] for element i of a row
  kPerChannel,  // the row is channels x inner; scale[(row * channels + i / inner) % all_channels]
};
struct RowNormArgs {
  int64_t rows, length, chunk;
  int64_t inner, channels, all_channels;  // kPerChannel
  double epsilon;
  Affine affine;
  int32_t rms;  // no mean is subtracted, and the mean square stands for the variance
  int32_t has_scale, has_bias, has_mean, has_inverse;
  int32_t wide;
};

// batch_norm: ranges x, scale, bias, mean, variance, y. Work item = `chunk` planes of `inner`
// elements.
struct BatchNormArgs {
  int64_t planes, channels, inner, chunk;
  double epsilon;
  int32_t wide;
};

// lrn: x is (outer, channels, inner). Ranges: x, y. Work item = of one outer index a run of
// kLrnCols columns.
inline constexpr int64_t kLrnCols = 256;
struct LrnArgs {
  int64_t outer, channels, inner;
  int64_t before, size;
  double factor, bias, beta;  // x / (bias + factor * sum)^beta
};

}  // namespace tessera::kernels::cpu
