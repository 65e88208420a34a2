// Sums of four neighbouring products of 8-bit integers, exact: the instruction of AVX-512 VNNI, or
// two of products of 16-bit integers.
#pragma once

#include "tessera/kernels/cpu/isa/math.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

typedef int16_t VecS __attribute__((vector_size(kLanes * 4)));
typedef uint16_t VecUS __attribute__((vector_size(kLanes * 4)));
typedef int32_t VecIU __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

TESSERA_INLINE VecI load_ints(const void* p) { return *static_cast<const VecIU*>(p); }
TESSERA_INLINE void store_ints(void* p, VecI v) { *static_cast<VecIU*>(p) = v; }
TESSERA_INLINE VecI splat_int(int32_t v) { return VecI{} + v; }

TESSERA_INLINE int32_t load_quad(const uint8_t* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, 4);
  return quad;
}
// The first `count` bytes, 1 to 3; the others are 0.
TESSERA_INLINE int32_t load_quad(const uint8_t* p, int64_t count) {
  uint32_t quad = p[0];
  if (count > 1) quad |= uint32_t{p[1]} << 8;
  if (count > 2) quad |= uint32_t{p[2]} << 16;
  return static_cast<int32_t>(quad);
}

// Quads of one side of the products, in each lane; kSigned: of i8, else of u8.
#if defined(__AVX512VNNI__)

template <bool kSigned>
struct Quads {
  VecI v;
  TESSERA_INLINE Quads of(VecI quads) { return {quads}; }
};
// sum + x * w
TESSERA_INLINE VecI add_products(VecI sum, Quads<false> x, Quads<true> w) {
  return reinterpret_cast<VecI>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum),
                                                    reinterpret_cast<__m512i>(x.v),
                                                    reinterpret_cast<__m512i>(w.v)));
}
TESSERA_INLINE VecI add_products(VecI sum, Quads<true> x, Quads<false> w) {
  return add_products(sum, w, x);
}

#else

template <bool kSigned>
struct Quads {
  VecS even, odd;  // elements 0 and 2, 1 and 3
  TESSERA_INLINE Quads of(VecI quads) {
    if constexpr (kSigned) {
      const VecS both = reinterpret_cast<VecS>(quads);
      return {(both << 8) >> 8, both >> 8};
    } else {
      const VecUS both = reinterpret_cast<VecUS>(quads);
      return {reinterpret_cast<VecS>(both & 0xff), reinterpret_cast<VecS>(both >> 8)};
    }
  }
};

// The sums of neighbouring products.
TESSERA_INLINE VecI pairs(VecS a, VecS b) {
#if defined(__AVX512F__)
  return reinterpret_cast<VecI>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<VecI>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__x86_64__)
  return reinterpret_cast<VecI>(
      _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  const VecI x = reinterpret_cast<VecI>(a), y = reinterpret_cast<VecI>(b);
  return ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16);
#endif
}

template <bool kSigned>
TESSERA_INLINE VecI add_products(VecI sum, Quads<kSigned> x, Quads<!kSigned> w) {
  return sum + pairs(x.even, w.even) + pairs(x.odd, w.odd);
}

#endif

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
