// Values of an image between its elements.
#pragma once

#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {

enum class Padding : uint8_t { kZeros, kBorder, kReflection };
enum class Interpolation : uint8_t { kNearest, kLinear, kCubic };

// One channel's image of any number of axes.
struct Image {
  const double* data;
  const Dims& dims;
  Dims strides;
  Interpolation interpolation = Interpolation::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners =
      false;  // reflection: at the outer elements' centres, else at their far edges

  // The value at a point, in elements. NaN anywhere, or a point beyond any padding: 0.
  double at(std::span<const double> point) const;

 private:
  // The place of index i along an axis, or -1: reads as 0.
  int64_t resolve(int64_t i, size_t axis) const;
};

// x brought into [low, high] by reflecting at the ends, as often as needed.
double reflect(double x, double low, double high);

}  // namespace tessera::ir::reference
