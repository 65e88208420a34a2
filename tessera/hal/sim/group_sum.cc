// One group of products, in integers: slow, and as plain as the rules allow.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tessera/hal/sim/numerics.h"
#include "tessera/hal/sim/rule.h"

namespace tessera::hal::sim {
namespace {

constexpr int kZeroExponent = -126;  // what a zero's exponent counts as
constexpr int kNoExponent = -9999;   // of a sum without addends

// significand x 2^lowest, and the exponent that alignment sees.
struct Addend {
  int64_t significand = 0;
  int lowest = 0;
  int exponent = kNoExponent;
};

Addend addend_of(float value, int least_exponent) {
  if (value == 0) return {};
  int exponent;
  const float fraction = std::frexp(value, &exponent);
  return {static_cast<int64_t>(std::ldexp(fraction, 24)), exponent - 24,
          std::max(exponent - 1, least_exponent)};
}

Addend product(const Rule& rule, float a, float b) {
  const Addend x = addend_of(a, rule.operand_least_exponent);
  const Addend y = addend_of(b, rule.operand_least_exponent);
  if (x.significand == 0 || y.significand == 0) return {};
  return {x.significand * y.significand, x.lowest + y.lowest, x.exponent + y.exponent};
}

// magnitude / 2^shift, rounded; `rest`: there is more below, less than one in the last place.
uint64_t shift_right(uint64_t magnitude, int shift, bool rest, bool negative, Rounding rounding) {
  const uint64_t kept = shift > 63 ? 0 : magnitude >> shift;
  const uint64_t lost = shift > 63 ? magnitude : magnitude & ((uint64_t{1} << shift) - 1);
  const bool inexact = lost != 0 || rest;
  const uint64_t half = shift > 64 || shift == 0 ? 0 : uint64_t{1} << (shift - 1);
  const bool above = half != 0 && (lost > half || (lost == half && rest));
  const bool tie = half != 0 && lost == half && !rest;
  switch (rounding) {
    using enum Rounding;
    case kNearestEven:
      return kept + (above || (tie && (kept & 1)));
    case kNearestAway:
      return kept + (above || tie);
    case kTowardZero:
      return kept;
    case kAwayFromZero:
      return kept + inexact;
    case kDown:
      return kept + (inexact && negative);
    case kUp:
      return kept + (inexact && !negative);
    case kToOdd:
      return kept | static_cast<uint64_t>(inexact);
  }
  return kept;
}

// value x 2^lowest in units of 2^unit.
int64_t in_units(int64_t value, int lowest, int unit, Rounding rounding) {
  const bool negative = value < 0;
  const uint64_t magnitude =
      negative ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (magnitude == 0) return 0;
  const uint64_t result = lowest >= unit
                              ? magnitude << (lowest - unit)
                              : shift_right(magnitude, unit - lowest, false, negative, rounding);
  return negative ? -static_cast<int64_t>(result) : static_cast<int64_t>(result);
}

// The sum that is magnitude x 2^lowest, and `rest` less than 2^lowest further from zero.
float round_sum(const Rule& rule, bool negative, uint64_t magnitude, int lowest, bool rest) {
  if (magnitude == 0 && !rest) return 0;
  const Format& sums = rule.sums;
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1 + lowest;
  const int unit = std::max(exponent, sums.least_exponent) - sums.mantissa_bits;
  const uint64_t rounded =
      unit <= lowest ? magnitude << (lowest - unit)
                     : shift_right(magnitude, unit - lowest, rest, negative, rule.rounding);
  double value = std::ldexp(static_cast<double>(rounded), unit);
  if (value >= std::ldexp(1.0, sums.largest_exponent + 1))
    value = std::numeric_limits<double>::infinity();
  if (rule.flush_sums && value < std::ldexp(1.0, sums.least_exponent)) value = 0;
  return static_cast<float>(negative ? -value : value);
}

float round_sum(const Rule& rule, int64_t value, int lowest) {
  const bool negative = value < 0;
  const uint64_t magnitude =
      negative ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return round_sum(rule, negative, magnitude, lowest, false);
}

// A fixed-point number, wide enough for every sum of products of float32.
class Wide {
 public:
  void add(const Addend& x) {
    const int at = x.lowest - kLowest;
    // The sign fills all above.
    const uint64_t sign = x.significand < 0 ? ~uint64_t{0} : 0;
    const auto word = [&](int i) {
      return i == 0 ? static_cast<uint64_t>(x.significand) : i < 0 ? uint64_t{0} : sign;
    };
    const int shift = at % 64;
    bool carry = false;
    for (int i = at / 64; i < kWords; ++i) {
      const int from = i - at / 64;
      const uint64_t part =
          shift == 0 ? word(from) : (word(from) << shift) | (word(from - 1) >> (64 - shift));
      const uint64_t sum = words_[i] + part;
      const uint64_t with_carry = sum + carry;
      carry = sum < part || with_carry < sum;
      words_[i] = with_carry;
    }
  }

