// Sliding windows: the geometry that convolution, pooling and their adjoints share.
#pragma once

#include "tessera/op/def.h"

namespace tessera::op {

// Of each spatial axis. Negative padding cuts off. Tap k of window o reads element o * stride + k *
// dilation - pad_begin.
struct Window {
  Ints strides, dilations, pads_begin, pads_end;
  bool ceil_mode = false;  // a last window that is cut off counts, if it starts inside the input or
                           // its left padding
  // Pads follow from the size: ceil(size / stride) windows, the odd element of padding at the end
  // or at the beginning.
  bool same = false;
  bool same_lower = false;

  // Number of windows. @post for a constant: may be negative, where the kernel does not fit
  Expr count(size_t axis, const Expr& size, const Expr& kernel) const;
  // Padding at the beginning and at the end of an axis.
  std::pair<int64_t, int64_t> pads(size_t axis, int64_t size, int64_t kernel) const;
};

// Reads strides, dilations, pads_begin, pads_end (each of `axes` numbers, or absent: 1, 1, 0, 0),
// ceil_mode and auto_pad
// ("same_upper", "same_lower"). kInvalidArgument for wrong lengths, strides or dilations below 1.
Result<Window> window_of(const Attrs& attrs, size_t axes);

// The attributes above, for rows.
std::vector<AttrDef> window_attrs(std::vector<AttrDef> more);

// (lead..., windows...) of an input (lead..., spatial...); `kernel` as many as spatial axes.
// kInvalidArgument where a kernel does not fit.
Result<Shape> windows_shape(const InferContext& context, const Window& window, const Shape& input,
                            const Shape& kernel);

// Size of an axis that `windows` windows were read from: what a transposed convolution yields.
Expr unwindowed(const Window& window, size_t axis, const Expr& windows, const Expr& kernel,
                int64_t output_padding);

// The pads that make a transposed convolution of these sizes yield attribute output_shape, where it
// is there: as much in all as the natural size exceeds it, the odd element at the end for
// same_upper, else at the beginning.
Result<Window> transposed_window(const Attrs& attrs, const Dims& windows, const Dims& kernel);

// First and past-the-last of the indices i in [0, count) with 0 <= i * step + offset < size. step >
// 0.
std::pair<int64_t, int64_t> inside(int64_t count, int64_t step, int64_t offset, int64_t size);

}  // namespace tessera::op
