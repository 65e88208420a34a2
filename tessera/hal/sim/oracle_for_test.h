// What chip::Numerics say, computed once more and otherwise: numbers are exact integers of any
// length times 2^-600, and every rule is a floor, a comparison or a sum of those. For tests.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/float.h"
#include "tessera/chip/chip.h"

namespace tessera::hal::sim::oracle {

constexpr int kPoint = 600;

// A natural number, lowest digit first.
class Natural {
 public:
  Natural() = default;
  explicit Natural(uint64_t x) {
    for (; x != 0; x >>= 32) digits_.push_back(static_cast<uint32_t>(x));
  }

  bool zero() const { return digits_.empty(); }
  int width() const {
    return zero() ? 0 : 32 * static_cast<int>(digits_.size()) - std::countl_zero(digits_.back());
  }
  bool bit(int i) const {
    const size_t at = i / 32;
    return i >= 0 && at < digits_.size() && (digits_[at] >> (i % 32) & 1);
  }

  // x 2^by, what falls below the point dropped.
  Natural shifted(int by) const {
    Natural result;
    for (int i = std::max(0, -by); i < width(); ++i)
      if (bit(i)) result.set(i + by);
    return result;
  }
  friend Natural operator+(const Natural& x, const Natural& y) {
    Natural sum;
    uint64_t carry = 0;
    for (size_t i = 0; i < std::max(x.digits_.size(), y.digits_.size()) || carry != 0; ++i) {
      carry += x.digit(i) + static_cast<uint64_t>(y.digit(i));
      sum.digits_.push_back(static_cast<uint32_t>(carry));
      carry >>= 32;
    }
    return sum.trimmed();
  }
  // @pre x >= y
  friend Natural operator-(const Natural& x, const Natural& y) {
    Natural rest;
    int64_t carry = 0;
    for (size_t i = 0; i < x.digits_.size(); ++i) {
      carry += static_cast<int64_t>(x.digit(i)) - y.digit(i);
      rest.digits_.push_back(static_cast<uint32_t>(carry));
      carry >>= 32;
    }
    return rest.trimmed();
  }
  friend std::strong_ordering operator<=>(const Natural& x, const Natural& y) {
    if (x.digits_.size() != y.digits_.size()) return x.digits_.size() <=> y.digits_.size();
    for (size_t i = x.digits_.size(); i-- > 0;)
      if (x.digits_[i] != y.digits_[i]) return x.digits_[i] <=> y.digits_[i];
    return std::strong_ordering::equal;
  }
  friend bool operator==(const Natural& x, const Natural& y) { return (x <=> y) == 0; }

 private:
  uint32_t digit(size_t i) const { return i < digits_.size() ? digits_[i] : 0; }
  void set(int i) {
    if (digits_.size() <= static_cast<size_t>(i / 32)) digits_.resize(i / 32 + 1);
    digits_[i / 32] |= 1u << (i % 32);
  }
  Natural& trimmed() {
    while (!digits_.empty() && digits_.back() == 0) digits_.pop_back();
    return *this;
  }

  std::vector<uint32_t> digits_;
};

// A real number that is a multiple of 2^-600.
struct Real {
  bool negative = false;
  Natural magnitude;

  static Real of(double x) {
    int exponent;
    const double fraction = std::frexp(std::fabs(x), &exponent);
    const auto whole = static_cast<uint64_t>(std::ldexp(fraction, 53));
    return {std::signbit(x), Natural(whole).shifted(kPoint + exponent - 53)};
  }
  bool zero() const { return magnitude.zero(); }
  int exponent() const { return magnitude.width() - 1 - kPoint; }  // floor(log2 |x|)

  friend Real operator+(const Real& x, const Real& y) {
    if (x.negative == y.negative) return {x.negative, x.magnitude + y.magnitude};
    const bool first = x.magnitude >= y.magnitude;
    if (x.magnitude == y.magnitude) return {};
    return first ? Real{x.negative, x.magnitude - y.magnitude}
                 : Real{y.negative, y.magnitude - x.magnitude};
  }
};

// To a multiple of 2^unit.
inline Real rounded(const Real& x, int unit, Rounding rounding) {
  const int drop = unit + kPoint;
  if (drop <= 0) return x;
  Natural kept = x.magnitude.shifted(-drop);
  const Natural rest = x.magnitude - kept.shifted(drop);
  const Natural half = Natural(1).shifted(drop - 1);
  bool up = false;
  switch (rounding) {
    using enum Rounding;
    case kNearestEven:
      up = rest > half || (rest == half && kept.bit(0));
      break;
    case kNearestAway:
      up = rest >= half;
      break;
    case kTowardZero:
      break;
    case kAwayFromZero:
      up = !rest.zero();
      break;
    case kDown:
      up = !rest.zero() && x.negative;
      break;
    case kUp:
      up = !rest.zero() && !x.negative;
      break;
    case kToOdd:
      up = !rest.zero() && !kept.bit(0);
      break;
  }
  if (up) kept = kept + Natural(1);
  return {x.negative, kept.shifted(drop)};
}

struct Layout {  // of a float
  int least, largest, mantissa;
};

inline float to_float(const Real& x, const Layout& f, Rounding rounding) {
  if (x.zero()) return x.negative ? -0.0f : 0.0f;
  const Real r = rounded(x, std::max(x.exponent(), f.least) - f.mantissa, rounding);
  if (r.zero()) return r.negative ? -0.0f : 0.0f;
  if (r.exponent() > f.largest) return r.negative ? -HUGE_VALF : HUGE_VALF;
  double value = 0;
  for (int i = 0; i < 25; ++i)
    if (const int at = r.magnitude.width() - 1 - i; r.magnitude.bit(at))
      value += std::ldexp(1.0, at - kPoint);
  return static_cast<float>(r.negative ? -value : value);
}

inline Rounding same(chip::Rounding r) {
  constexpr Rounding kTable[] = {Rounding::kNearestEven, Rounding::kNearestAway,
                                 Rounding::kTowardZero, Rounding::kDown, Rounding::kUp};
  return kTable[static_cast<int>(r)];
}

// Sums of f32, or of f16 if `half`.
struct Oracle {
  chip::Numerics numerics;
  int operand_least = -126;
  bool half = false;
  bool saturate = false;

