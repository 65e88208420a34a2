// Constant blocks of the convolution entries. N: batch; G: groups; C, M: channels of a group, in
// and out; K = taps * C; P: pixels of an output plane. Spatial axes are three: leading ones of size
// 1 are added to 1-D and 2-D.
#pragma once

#include "tessera/kernels/cpu/dot_args.h"

namespace tessera::kernels::cpu {

struct ConvShape {
  int64_t N, G, C, M;
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];  // pad: at the beginning
};

// conv: ranges x, w, bias (if any), y. Packed weights: (g, panel, tap, channel, row of kPanelRows).
// Work item = (n, g, block of output channels, strip of pixels), strips fastest.
struct ConvArgs {
  ConvShape shape;
  int64_t strip, strips;    // pixels of an item; items per plane
  int64_t m_step, m_items;  // output channels of an item; items per group
  int32_t w_packed, has_bias;
};

// depthwise: C = 1. Ranges as conv, weights as given. Work item = `planes` output planes. kernel[0]
// is 1.
inline constexpr int64_t kBandFloats = 12288;  // of the padded input rows that are on the stack
inline constexpr int64_t kMaxTaps = 256;
struct DepthwiseArgs {
  ConvShape shape;
  int64_t planes;
  int64_t band;   // output rows at a time
  int64_t pitch;  // floats of one phase of a padded input row: phases (column mod stride) are
                  // stored apart
  int32_t has_bias;
};

// conv_transpose: the adjoint of a convolution from y (`out`, M channels of a group) to x (`in`, C
// channels), whose strides, dilations and pads it has: each tap of each element of x is added to y.
// Ranges: x, weights, bias (if any), y. Packed weights: (g, panel of (m, tap), channel of x, row of
// kPanelRows). Work item = (n, g, `m_step` channels of y).
struct ConvTransposeArgs {
  ConvShape shape;
  int64_t m_step, m_items;
  int32_t w_packed, has_bias;
};

}  // namespace tessera::kernels::cpu
