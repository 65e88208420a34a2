// Vectors of floats of the variant's width. Included by isa/*.cc only; everything is static or in
// the variant's namespace.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
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
#elif defined(__AVX2__)
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return _mm256_max_ps(a, b); }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return _mm256_min_ps(a, b); }
#elif defined(__x86_64__)
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return _mm_max_ps(a, b); }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return _mm_min_ps(a, b); }
#else
TESSERA_INLINE Vec max_of(Vec a, Vec b) { return a > b ? a : b; }
TESSERA_INLINE Vec min_of(Vec a, Vec b) { return a < b ? a : b; }
#endif

// The first `count` lanes, 1 to kLanes, of a vector in memory: the others read as 0 and are not
// written.
class Part {
 public:
#if defined(__AVX512F__)
  explicit Part(int count) : mask_(static_cast<__mmask16>(0xffffu >> (kLanes - count))) {}
  Vec load(const float* p) const { return _mm512_maskz_loadu_ps(mask_, p); }
  void store(float* p, Vec v) const { _mm512_mask_storeu_ps(p, mask_, v); }

 private:
  __mmask16 mask_;
#elif defined(__AVX2__)
  explicit Part(int count)
      : mask_(_mm256_cmpgt_epi32(_mm256_set1_epi32(count),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
  Vec load(const float* p) const { return _mm256_maskload_ps(p, mask_); }
  void store(float* p, Vec v) const { _mm256_maskstore_ps(p, mask_, v); }

 private:
  __m256i mask_;
#else
  explicit Part(int count) : bytes_(static_cast<size_t>(count) * sizeof(float)) {}
  Vec load(const float* p) const {
    Vec v{};
    std::memcpy(&v, p, bytes_);
    return v;
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

// Sum of the lanes, pairwise.
TESSERA_INLINE float sum_lanes(Vec v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
