// fed_product: y = f(x) w, where f is a depthwise convolution or a chain of functions: a block of
// f(x) is computed into the cache, then multiplied. K: columns of f(x); M: columns of y; a pixel is
// a row of either.
#pragma once

#include "tessera/kernels/cpu/conv_last_args.h"

namespace tessera::kernels::cpu {

inline constexpr int64_t kFedFloats = 16 << 10;  // of a block of f(x), which is on the stack

// Ranges: x, w in panels, y, packed taps (if depthwise), then the epilogues'. Work item =
// `per_item` blocks. A block is `block` pixels; if depthwise, so many rows of an image.
struct FedArgs {
  ConvShape conv;  // if depthwise
  int64_t K, M;
  int64_t x_ld, y_ld;     // floats between pixels
  int64_t ld;             // between rows of a block
  int64_t pixels;         // of all images
  int64_t block, blocks;  // blocks: of an image, if depthwise
  int64_t all, per_item;  // blocks
  int64_t channels;       // of f(x) at a time, if depthwise
  int32_t depthwise;
  Epilogue before, behind;  // of f(x) and of y
};

}  // namespace tessera::kernels::cpu
