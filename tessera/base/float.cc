#include "tessera/base/float.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

// Widths and biases: IEEE 754, OCP 8-bit Floating Point Specification 1.0, OCP Microscaling
// Formats 1.0, and for fnuz Noune et al., "8-bit Numerical Formats for Deep Neural Networks" (arXiv
// 2206.02915).
constexpr std::array<FloatFormat, 10> kFormats{{
    {5, 10, 15, Specials::kIeee, 0x7bff},
    {8, 7, 127, Specials::kIeee, 0x7f7f},
    {8, 23, 127, Specials::kIeee, 0x7f7fffff},
    {11, 52, 1023, Specials::kIeee, 0x7fefffffffffffff},
    {4, 3, 7, Specials::kNanOnly, 0x7e},
    {4, 3, 8, Specials::kNegativeZero, 0x7f},
    {5, 2, 15, Specials::kIeee, 0x7b},
    {5, 2, 16, Specials::kNegativeZero, 0x7f},
    {8, 0, 127, Specials::kUnsigned, 0xfe},
    {2, 1, 1, Specials::kNone, 0x7},
}};

static_assert(static_cast<int>(DType::kF4E2M1) - static_cast<int>(DType::kF16) + 1 ==
              static_cast<int>(kFormats.size()));

constexpr int kDoubleMantissa = 52;
constexpr uint64_t kDoubleFraction = (uint64_t{1} << kDoubleMantissa) - 1;
constexpr uint64_t kDoubleQuiet = uint64_t{1} << (kDoubleMantissa - 1);
constexpr uint64_t kDoubleInfinity = uint64_t{0x7ff} << kDoubleMantissa;
constexpr uint64_t kDoubleSign = uint64_t{1} << 63;

uint64_t mask(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

// The exponent of the last place of the smallest normal number and of all subnormals.
int least_exponent(const FloatFormat& f) {
  return (f.specials == Specials::kUnsigned ? 0 : 1) - f.bias - f.mantissa_bits;
}

uint64_t magnitude_mask(const FloatFormat& f) { return mask(f.exponent_bits + f.mantissa_bits); }

bool is_nan(const FloatFormat& f, uint64_t bits) {
  const uint64_t magnitude = bits & magnitude_mask(f);
  switch (f.specials) {
    case Specials::kIeee:
      return magnitude > (mask(f.exponent_bits) << f.mantissa_bits);
    case Specials::kNanOnly:
    case Specials::kUnsigned:
      return magnitude == magnitude_mask(f);
    case Specials::kNegativeZero:
      return bits == f.sign_bit();
    case Specials::kNone:
      return false;
  }
  return false;
}

double decode_nan(const FloatFormat& f, uint64_t bits) {
  const bool negative = f.specials != Specials::kNegativeZero && (bits & f.sign_bit());
  const uint64_t payload = f.specials == Specials::kIeee
                               ? (bits & mask(f.mantissa_bits))
                                     << (kDoubleMantissa - f.mantissa_bits)
                               : 0;
  return std::bit_cast<double>((negative ? kDoubleSign : 0) | kDoubleInfinity | kDoubleQuiet |
                               payload);
}

uint64_t encode_nan(const FloatFormat& f, uint64_t double_bits) {
  const bool negative = double_bits & kDoubleSign;
  const uint64_t sign = negative ? f.sign_bit() : 0;
  switch (f.specials) {
    case Specials::kIeee:
      return sign | (mask(f.exponent_bits) << f.mantissa_bits) |
             (uint64_t{1} << (f.mantissa_bits - 1)) |
             ((double_bits & kDoubleFraction) >> (kDoubleMantissa - f.mantissa_bits));
    case Specials::kNanOnly:
      return sign | magnitude_mask(f);
    case Specials::kUnsigned:
      return magnitude_mask(f);
    case Specials::kNegativeZero:
      return f.sign_bit();
    case Specials::kNone:
      return negative ? 0 : f.sign_bit();
  }
  return 0;
}

constexpr uint64_t kPositiveNan = kDoubleInfinity | kDoubleQuiet;

bool rounds_toward_zero(Rounding rounding, bool negative) {
  switch (rounding) {
    case Rounding::kTowardZero:
    case Rounding::kToOdd:
      return true;
    case Rounding::kDown:
      return !negative;
    case Rounding::kUp:
      return negative;
    case Rounding::kNearestEven:
    case Rounding::kNearestAway:
    case Rounding::kAwayFromZero:
      return false;
  }
  return false;
}

// Whether a magnitude strictly between `whole` and whole + 1 becomes whole + 1. `to_half` compares
// the rest with a half.
bool rounds_up(Rounding rounding, bool negative, uint64_t whole, int to_half) {
  switch (rounding) {
    case Rounding::kNearestEven:
      return to_half > 0 || (to_half == 0 && (whole & 1));
    case Rounding::kNearestAway:
      return to_half >= 0;
    case Rounding::kToOdd:
      return (whole & 1) == 0;
    case Rounding::kTowardZero:
    case Rounding::kAwayFromZero:
    case Rounding::kDown:
    case Rounding::kUp:
      return !rounds_toward_zero(rounding, negative);
  }
  return false;
}

// round(value / 2^shift)
uint64_t shift_right(uint64_t value, int shift, Rounding rounding, bool negative) {
  if (shift <= 0) return value << -shift;
  const uint64_t whole = shift < 64 ? value >> shift : 0;
  const uint64_t rest = value & mask(shift);
  if (rest == 0) return whole;
  const uint64_t half = shift <= 64 ? uint64_t{1} << (shift - 1) : 0;
  const int to_half = shift > 64 || rest < half ? -1 : rest > half;
  return whole + rounds_up(rounding, negative, whole, to_half);
}

uint64_t overflow(const FloatFormat& f, bool negative, bool saturate) {
  const uint64_t sign = negative ? f.sign_bit() : 0;
  if (saturate || f.specials == Specials::kNone) return sign | f.max_finite;
  if (f.specials == Specials::kIeee) return sign | (f.max_finite + 1);
  return encode_nan(f, kPositiveNan | (negative ? kDoubleSign : 0));
}

uint64_t zero(const FloatFormat& f, bool negative) {
  return negative && f.specials != Specials::kNegativeZero ? f.sign_bit() : 0;
}

uint64_t underflow_unsigned(const FloatFormat& f, bool saturate) {
  return saturate ? 0 : encode_nan(f, kPositiveNan);
}

// significand * 2^exponent, significand > 0
uint64_t encode_finite(const FloatFormat& f, bool negative, uint64_t significand, int exponent,
                       FloatCast cast) {
  const int top = 63 - std::countl_zero(significand) + exponent;
  const int least = least_exponent(f);
  const bool no_zero = f.specials == Specials::kUnsigned;
  if (no_zero && negative) return encode_nan(f, kPositiveNan);
  if (no_zero && top < least) return underflow_unsigned(f, cast.saturate);
  const int last = std::max(top - f.mantissa_bits, least);
  const uint64_t rounded = shift_right(significand, last - exponent, cast.rounding, negative);
  if (rounded == 0) return zero(f, negative);
  // The exponent fields 0 and 1 share one unit, and the significand's leading one tells them apart
  // by carrying.
  const uint64_t bits =
      (static_cast<uint64_t>(last - least) << f.mantissa_bits) + rounded - (no_zero ? 1 : 0);
  if (bits <= f.max_finite) return (negative ? f.sign_bit() : 0) | bits;
  const bool to_largest =
      f.specials == Specials::kIeee && rounds_toward_zero(cast.rounding, negative);
  return overflow(f, negative, cast.saturate || to_largest);
}

}  // namespace

