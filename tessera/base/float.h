// Binary floating-point formats as data, and exact conversions between them in every rounding mode.
// A float64 holds every value of every format here, so `decode` loses nothing and `encode` rounds
// exactly once.
#pragma once

#include <bit>
#include <cstdint>

#include "tessera/base/dtype.h"

namespace tessera {

enum class Rounding : uint8_t {
  kNearestEven,   // the default of IEEE 754; ONNX for all but f8e8m0; Ascend RINT
  kNearestAway,   // ties away from zero; ONNX "nearest" for f8e8m0; Ascend ROUND
  kTowardZero,    // ONNX "down" for f8e8m0; Ascend TRUNC
  kAwayFromZero,  // ONNX "up" for f8e8m0
  kDown,          // toward minus infinity; Ascend FLOOR
  kUp,            // toward plus infinity; Ascend CEIL
  kToOdd,         // inexact results get an odd significand; Ascend ODD
};

// How a value becomes a float. `saturate`: what is out of range after rounding, infinities
// included, becomes the largest finite value of its sign; otherwise infinity or, in formats without
// one, NaN. ONNX's Cast saturates (unless told not to) in 8-bit formats only; f4e2m1, having
// neither infinity nor NaN, always saturates.
struct FloatCast {
  Rounding rounding = Rounding::kNearestEven;
  bool saturate = false;
};

enum class Specials : uint8_t {
  kIeee,          // the top exponent holds infinities and NaNs
  kNanOnly,       // "fn": all ones is NaN, no infinity
  kNegativeZero,  // "fnuz": the place of -0 is the only NaN, no infinity
  kUnsigned,      // e8m0: no sign, no zero, no significand; all ones is NaN
  kNone,          // finite values only
};

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;  // stored ones, without the implied leading one
  int bias;
  Specials specials;
  uint64_t max_finite;  // bits of the largest finite value

  constexpr int width() const {
    return (specials == Specials::kUnsigned ? 0 : 1) + exponent_bits + mantissa_bits;
  }
  constexpr bool has_sign() const { return specials != Specials::kUnsigned; }
  constexpr uint64_t sign_bit() const { return has_sign() ? uint64_t{1} << (width() - 1) : 0; }
  // Half the distance from 1 to the next value: the bound on the relative error of rounding to
  // nearest.
  double unit_roundoff() const;
};

// @pre is_float(dtype)
const FloatFormat& float_format(DType dtype);

// The value of the lowest `width` bits. NaNs keep their sign and the leading bits of their payload,
// made quiet.
double decode(const FloatFormat& format, uint64_t bits);

// @post decode(f, encode(f, decode(f, b), any)) == decode(f, b) for all values but NaN
// NaN stays NaN (sign and leading payload bits kept where there is room); in f4e2m1 it becomes the
// zero of opposite sign, as in ml_dtypes. Overflow rounds to the largest finite value, not
// infinity, in the modes that round that way (IEEE 754-2019, 7.4). f8e8m0: zero and what is below
// the smallest value saturate to it, or give NaN; negative values give NaN.
uint64_t encode(const FloatFormat& format, double value, FloatCast cast = {});
// The same for sign * magnitude, which may need more than float64's 53 bits.
uint64_t encode_integer(const FloatFormat& format, bool negative, uint64_t magnitude,
                        FloatCast cast = {});

// Fast paths, equal to the general ones bit by bit. To f16 and bf16: to nearest even, overflow to
// infinity.
inline float bf16_to_f32(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  const bool nan = (wide & 0x7fffffff) > 0x7f800000;
  return std::bit_cast<float>(wide | (nan ? 0x400000u : 0u));
}

inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t quiet = (bits >> 16) | 0x40;
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

inline float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  // 2^-24 units are exact in float32: this is the value of a subnormal.
  const uint32_t small = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0u);
  const uint32_t value = magnitude < 0x400u ? small : magnitude >= 0x7c00u ? special : normal;
  return std::bit_cast<float>(sign | value);
}

inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Adding 0.5 leaves the sum's last bit at 2^-24, the unit of f16's subnormals: the addition
  // rounds.
  const float shifted = std::bit_cast<float>(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f;
  const uint32_t small = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t normal =
      (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const uint32_t result = magnitude > 0x7f800000u    ? nan
                          : magnitude >= 0x477ff000u ? 0x7c00u
                          : magnitude < 0x38800000u  ? small
                                                     : normal;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000u) | result);
}

}  // namespace tessera
