// f16 and bf16 as bits, converted by branch-free integer arithmetic that compilers vectorise. The
// same results as tessera/base/float.h, which is not included here: its inline functions would be
// shared between variants.
#pragma once

#include "tessera/kernels/cpu/isa/vec.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

TESSERA_INLINE uint32_t bits_of(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  return bits;
}
TESSERA_INLINE float float_of(uint32_t bits) {
  float v;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}

TESSERA_INLINE float from_bf16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  return float_of(wide | ((wide & 0x7fffffff) > 0x7f800000 ? 0x400000u : 0u));
}

TESSERA_INLINE uint16_t to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded);
}

TESSERA_INLINE float from_f16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
  const uint32_t small = bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0u);
  return float_of(sign | (magnitude < 0x400u ? small : magnitude >= 0x7c00u ? special : normal));
}

// To nearest even; overflow to infinity.
TESSERA_INLINE uint16_t to_f16(float value) {
  const uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u,
                 magnitude = bits & 0x7fffffffu;
  // Adding 0.5 leaves a multiple of 2^-24, rounded to nearest even, in the low bits: the
  // subnormals.
  const uint32_t small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  const uint32_t normal =
      (magnitude + 0xfffu + ((magnitude >> 13) & 1) - ((127u - 15u) << 23)) >> 13;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const uint32_t finite = magnitude < 0x38800000u    ? small
                          : magnitude >= 0x477ff000u ? 0x7c00u
                                                     : normal;
  return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? nan : finite));
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
