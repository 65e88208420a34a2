// Vectors of floats of the variant's width. Included by isa/*.cc only; everything is static or in
// the variant's namespace.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(TESSERA_NEON)
#include <arm_neon.h>
#endif

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

// Registers of vectors, for the sizes of tiles.
#if defined(__AVX512F__) || defined(TESSERA_NEON)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef float VecU __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef double VecD __attribute__((vector_size(kLanes * 4)));

// Before a loop whose vectors must stay in registers.
#if defined(__clang__)
#define TESSERA_UNROLL _Pragma("unroll")
#else
#define TESSERA_UNROLL _Pragma("GCC unroll 32")
#endif
#define TESSERA_INLINE static inline __attribute__((always_inline))

TESSERA_INLINE Vec load(const float* p) { return *reinterpret_cast<const VecU*>(p); }
TESSERA_INLINE void store(float* p, Vec v) { *reinterpret_cast<VecU*>(p) = v; }
#if defined(__AVX512F__)
TESSERA_INLINE Vec splat(float v) { return _mm512_set1_ps(v); }
#elif defined(__AVX2__)
TESSERA_INLINE Vec splat(float v) { return _mm256_set1_ps(v); }
#else
TESSERA_INLINE Vec splat(float v) { return Vec{v, v, v, v}; }
#endif

// a > b ? a : b and a < b ? a : b per lane: b where one is NaN.
#if defined(__AVX512F__)
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return _mm512_maskz_max_ps(0xffff, a, b); }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return _mm512_maskz_min_ps(0xffff, a, b); }
TESSERA_INLINE Vec sqrt_of(Vec v) { return _mm512_maskz_sqrt_ps(0xffff, v); }
#elif defined(__AVX2__)
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return _mm256_max_ps(a, b); }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return _mm256_min_ps(a, b); }
TESSERA_INLINE Vec sqrt_of(Vec v) { return _mm256_sqrt_ps(v); }
#elif defined(__x86_64__)
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return _mm_max_ps(a, b); }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return _mm_min_ps(a, b); }
TESSERA_INLINE Vec sqrt_of(Vec v) { return _mm_sqrt_ps(v); }
#elif defined(TESSERA_NEON)
// fmax and fmin would make NaN of either.
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
TESSERA_INLINE Vec sqrt_of(Vec v) { return vsqrtq_f32(v); }
#else
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return a > b ? a : b; }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return a < b ? a : b; }
TESSERA_INLINE Vec sqrt_of(Vec v) {
  for (int i = 0; i < kLanes; ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
}
#endif

// The first `count` lanes, 1 to kLanes, of a vector in memory: the others read as 0 and are not
// written.
class Part {
 public:
#if defined(__AVX512F__)
  explicit Part(int count) : mask_(static_cast<__mmask16>(0xffffu >> (kLanes - count))) {}
  Vec load(const float* p) const { return _mm512_maskz_loadu_ps(mask_, p); }
  // The other lanes as in `rest`.
  Vec load(const float* p, Vec rest) const { return _mm512_mask_loadu_ps(rest, mask_, p); }
  Vec only(Vec v, Vec rest) const { return _mm512_mask_mov_ps(rest, mask_, v); }
  void store(float* p, Vec v) const { _mm512_mask_storeu_ps(p, mask_, v); }

 private:
  __mmask16 mask_;
#elif defined(__AVX2__)
  explicit Part(int count)
      : mask_(_mm256_cmpgt_epi32(_mm256_set1_epi32(count),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
  Vec load(const float* p) const { return _mm256_maskload_ps(p, mask_); }
  Vec load(const float* p, Vec rest) const { return only(load(p), rest); }
  Vec only(Vec v, Vec rest) const { return _mm256_blendv_ps(rest, v, _mm256_castsi256_ps(mask_)); }
  void store(float* p, Vec v) const { _mm256_maskstore_ps(p, mask_, v); }

 private:
  __m256i mask_;
#elif defined(TESSERA_NEON)
  explicit Part(int count) : count_(count) {}
  Vec load(const float* p) const { return load(p, Vec{}); }
  Vec load(const float* p, Vec rest) const {
    switch (count_) {
      case 1:
        return vld1q_lane_f32(p, rest, 0);
      case 2:
        return vcombine_f32(vld1_f32(p), vget_high_f32(rest));
      case 3:
        return vld1q_lane_f32(p + 2, vcombine_f32(vld1_f32(p), vget_high_f32(rest)), 2);
      default:
        return vld1q_f32(p);
    }
  }
  void store(float* p, Vec v) const {
    if (count_ == 4) return vst1q_f32(p, v);
    if (count_ & 2) vst1_f32(p, vget_low_f32(v));
    if (count_ == 1) vst1q_lane_f32(p, v, 0);
    if (count_ == 3) vst1q_lane_f32(p + 2, v, 2);
  }

 private:
  int count_;
#else
  explicit Part(int count) : bytes_(static_cast<size_t>(count) * sizeof(float)) {}
  Vec load(const float* p) const { return load(p, Vec{}); }
  Vec load(const float* p, Vec rest) const {
    std::memcpy(&rest, p, bytes_);
    return rest;
  }
  Vec only(Vec v, Vec rest) const {
    std::memcpy(&rest, &v, bytes_);
    return rest;
  }
  void store(float* p, Vec v) const { std::memcpy(p, &v, bytes_); }

 private:
  size_t bytes_;
#endif
};

template <class T>
TESSERA_INLINE T least(T a, T b) {
  return b < a ? b : a;
}
template <class T>
TESSERA_INLINE T most(T a, T b) {
  return a < b ? b : a;
}

// Sum and maximum of the lanes, pairwise: those of the two halves, and so on.
#if defined(__x86_64__)
template <class F>
TESSERA_INLINE float fold_lanes(Vec v, F f) {
#if defined(__AVX512F__)
  const __m256 pairs =
      f(_mm512_maskz_extractf32x8_ps(0xff, v, 0), _mm512_maskz_extractf32x8_ps(0xff, v, 1));
#elif defined(__AVX2__)
  const __m256 pairs = v;
#endif
#if defined(__AVX2__)
  const __m128 fours = f(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
#else
  const __m128 fours = v;
#endif
  const __m128 twos = f(fours, _mm_movehl_ps(fours, fours));
  return _mm_cvtss_f32(f(twos, _mm_shuffle_ps(twos, twos, 1)));
}
TESSERA_INLINE float sum_lanes(Vec v) {
  return fold_lanes(
      v, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}
TESSERA_INLINE float max_lanes(Vec v) {
  return fold_lanes(
      v, [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}
#elif defined(TESSERA_NEON)
TESSERA_INLINE float sum_lanes(Vec v) {
  const float32x2_t twos = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(vpadd_f32(twos, twos), 0);
}
TESSERA_INLINE float max_lanes(Vec v) {
  const float32x2_t low = vget_low_f32(v), high = vget_high_f32(v);
  const float32x2_t twos = vbsl_f32(vcgt_f32(low, high), low, high);
  return twos[0] > twos[1] ? twos[0] : twos[1];
}
#else
TESSERA_INLINE float sum_lanes(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
TESSERA_INLINE float max_lanes(Vec v) { return most(most(v[0], v[2]), most(v[1], v[3])); }
#endif

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
