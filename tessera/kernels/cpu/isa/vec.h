// Vectors of floats of the variant's width. Included by isa/*.cc only; everything is static or in
// the variant's namespace.
#pragma once

#include <cstdint>
#include <cstring>

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef float VecU __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef double VecD __attribute__((vector_size(kLanes * 4)));

#define TESSERA_INLINE static inline __attribute__((always_inline))

TESSERA_INLINE Vec load(const float* p) { return *reinterpret_cast<const VecU*>(p); }
TESSERA_INLINE void store(float* p, Vec v) { *reinterpret_cast<VecU*>(p) = v; }
TESSERA_INLINE Vec splat(float v) { return Vec{} + v; }

template <class T>
TESSERA_INLINE T least(T a, T b) {
  return b < a ? b : a;
}
template <class T>
TESSERA_INLINE T most(T a, T b) {
  return a < b ? b : a;
}

// Sum of the lanes, pairwise.
TESSERA_INLINE float sum_lanes(Vec v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