  Layout sums() const {
    if (half) return {-14, 15, 10};
    return {-126, 127, numerics.result_bits ? static_cast<int>(numerics.result_bits->value) : 23};
  }
  static bool special(double x) { return !std::isfinite(x); }
  bool flushes_sums() const { return numerics.subnormals == chip::Subnormals::kFlushed; }
  float flushed(float x) const {
    return flushes_sums() && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  }

  float operand(float x) const {
    const bool flushes = numerics.subnormals != chip::Subnormals::kKept;
    const bool tree = numerics.order == chip::SumOrder::kTree;
    if (special(x)) return x;
    if (flushes && std::fabs(x) < std::ldexp(1.0f, operand_least))
      return tree ? 0.0f : std::copysign(0.0f, x);
    if (!numerics.operand_bits) return x;
    return to_float(Real::of(x), {-126, 127, static_cast<int>(numerics.operand_bits->value)},
                    same(*numerics.operand_rounding));
  }

  float step_add(float x, float y) const {
    if (special(x) || special(y)) return x + y;
    if (x == 0 && y == 0) return x + y;
    return flushed(to_float(Real::of(x) + Real::of(y), {-126, 127, 23}, Rounding::kNearestEven));
  }
  float step_product(float x, float y) const {
    if (special(x) || special(y)) return x * y;
    return flushed(
        to_float(Real::of(static_cast<double>(x) * y), {-126, 127, 23}, Rounding::kNearestEven));
  }
  float step_fma(float x, float y, float z) const {
    if (special(x) || special(y) || special(z))
      return static_cast<float>(static_cast<double>(x) * y + z);
    if (x == 0 || y == 0) return x * y + z;
    const Real sum = Real::of(static_cast<double>(x) * y) + Real::of(z);
    return flushed(to_float(sum, {-126, 127, 23}, Rounding::kNearestEven));
  }

  struct Part {
    Real sum;
    int exponent;
  };
  int exponent_of(float x, int least) const {
    return x == 0 ? -100000 : std::max(Real::of(x).exponent(), least);
  }
  Part aligned(std::span<const float> a, std::span<const float> b, size_t first, size_t step,
               int exponent, const Real* c) const {
    for (size_t i = first; i < a.size(); i += step)
      exponent =
          std::max(exponent, exponent_of(a[i], operand_least) + exponent_of(b[i], operand_least));
    const int unit = exponent - static_cast<int>(numerics.fraction_bits->value);
    const Rounding cut = same(*numerics.alignment);
    Real sum = c ? rounded(*c, unit, cut) : Real{};
    for (size_t i = first; i < a.size(); i += step)
      if (a[i] != 0 && b[i] != 0)
        sum = sum + rounded(Real::of(static_cast<double>(a[i]) * b[i]), unit, cut);
    return {sum, exponent};
  }

  // Formats with scales, which are 1 here: sums of `exact` products have exponent 0.
  Real scaled(std::span<const float> a, std::span<const float> b, float c) const {
    std::vector<Real> addends{Real::of(c)};
    int exponent = std::max(-126, exponent_of(c, sums().least));
    for (size_t i = 0; i < a.size(); i += numerics.exact->value) {
      Real sum;
      bool any = false;
      for (size_t j = i; j < std::min<size_t>(a.size(), i + numerics.exact->value); ++j) {
        sum = sum + Real::of(static_cast<double>(a[j]) * b[j]);
        any |= a[j] * b[j] != 0;
      }
      addends.push_back(sum);
      if (any) exponent = std::max(exponent, 0);
    }
    Real total;
    for (const Real& x : addends)
      total = total + rounded(x, exponent - static_cast<int>(numerics.fraction_bits->value),
                              same(*numerics.alignment));
    return total;
  }

