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
class Quantizer {
 public:
  Quantizer(Vec scale, VecI zero)
      : scale_(scale),
        low_(__builtin_convertvector(Bounds<T>::kLow - zero, Vec)),
        high_(__builtin_convertvector(Bounds<T>::kHigh - zero, Vec)),
        zero_(zero) {}
  // x is limited to [low, high] first. @pre the scale is positive and finite
  void limit(float low, float high) {
    const Vec least = low_, most = high_;
    low_ = min_of(most, max_of(least, splat(low) / scale_));
    high_ = max_of(least, min_of(most, splat(high) / scale_));
  }
  VecI of(Vec x) const {
    const Vec q = x / scale_, bounded = min_of(high_, max_of(low_, q));
#if defined(__AVX512F__)
    const __mmask16 number = _mm512_cmp_ps_mask(q, q, _CMP_ORD_Q);
    return reinterpret_cast<VecI>(_mm512_maskz_add_epi32(
        number, reinterpret_cast<__m512i>(rounded(bounded)), reinterpret_cast<__m512i>(zero_)));
#else
    const VecI number = q == q;
    return (rounded(bounded) + zero_) & number;
#endif
  }

 protected:
  Vec scale_, low_, high_;
  VecI zero_;
};

// The same for many x of one scale: a division takes longer than all else. The product with the
// reciprocal is off by less than 2^-22 of itself, so that it rounds to the same number unless it is
// near the middle between two; then, and where it is no number, x is divided.
template <class T>
class ReciprocalQuantizer : public Quantizer<T> {
 public:
  ReciprocalQuantizer(Vec scale, VecI zero) : Quantizer<T>(scale, zero) {
    const Vec none = splat(__builtin_nanf(""));
    inverse_ = scale >= 0x1p-100f ? 1.0f / scale : none;
    inverse_ = scale <= 0x1p100f ? inverse_ : none;
  }
  VecI of(Vec x) const {
#if defined(__AVX512F__)
    // Numbers before the zero point are added are less than 2^9, or 2^17.
    constexpr float kSure = sizeof(T) == 1 ? 0.499f : 0.45f;
    const Vec q = min_of(this->high_, max_of(this->low_, x * inverse_));
    const VecI whole = rounded(q);
    const Vec off = q - __builtin_convertvector(whole, Vec);
    const __m512 far = _mm512_castsi512_ps(_mm512_maskz_and_epi32(
        0xffff, reinterpret_cast<__m512i>(off), _mm512_set1_epi32(0x7fffffff)));
    if (_mm512_cmp_ps_mask(far, splat(kSure), _CMP_NLE_UQ) == 0) return whole + this->zero_;
#endif
    return Quantizer<T>::of(x);
  }

 private:
  Vec inverse_;
};
template <class T>
TESSERA_INLINE VecI quantized(Vec x, Vec scale, VecI zero) {
  return Quantizer<T>(scale, zero).of(x);
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
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 1)
      return _mm512_mask_cvtepi32_storeu_epi8(to, static_cast<__mmask16>(0xffff >> (16 - count)),
                                              reinterpret_cast<__m512i>(v));
#endif
    const Elements e = __builtin_convertvector(v, Elements);
    __builtin_memcpy(to, &e, static_cast<size_t>(count) * sizeof(T));
  }
  TESSERA_INLINE VecI load(const T* from) {
    Elements e;
    __builtin_memcpy(&e, from, sizeof e);
    return __builtin_convertvector(e, VecI);
  }
  TESSERA_INLINE VecI load(const T* from, int64_t count) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 1) {
      const __m128i bytes =
          _mm_maskz_loadu_epi8(static_cast<__mmask16>(0xffff >> (16 - count)), from);
      return T(-1) < T(0) ? reinterpret_cast<VecI>(_mm512_maskz_cvtepi8_epi32(0xffff, bytes))
                          : reinterpret_cast<VecI>(_mm512_maskz_cvtepu8_epi32(0xffff, bytes));
    }
#endif
    Elements e{};
    __builtin_memcpy(&e, from, static_cast<size_t>(count) * sizeof(T));
    return __builtin_convertvector(e, VecI);
  }
};

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
