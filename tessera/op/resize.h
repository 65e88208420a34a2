// Interpolation along an axis: which elements make up each element of a resized axis, and with what
// weights.
#pragma once

#include "tessera/op/def.h"

namespace tessera::op {

// How to resize one axis.
struct ResizeAxis {
  int axis = 0;
  int64_t in = 0, out = 0;
  double scale = 1;           // of a given size: out / in
  double begin = 0, end = 1;  // region of interest, as shares of the axis
};

// The axes of a node resize(x, roi?, scales?, sizes?) and their sizes: what the attributes axes,
// scales, sizes, roi and policy say, or, where an input is given (not null), the input instead.
// kInvalidArgument for lengths that do not agree, scales that are not positive, and for neither or
// both of scales and sizes.
Result<std::vector<ResizeAxis>> resize_axes(const Attrs& attrs, const Dims& x, const Tensor* roi,
                                            const Tensor* scales, const Tensor* sizes);

// The size of a scaled axis: floor(size * scale), exact where the scale is the float next to a
// fraction of small numbers. nullopt: it does not follow for a symbolic size.
std::optional<Expr> scaled_size(const Expr& size, double scale);

// Element o of the result is the sum of weights[i] * x[indices[i]] for i in [first[o], first[o +
// 1]).
struct Taps {
  std::vector<int64_t> first{0};
  std::vector<int64_t> indices;
  std::vector<double> weights;
  std::vector<bool> outside;  // per element: takes the extrapolation value instead
};

// By attributes mode (nearest, linear, cubic), coordinates, nearest (a rounding), cubic_a,
// exclude_outside, antialias.
// @pre axis.in > 0 or axis.out == 0
Result<Taps> resize_taps(const Attrs& attrs, const ResizeAxis& axis);

}  // namespace tessera::op