double FloatFormat::unit_roundoff() const { return std::ldexp(1.0, -mantissa_bits - 1); }

const FloatFormat& float_format(DType dtype) {
  return kFormats[static_cast<size_t>(dtype) - static_cast<size_t>(DType::kF16)];
}

double decode(const FloatFormat& f, uint64_t bits) {
  bits &= mask(f.width());
  if (is_nan(f, bits)) return decode_nan(f, bits);
  const bool negative = bits & f.sign_bit();
  const uint64_t magnitude = bits & magnitude_mask(f);
  if (f.specials == Specials::kIeee && magnitude > f.max_finite)
    return negative ? -HUGE_VAL : HUGE_VAL;
  const auto field = static_cast<int>(magnitude >> f.mantissa_bits);
  const uint64_t fraction = magnitude & mask(f.mantissa_bits);
  const bool leading_one = field > 0 || f.specials == Specials::kUnsigned;
  const uint64_t significand = fraction | (leading_one ? uint64_t{1} << f.mantissa_bits : 0);
  const int first_field = f.specials == Specials::kUnsigned ? 0 : 1;
  const double value = std::ldexp(static_cast<double>(significand),
                                  std::max(field - first_field, 0) + least_exponent(f));
  return negative ? -value : value;
}

uint64_t encode(const FloatFormat& f, double value, FloatCast cast) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const bool negative = bits & kDoubleSign;
  const uint64_t fraction = bits & kDoubleFraction;
  const auto field = static_cast<int>((bits & kDoubleInfinity) >> kDoubleMantissa);
  if (std::isnan(value)) return encode_nan(f, bits);
  if (f.specials == Specials::kUnsigned) {
    if (value == 0) return underflow_unsigned(f, cast.saturate);
    if (negative) return encode_nan(f, kPositiveNan);
  }
  if (std::isinf(value)) return overflow(f, negative, cast.saturate);
  if (value == 0) return zero(f, negative);
  const uint64_t significand = fraction | (field > 0 ? uint64_t{1} << kDoubleMantissa : 0);
  return encode_finite(f, negative, significand, std::max(field, 1) - 1023 - kDoubleMantissa, cast);
}

uint64_t encode_integer(const FloatFormat& f, bool negative, uint64_t magnitude, FloatCast cast) {
  if (magnitude == 0) return encode(f, 0.0, cast);
  return encode_finite(f, negative, magnitude, 0, cast);
}

}  // namespace tessera
