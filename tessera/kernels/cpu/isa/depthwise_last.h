// Convolution of narrow groups on channels-last operands, a block of rows and channels at a time.
#pragma once

#include "tessera/kernels/cpu/conv_last_args.h"
#include "tessera/kernels/cpu/isa/epilogue.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Channels [c0, c1) of output rows [row0, row1) of one image; c0 is the first of a vector.
struct DepthwiseBlock {
  const ConvShape& shape;  // as of DepthwiseLastArgs
  int64_t image;           // its number: what the epilogue's operands go by
  const float* x;          // of the image
  int64_t x_ld;            // floats between pixels
  const float* w;          // packed, of all channels
  int64_t row0, row1, c0, c1;
  float* y;  // channel 0 of the first pixel of row0
  int64_t y_ld;
  const BoundEpilogue& epilogue;
};

void depthwise_block(const DepthwiseBlock& block);

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