  float fused(std::span<const float> a, std::span<const float> b, float c) const {
    double check = c;
    bool over = false, under = false;
    for (size_t i = 0; i < a.size(); ++i) {
      const double p = static_cast<double>(a[i]) * b[i];
      over |= numerics.sum_bits && p >= 0x1p128;
      under |= numerics.sum_bits && p <= -0x1p128;
      check += special(p) ? p : 0;
    }
    over |= check == HUGE_VAL;
    under |= check == -HUGE_VAL;
    if (std::isnan(check) || (over && under)) return std::numeric_limits<float>::quiet_NaN();
    if (over || under) return over ? HUGE_VALF : -HUGE_VALF;
    const Rounding rounding = half ? same(*numerics.f16_rounding) : same(numerics.rounding);
    const Real own = Real::of(c);
    Real total;
    if (numerics.sum_bits) {
      total = two_steps(a, b, c);
    } else if (numerics.exact) {
      total = scaled(a, b, c);
    } else if (numerics.fraction_bits) {
      const int floor = std::max(-126, exponent_of(c, sums().least));
      total = aligned(a, b, 0, 1, floor, &own).sum;
    } else {
      total = own;
      for (size_t i = 0; i < a.size(); ++i)
        total = total + Real::of(static_cast<double>(a[i]) * b[i]);
    }
    if (total.zero()) return 0;
    return flushed(to_float(total, sums(), rounding));
  }

  Real two_steps(std::span<const float> a, std::span<const float> b, float c) const {
    const size_t parts = numerics.parts ? numerics.parts->value : 1;
    const int bits = static_cast<int>(numerics.fraction_bits->value);
    std::vector<Part> sums_of;
    int exponent = -100000;
    for (size_t p = 0; p < parts; ++p) {
      sums_of.push_back(aligned(a, b, p, parts, -100000, nullptr));
      exponent = std::max(exponent, sums_of.back().exponent);
    }
    Real dot;
    for (const Part& p : sums_of)
      if (!p.sum.zero()) dot = dot + rounded(p.sum, exponent - bits, Rounding::kDown);
    const int of_c = std::max(-126, exponent_of(c, -126));
    exponent = std::max(exponent, of_c);
    Real total =
        rounded(dot, exponent - static_cast<int>(numerics.sum_bits->value), Rounding::kDown);
    if (!numerics.reach || of_c >= exponent - numerics.reach->value)
      total = total + rounded(Real::of(c), exponent - bits, Rounding::kDown);
    if (!numerics.total_bits || total.zero()) return total;
    return rounded(total,
                   std::max(total.exponent(), -126) - static_cast<int>(numerics.total_bits->value),
                   Rounding::kDown);
  }

  float group(std::span<const float> a, std::span<const float> b, float c) const {
    float sum = 0;
    switch (numerics.order) {
      using enum chip::SumOrder;
      case kFused:
        sum = fused(a, b, c);
        break;
      case kTree: {
        std::vector<float> level(numerics.group.value, 0.0f);
        for (size_t i = 0; i < a.size(); ++i) level[i] = step_product(a[i], b[i]);
        for (; level.size() > 1; level.resize(level.size() / 2))
          for (size_t i = 0; i < level.size() / 2; ++i)
            level[i] = step_add(level[2 * i], level[2 * i + 1]);
        sum = step_add(flushed(c), level[0]);
        break;
      }
      case kSequential:
        sum = flushed(c);
        for (size_t i = 0; i < a.size(); ++i) sum = step_fma(a[i], b[i], sum);
        break;
      case kEvenOdd:
        sum = even_odd(a, b, flushed(c));
        break;
    }
    if (!saturate || std::isfinite(sum)) return sum;
    const Layout f = sums();
    const double largest = std::ldexp(2 - std::ldexp(1.0, -f.mantissa), f.largest);
    return std::isnan(sum) ? 0.0f : static_cast<float>(std::copysign(largest, sum));
  }

  float even_odd(std::span<const float> a, std::span<const float> b, float c) const {
    float sums_of[2] = {0, 0};
    for (size_t i = 0; i < a.size(); ++i) sums_of[i % 2] = step_fma(a[i], b[i], sums_of[i % 2]);
    return step_add(c, step_add(sums_of[0], sums_of[1]));
  }

  // Whole groups, one after the other.
  float dot(std::span<const float> a, std::span<const float> b, float c) const {
    std::vector<float> x, y;
    for (float v : a) x.push_back(operand(v));
    for (float v : b) y.push_back(operand(v));
    const std::span<const float> all_x = x, all_y = y;
    for (size_t i = 0; i < x.size(); i += numerics.group.value) {
      const size_t count = std::min<size_t>(numerics.group.value, x.size() - i);
      c = group(all_x.subspan(i, count), all_y.subspan(i, count), c);
    }
    return c;
  }
};

}  // namespace tessera::hal::sim::oracle
