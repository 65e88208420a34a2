// Rounding to quantised numbers, as in ir/reference/quantize.cc: to nearest even, then the zero
// point, then the bounds; NaN is 0.
#pragma once

#include "tessera/kernels/cpu/isa/quad.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// To nearest even. @pre |x| < 2^21
TESSERA_INLINE VecI rounded(Vec x) {
#if defined(__AVX512F__)
  return reinterpret_cast<VecI>(_mm512_maskz_cvtps_epi32(0xffff, x));
#elif defined(__AVX2__)
  return reinterpret_cast<VecI>(_mm256_cvtps_epi32(x));
#elif defined(__x86_64__)
  return reinterpret_cast<VecI>(_mm_cvtps_epi32(x));
#else
  return bits_of(x + 12582912.0f) - bits_of(splat(12582912.0f));
#endif
}

template <class T>
struct Bounds {
  static constexpr int32_t kLow = T(-1) < T(0) ? -(1 << (sizeof(T) * 8 - 1)) : 0;
  static constexpr int32_t kHigh =
      T(-1) < T(0) ? (1 << (sizeof(T) * 8 - 1)) - 1 : (1 << (sizeof(T) * 8)) - 1;
};

// x / scale in steps of T, at most 16 bits. The bounds come first, less the zero point: they are
// whole numbers.
template <class T>
TESSERA_INLINE VecI quantized(Vec x, Vec scale, VecI zero) {
  const Vec low = __builtin_convertvector(Bounds<T>::kLow - zero, Vec),
            high = __builtin_convertvector(Bounds<T>::kHigh - zero, Vec);
  const Vec q = x / scale;
  const VecI number = q == q;
  return (rounded(min_of(high, max_of(low, q))) + zero) & number;
}

template <class T>
struct Narrow {
  typedef T Elements __attribute__((vector_size(kLanes * sizeof(T))));
  // The lanes must be numbers of T.
  TESSERA_INLINE void store(T* to, VecI v) {
    const Elements e = __builtin_convertvector(v, Elements);
    __builtin_memcpy(to, &e, sizeof e);
  }
  TESSERA_INLINE void store(T* to, VecI v, int64_t count) {
    const Elements e = __builtin_convertvector(v, Elements);
    __builtin_memcpy(to, &e, static_cast<size_t>(count) * sizeof(T));
  }
  TESSERA_INLINE VecI load(const T* from) {
    Elements e;
    __builtin_memcpy(&e, from, sizeof e);
    return __builtin_convertvector(e, VecI);
  }
  TESSERA_INLINE VecI load(const T* from, int64_t count) {
    Elements e{};
    __builtin_memcpy(&e, from, static_cast<size_t>(count) * sizeof(T));
    return __builtin_convertvector(e, VecI);
  }
};

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
