// Constant block of rotary. Letters as in op/rows_attention.cc: B batch, H heads, S steps, E
// channels.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

// Ranges: x, cos, sin, y. Work item = `chunk` rows of B x H x S, steps fastest. The innermost axis
// of x and y is packed; strides of batch, head, step in elements.
struct RotaryArgs {
  int64_t H, S, E, half;  // half: the pairs that are turned
  int64_t rows, chunk;
  int64_t x[3], y[3];
  int64_t cos[2], sin[2];  // strides of batch and step; 0: the same for all
  int32_t interleaved;
};

}  // namespace tessera::kernels::cpu