  float rounded(const Rule& rule) const {
    const bool negative = words_.back() >> 63;
    const Words magnitude = negative ? negated() : words_;
    int top = kWords - 1;
    while (top > 0 && magnitude[top] == 0) --top;
    const uint64_t low = top > 0 ? magnitude[top - 1] : 0;
    const int free = std::countl_zero(magnitude[top]);
    const uint64_t leading =
        free == 0 || free == 64 ? magnitude[top] : (magnitude[top] << free) | (low >> (64 - free));
    bool rest = free < 64 && static_cast<uint64_t>(low << free) != 0;
    for (int i = 0; i < top - 1; ++i) rest |= magnitude[i] != 0;
    const int lowest = kLowest + 64 * top - (free == 64 ? 0 : free);
    return round_sum(rule, negative, leading, lowest, rest);
  }

 private:
  static constexpr int kLowest = -384, kWords = 12;  // to 2^384
  using Words = std::array<uint64_t, kWords>;

  Words negated() const {
    Words result{};
    bool carry = true;
    for (int i = 0; i < kWords; ++i) {
      result[i] = ~words_[i] + carry;
      carry = carry && result[i] == 0;
    }
    return result;
  }

  Words words_{};
};

// Of infinities and NaNs among products and accumulator; nothing if all are finite.
std::optional<float> special(const Rule& rule, std::span<const float> a, const float* b,
                             int64_t stride, float c) {
  bool up = c == HUGE_VALF, down = c == -HUGE_VALF, nan = std::isnan(c);
  for (size_t i = 0; i < a.size(); ++i) {
    const double p = static_cast<double>(a[i]) * static_cast<double>(b[i * stride]);
    // Products that are added apart from the accumulator have its range.
    const double bound = rule.sum_bits >= 0 ? 0x1p128 : HUGE_VAL;
    nan |= std::isnan(p);
    up |= p >= bound;
    down |= p <= -bound;
  }
  if (nan || (up && down)) return std::numeric_limits<float>::quiet_NaN();
  if (up || down) return up ? HUGE_VALF : -HUGE_VALF;
  return std::nullopt;
}

using Addends = std::array<Addend, 256>;

// Addends of one group: products or, of formats with scales, exact sums of some.
size_t addends_of(const Rule& rule, std::span<const float> a, const float* b, int64_t stride,
                  Addends& out) {
  size_t n = 0;
  for (size_t i = 0; i < a.size(); i += rule.exact) {
    if (rule.exact == 1) {
      out[n++] = product(rule, a[i], b[i * stride]);
      continue;
    }
    const size_t end = std::min(a.size(), i + rule.exact);
    int lowest = 0;
    for (size_t j = i; j < end; ++j)
      lowest = std::min(lowest, product(rule, a[j], b[j * stride]).lowest);
    Addend sum{.lowest = lowest};
    for (size_t j = i; j < end; ++j) {
      const Addend p = product(rule, a[j], b[j * stride]);
      sum.significand += in_units(p.significand, p.lowest, lowest, Rounding::kTowardZero);
      if (p.significand != 0) sum.exponent = 0;
    }
    out[n++] = sum;
  }
  return n;
}

struct Aligned {
  int64_t value = 0;  // in units of 2^(exponent - fraction_bits)
  int exponent = kNoExponent;
};

Aligned align_and_add(const Rule& rule, std::span<const Addend> addends, int step, int exponent) {
  for (size_t i = 0; i < addends.size(); i += step)
    exponent = std::max(exponent, addends[i].exponent);
  Aligned sum{.exponent = exponent};
  for (size_t i = 0; i < addends.size(); i += step)
    sum.value += in_units(addends[i].significand, addends[i].lowest, exponent - rule.fraction_bits,
                          rule.alignment);
  return sum;
}

// Products by themselves, in parts; then their sum and the accumulator, rounded down.
float two_steps(const Rule& rule, std::span<const Addend> products, const Addend& c) {
  constexpr Rounding kDown = Rounding::kDown;
  Aligned dot;
  for (int part = 0; part < rule.parts; ++part) {
    const Aligned sum = align_and_add(
        rule, products.subspan(std::min<size_t>(part, products.size())), rule.parts, kNoExponent);
    const int exponent = std::max(dot.exponent, sum.exponent), unit = exponent - rule.fraction_bits;
    dot = {in_units(dot.value, dot.exponent - rule.fraction_bits, unit, kDown) +
               in_units(sum.value, sum.exponent - rule.fraction_bits, unit, kDown),
           exponent};
  }
  const int c_exponent = std::max(c.exponent, kZeroExponent);
  const int exponent = std::max(dot.exponent, c_exponent);
  const int unit = exponent - rule.sum_bits;
  int64_t total = in_units(dot.value, dot.exponent - rule.fraction_bits, unit, kDown);
  if (rule.reach < 0 || c_exponent >= exponent - rule.reach)
    total += in_units(c.significand, c.lowest, exponent - rule.fraction_bits, kDown)
             << (rule.sum_bits - rule.fraction_bits);
  if (rule.total_bits < 0 || total == 0) return round_sum(rule, total, unit);
  const int width = static_cast<int>(std::bit_width(static_cast<uint64_t>(std::abs(total))));
  const int lowest = std::max(unit + width - 1, rule.sums.least_exponent) - rule.total_bits;
  if (lowest <= unit) return round_sum(rule, total, unit);
  return round_sum(rule, in_units(total, unit, lowest, kDown), lowest);
}

float fused(const Rule& rule, std::span<const float> a, const float* b, int64_t stride, float c) {
  if (const std::optional<float> value = special(rule, a, b, stride, c)) return *value;
  Addends addends;
  size_t n = addends_of(rule, a, b, stride, addends);
  const Addend sum = addend_of(c, rule.sums.least_exponent);
  if (rule.sum_bits >= 0) return two_steps(rule, {addends.data(), n}, sum);
  addends[n++] = sum;
  if (rule.fraction_bits < 0) {
    Wide wide;
    for (size_t i = 0; i < n; ++i) wide.add(addends[i]);
    return wide.rounded(rule);
  }
  const Aligned total = align_and_add(rule, {addends.data(), n}, 1, kZeroExponent);
  return round_sum(rule, total.value, total.exponent - rule.fraction_bits);
}

float flushed(const Rule& rule, float x) {
  return rule.flush_sums && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

float tree(const Rule& rule, std::span<const float> a, const float* b, int64_t stride, float c) {
  std::array<float, 256> sums{};
  for (size_t i = 0; i < a.size(); ++i) sums[i] = flushed(rule, a[i] * b[i * stride]);
  for (int n = rule.group; n > 1; n /= 2)
    for (int i = 0; i < n / 2; ++i) sums[i] = flushed(rule, sums[2 * i] + sums[2 * i + 1]);
  return flushed(rule, flushed(rule, c) + sums[0]);
}

float sequential(const Rule& rule, std::span<const float> a, const float* b, int64_t stride,
                 float c, size_t step = 1) {
  c = flushed(rule, c);
  for (size_t i = 0; i < a.size(); i += step) c = flushed(rule, std::fma(a[i], b[i * stride], c));
  return c;
}

float even_odd(const Rule& rule, std::span<const float> a, const float* b, int64_t stride,
               float c) {
  const float even = sequential(rule, a, b, stride, 0, 2);
  const float odd = a.size() < 2 ? 0 : sequential(rule, a.subspan(1), b + stride, stride, 0, 2);
  return flushed(rule, c + flushed(rule, even + odd));
}

}  // namespace

float round_operand(const Rule& rule, float value) {
  if (rule.operand_bits >= 0)
    value = round_mantissa(value, rule.operand_bits, rule.operand_rounding, rule.flush_operands);
  if (!rule.flush_operands || std::fabs(value) >= rule.operand_least_normal) return value;
  return std::isnan(value) ? value : rule.flush_loses_sign ? 0.0f : std::copysign(0.0f, value);
}

int64_t products_of(const Rule& rule, int64_t k) {
  return rule.drop_tail ? k - k % std::max(rule.group, 16) : k;
}

float finish(const Rule& rule, float sum) {
  if (rule.round_sums_to_f16) sum = f16_to_f32(f32_to_f16(sum));
  if (std::isfinite(sum)) return sum;
  if (rule.swallow_nan && std::isnan(sum)) return 0;
  if (!rule.saturate) return std::isnan(sum) ? std::bit_cast<float>(rule.nan) : sum;
  if (std::isnan(sum)) return 0;
  const Format& f = rule.sums;
  const double largest = std::ldexp(2 - std::ldexp(1.0, -f.mantissa_bits), f.largest_exponent);
  return static_cast<float>(std::copysign(largest, sum));
}

float group_sum(const Rule& rule, std::span<const float> a, const float* b, int64_t stride,
                float c) {
  using enum chip::SumOrder;
  switch (rule.order) {
    case kFused:
      return finish(rule, fused(rule, a, b, stride, c));
    case kTree:
      return finish(rule, tree(rule, a, b, stride, c));
    case kSequential:
      return finish(rule, sequential(rule, a, b, stride, c));
    case kEvenOdd:
      return finish(rule, even_odd(rule, a, b, stride, c));
  }
  return c;
}

}  // namespace tessera::hal::sim
