// Loops over rows of floats, a vector at a time, and of doubles, one by one.
#pragma once

#include "tessera/kernels/cpu/isa/vec.h"
#include "tessera/kernels/cpu/norm_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Where a row begins in operand k (0: x, 1: y), in elements.
TESSERA_INLINE int64_t offset_of(const RowSpace& rows, int k, int64_t row) {
  int64_t offset = 0;
  for (int axis = rows.rank - 1; axis > 0; --axis) {
    offset += row % rows.dims[axis] * rows.strides[k][axis];
    row /= rows.dims[axis];
  }
  return offset + row * rows.strides[k][0];
}

// What a step of a loop works on: a whole vector, the end of a row (the other lanes read as in
// `rest`, or as 0), or a double.
struct WholeVector {
  Vec load(const float* p) const { return TESSERA_ISA_NAME::load(p); }
  Vec load(const float* p, Vec) const { return TESSERA_ISA_NAME::load(p); }
  Vec only(Vec v, Vec) const { return v; }
  void store(float* p, Vec v) const { TESSERA_ISA_NAME::store(p, v); }
};
struct PartOfVector {
  Part part;
  Vec load(const float* p) const { return part.load(p); }
  Vec load(const float* p, Vec rest) const { return part.load(p, rest); }
  Vec only(Vec v, Vec rest) const { return part.only(v, rest); }
  void store(float* p, Vec v) const { part.store(p, v); }
};
struct OneDouble {
  double load(const double* p) const { return *p; }
  double load(const double* p, double) const { return *p; }
  void store(double* p, double v) const { *p = v; }
};

template <class T>
struct LanesOf {
  using type = Vec;
  static constexpr int kCount = kLanes;
};
template <>
struct LanesOf<double> {
  using type = double;
  static constexpr int kCount = 1;
};
template <class T>
using Lanes = typename LanesOf<T>::type;

TESSERA_INLINE Vec spread(float v) { return splat(v); }
TESSERA_INLINE double spread(double v) { return v; }

// Calls f(lanes, i) for the elements i on of [from, to), as many as a vector has.
template <class T, class F>
TESSERA_INLINE void each_vector(int64_t from, int64_t to, F f) {
  int64_t i = from;
  if constexpr (LanesOf<T>::kCount == 1) {
    for (; i < to; ++i) f(OneDouble{}, i);
  } else {
    for (; i + kLanes <= to; i += kLanes) f(WholeVector{}, i);
    if (i < to) f(PartOfVector{Part(static_cast<int>(to - i))}, i);
  }
}

TESSERA_INLINE double total_of(const Vec* sums) {
  return static_cast<double>(sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])));
}
TESSERA_INLINE double total_of(const double* sums) {
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Sum of f(i, lanes) over the n elements, blocks of it in double.
template <class T, class F>
TESSERA_INLINE double sum_of(int64_t n, F f) {
  constexpr int64_t kFlush = 4096, kCount = LanesOf<T>::kCount;
  double total = 0;
  for (int64_t start = 0; start < n; start += kFlush) {
    const int64_t end = least(n, start + kFlush);
    Lanes<T> sums[4] = {};
    int64_t i = start;
    for (; i + 4 * kCount <= end; i += 4 * kCount) {
      TESSERA_UNROLL
      for (int w = 0; w < 4; ++w) {
        if constexpr (kCount == 1)
          sums[w] += f(OneDouble{}, i + w);
        else
          sums[w] += f(WholeVector{}, i + w * kCount);
      }
    }
    each_vector<T>(
        i, end, [&](auto lanes, int64_t at) __attribute__((always_inline)) {
          sums[0] += f(lanes, at);
        });
    total += total_of(sums);
  }
  return total;
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
