// Every conversion is compared with a slow oracle: the sorted list of all values of a format,
// written down from the textbook formula, in which the neighbours of a number are searched and
// compared with their midpoint.
#include "tessera/base/float.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

using enum DType;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Rounding kAllRoundings[] = {
    Rounding::kNearestEven, Rounding::kNearestAway, Rounding::kTowardZero, Rounding::kAwayFromZero,
    Rounding::kDown,        Rounding::kUp,          Rounding::kToOdd};
constexpr DType kSixteen[] = {kF16, kBF16};

uint64_t encode(DType dtype, double value, FloatCast cast = {}) {
  return tessera::encode(float_format(dtype), value, cast);
}
double decode(DType dtype, uint64_t bits) { return tessera::decode(float_format(dtype), bits); }

// What is known of a format without reading the code under test.
struct Facts {
  DType dtype;
  int width, mantissa, bias;
  double max, least;  // the largest value and the smallest above zero
  bool infinity, nan, negative_zero, sign;
};
constexpr Facts kFacts[] = {
    {kF16, 16, 10, 15, 65504, 0x1p-24, true, true, true, true},
    {kBF16, 16, 7, 127, 0x1.fep127, 0x1p-133, true, true, true, true},
    {kF8E4M3FN, 8, 3, 7, 448, 0x1p-9, false, true, true, true},
    {kF8E4M3FNUZ, 8, 3, 8, 240, 0x1p-10, false, true, false, true},
    {kF8E5M2, 8, 2, 15, 57344, 0x1p-16, true, true, true, true},
    {kF8E5M2FNUZ, 8, 2, 16, 57344, 0x1p-17, false, true, false, true},
    {kF8E8M0, 8, 0, 127, 0x1p127, 0x1p-127, false, true, false, false},
    {kF4E2M1, 4, 1, 1, 6, 0.5, false, false, true, true},
};

class Oracle {
 public:
  explicit Oracle(const Facts& facts) : facts_(facts) {
    for (uint64_t bits = 0; value(bits) <= facts.max; ++bits) values_.push_back(value(bits));
    values_.push_back(2 * facts.max - values_[values_.size() - 2]);
    if (!facts.sign) values_.back() = 2 * facts.max;
  }

  // (1 + fraction) 2^(field - bias), or fraction 2^(1 - bias) in the lowest field, for any number
  // of fields.
  double value(uint64_t bits) const {
    const double scale = std::exp2(facts_.mantissa);
    const auto field = static_cast<int>(static_cast<double>(bits) / scale);
    const double fraction = std::fmod(static_cast<double>(bits), scale) / scale;
    if (!facts_.sign) return std::exp2(field - facts_.bias);
    return field == 0 ? fraction * std::exp2(1 - facts_.bias)
                      : (1 + fraction) * std::exp2(field - facts_.bias);
  }

  uint64_t count() const { return values_.size() - 1; }
  uint64_t sign() const { return facts_.sign ? uint64_t{1} << (facts_.width - 1) : 0; }

  // The neighbours of a finite number: values_[at] <= |x| < values_[at + 1], as far as the list
  // goes.
  struct Place {
    double x;
    uint64_t at;
    bool exact;
    int to_middle;  // sign of |x| - midpoint
    bool beyond;    // at or beyond the first value that is out of range
  };
  Place place(double x) const {
    const double magnitude = std::abs(x);
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    if (above == values_.end()) return {x, values_.size() - 1, false, 0, true};
    if (above == values_.begin()) return {x, 0, false, 0, false};
    const auto at = static_cast<uint64_t>(above - values_.begin()) - 1;
    const double middle = values_[at] + (values_[at + 1] - values_[at]) / 2;
    return {x, at, magnitude == values_[at], (magnitude > middle) - (magnitude < middle), false};
  }

  uint64_t expected(const Place& p, FloatCast cast) const {
    const bool negative = std::signbit(p.x);
    if (!facts_.sign && (p.x < 0 || std::abs(p.x) < facts_.least))
      return p.x >= 0 && cast.saturate ? 0 : 0xff;
    const bool inward = cast.rounding == Rounding::kTowardZero ||
                        cast.rounding == Rounding::kToOdd ||
                        (cast.rounding == Rounding::kDown && !negative) ||
                        (cast.rounding == Rounding::kUp && negative);
    uint64_t magnitude = p.at;
    if (!p.exact && !p.beyond) magnitude += rounds_up(p, cast.rounding, inward);
    if (p.beyond || magnitude >= count()) {
      const bool clamp = cast.saturate || !facts_.nan || (inward && facts_.infinity);
      magnitude = clamp ? count() - 1 : count();
      if (!clamp && !facts_.infinity && !facts_.negative_zero && facts_.sign) return sign();
    }
    if (magnitude == 0 && !facts_.negative_zero && facts_.sign) return 0;
    return magnitude | (negative ? sign() : 0);
  }

 private:
  bool rounds_up(const Place& p, Rounding rounding, bool inward) const {
    // A format of powers of two has no even significand: a tie goes up.
    const bool odd = p.at % 2 == 1 || !facts_.sign;
    if (rounding == Rounding::kNearestEven) return p.to_middle > 0 || (p.to_middle == 0 && odd);
    if (rounding == Rounding::kNearestAway) return p.to_middle >= 0;
    if (rounding == Rounding::kToOdd) return !odd;
    return !inward;
  }

  Facts facts_;
  std::vector<double> values_;
};

void check_all_casts(const Oracle& oracle, DType dtype, double x) {
  const Oracle::Place place = oracle.place(x);
  for (Rounding rounding : kAllRoundings)
    for (bool saturate : {false, true}) {
      const FloatCast cast{rounding, saturate};
      const uint64_t got = encode(dtype, x, cast), want = oracle.expected(place, cast);
      if (got == want) continue;
      ADD_FAILURE() << name_of(dtype) << " of " << x << ": " << got << ", not " << want
                    << "; rounding " << static_cast<int>(rounding) << ", saturate " << saturate;
      return;
    }
}

TEST(Float, EveryValueDecodesByTheFormula) {
  for (const Facts& facts : kFacts) {
    const Oracle oracle(facts);
    EXPECT_EQ(decode(facts.dtype, oracle.count() - 1), facts.max) << name_of(facts.dtype);
    EXPECT_EQ(decode(facts.dtype, facts.sign ? 1 : 0), facts.least) << name_of(facts.dtype);
    for (uint64_t bits = 0; bits < oracle.count(); ++bits) {
      ASSERT_EQ(decode(facts.dtype, bits), oracle.value(bits))
          << name_of(facts.dtype) << " " << bits;
      if (!facts.sign || (bits == 0 && !facts.negative_zero)) continue;
      const double negative = decode(facts.dtype, bits | oracle.sign());
      ASSERT_EQ(negative, -oracle.value(bits)) << name_of(facts.dtype) << " " << bits;
      ASSERT_TRUE(std::signbit(negative));
    }
    const auto total = uint64_t{1} << facts.width;
    const uint64_t finite = facts.sign ? 2 * oracle.count() - !facts.negative_zero : oracle.count();
    uint64_t nans = 0, infinities = 0;
    for (uint64_t bits = 0; bits < total; ++bits) {
      nans += std::isnan(decode(facts.dtype, bits));
      infinities += std::isinf(decode(facts.dtype, bits));
    }
    EXPECT_EQ(infinities, facts.infinity ? 2u : 0u) << name_of(facts.dtype);
    EXPECT_EQ(nans, total - finite - infinities) << name_of(facts.dtype);
    EXPECT_EQ(nans > 0, facts.nan) << name_of(facts.dtype);
  }
}

TEST(Float, EveryValueEncodesToItself) {
  for (const Facts& facts : kFacts)
    for (uint64_t bits = 0; bits < uint64_t{1} << facts.width; ++bits) {
      const double value = decode(facts.dtype, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(facts.dtype, encode(facts.dtype, value))))
            << name_of(facts.dtype);
        continue;
      }
      for (Rounding rounding : kAllRoundings)
        ASSERT_EQ(encode(facts.dtype, value, {rounding, false}), bits) << name_of(facts.dtype);
    }
}

TEST(Float, All16BitSourcesToAllSmallerFormats) {
  for (const Facts& facts : kFacts) {
    const Oracle oracle(facts);
    for (DType source : kSixteen) {
      if (bits_of(facts.dtype) >= 16 && source == facts.dtype) continue;
      for (uint64_t bits = 0; bits < 0x10000; ++bits)
        if (const double x = decode(source, bits); std::isfinite(x))
          check_all_casts(oracle, facts.dtype, x);
    }
  }
}

// The places where rounding decides: values, midpoints, and what lies just beside them.
TEST(Float, ValuesMidpointsAndTheirNeighbours) {
  for (const Facts& facts : kFacts) {
    const Oracle oracle(facts);
    for (uint64_t bits = 0; bits < oracle.count(); ++bits) {
      const double value = oracle.value(bits),
                   middle = value + (oracle.value(bits + 1) - value) / 2;
      for (double at : {value, middle})
        for (double x : {at, std::nextafter(at, 0.0), std::nextafter(at, kInf)})
          for (double sign : {1.0, -1.0}) check_all_casts(oracle, facts.dtype, sign * x);
    }
    for (double x : {1e-320, 1e-300, 1e300, std::numeric_limits<double>::max(), 0x1p-1074}) {
      check_all_casts(oracle, facts.dtype, x);
      check_all_casts(oracle, facts.dtype, -x);
    }
  }
}

// Bits of doubles spread over all exponents around the range of float32, subnormals included.
std::vector<double> many_doubles() {
  std::mt19937_64 random(1);
  std::vector<double> result{0x1p-149,       0x1p-150, 0x1.8p-149, 0x1.fffffep127,
                             0x1.ffffffp127, 0x1p128,  1e308};
  for (int i = 0; i < 20000; ++i) {
    const double mantissa = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    const double ties = static_cast<float>(mantissa) + std::ldexp(1.0, -24);
    const int exponent = static_cast<int>(random() % 290) - 155;
    for (double x : {mantissa, ties, std::nextafter(ties, 0.0)}) {
      result.push_back(std::ldexp(x, exponent));
      result.push_back(-std::ldexp(x, exponent));
    }
  }
  return result;
}

// To float32 the processor itself is the oracle.
TEST(Float, Float32AgreesWithTheProcessorInItsFourModes) {
  const struct {
    int mode;
    Rounding rounding;
  } kModes[] = {{FE_TONEAREST, Rounding::kNearestEven},
                {FE_TOWARDZERO, Rounding::kTowardZero},
                {FE_DOWNWARD, Rounding::kDown},
                {FE_UPWARD, Rounding::kUp}};
  const std::vector<double> values = many_doubles();
  std::mt19937_64 random(2);
  for (const auto& [mode, rounding] : kModes) {
    for (double x : values) {
      const volatile double source = x;
      std::fesetround(mode);
      const volatile float rounded = static_cast<float>(source);
      std::fesetround(FE_TONEAREST);
      ASSERT_EQ(encode(kF32, x, {rounding, false}),
                std::bit_cast<uint32_t>(static_cast<float>(rounded)))
          << x;
    }
    for (int i = 0; i < 20000; ++i) {
      const volatile auto source = static_cast<int64_t>(random()) >> (random() % 64);
      std::fesetround(mode);
      const volatile float rounded = static_cast<float>(source);
      std::fesetround(FE_TONEAREST);
      const uint64_t magnitude =
          source < 0 ? -static_cast<uint64_t>(source) : static_cast<uint64_t>(source);
      const uint64_t got =
          encode_integer(float_format(kF32), source < 0, magnitude, {rounding, false});
      ASSERT_EQ(got, std::bit_cast<uint32_t>(static_cast<float>(rounded))) << source;
    }
  }
}

TEST(Float, Float32AndFloat64DecodeAsTheProcessorDoes) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 50000; ++i) {
    const uint64_t bits = random();
    const double wide = std::bit_cast<double>(bits);
    const float narrow = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnan(wide)) {
      ASSERT_EQ(std::bit_cast<uint64_t>(decode(kF64, bits)), bits);
      ASSERT_EQ(encode(kF64, wide), bits);
    }
    if (!std::isnan(narrow)) {
      ASSERT_EQ(decode(kF32, static_cast<uint32_t>(bits)), double{narrow});
    }
  }
}

// The tables of ONNX's Cast, version 25, with and without `saturate`; the first row's values are
// those of ml_dtypes.
TEST(Float, SpecialValuesFollowTheTablesOfOnnxCast) {
  const struct {
    DType dtype;
    bool saturate;
    uint64_t zero, negative_zero, nan, negative_nan, inf, negative_inf, big, negative_big;
  } kRows[] = {
      {kF8E4M3FN, true, 0, 0x80, 0x7f, 0xff, 0x7e, 0xfe, 0x7e, 0xfe},
      {kF8E4M3FNUZ, true, 0, 0, 0x80, 0x80, 0x7f, 0xff, 0x7f, 0xff},
      {kF8E5M2, true, 0, 0x80, 0x7e, 0xfe, 0x7b, 0xfb, 0x7b, 0xfb},
      {kF8E5M2FNUZ, true, 0, 0, 0x80, 0x80, 0x7f, 0xff, 0x7f, 0xff},
      {kF8E4M3FN, false, 0, 0x80, 0x7f, 0xff, 0x7f, 0xff, 0x7f, 0xff},
      {kF8E4M3FNUZ, false, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
      {kF8E5M2, false, 0, 0x80, 0x7e, 0xfe, 0x7c, 0xfc, 0x7c, 0xfc},
      {kF8E5M2FNUZ, false, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
      {kF4E2M1, false, 0, 8, 8, 0, 7, 15, 7, 15},
      {kF16, false, 0, 0x8000, 0x7e00, 0xfe00, 0x7c00, 0xfc00, 0x7c00, 0xfc00},
      {kF16, true, 0, 0x8000, 0x7e00, 0xfe00, 0x7bff, 0xfbff, 0x7bff, 0xfbff},
      {kBF16, false, 0, 0x8000, 0x7fc0, 0xffc0, 0x7f80, 0xff80, 0x7f80, 0xff80},
  };
  for (const auto& row : kRows) {
    const FloatCast cast{Rounding::kNearestEven, row.saturate};
    const auto got = [&](double x) { return encode(row.dtype, x, cast); };
    EXPECT_EQ(got(0.0), row.zero) << name_of(row.dtype);
    EXPECT_EQ(got(-0.0), row.negative_zero) << name_of(row.dtype);
    EXPECT_EQ(got(std::copysign(kNan, 1)), row.nan) << name_of(row.dtype);
    EXPECT_EQ(got(std::copysign(kNan, -1)), row.negative_nan) << name_of(row.dtype);
    EXPECT_EQ(got(kInf), row.inf) << name_of(row.dtype);
    EXPECT_EQ(got(-kInf), row.negative_inf) << name_of(row.dtype);
    EXPECT_EQ(got(1e40), row.big) << name_of(row.dtype);
    EXPECT_EQ(got(-1e40), row.negative_big) << name_of(row.dtype);
  }
  EXPECT_EQ(encode(kF8E4M3FN, 464), 0x7eu) << "the midpoint beyond 448 is a tie, and 448 is even";
  EXPECT_EQ(encode(kF8E4M3FN, 465), 0x7fu);
}

TEST(Float, PowersOfTwoFollowTheTableOfOnnxCast) {
  const FloatCast up{Rounding::kAwayFromZero, true}, down{Rounding::kTowardZero, true};
  const FloatCast nearest{Rounding::kNearestAway, true}, strict{Rounding::kNearestAway, false};
  const double kInputs[] = {1.0, 1.125, 1.25, 1.375, 1.5, 1.75};
  const uint64_t kUp[] = {127, 128, 128, 128, 128, 128},
                 kNearest[] = {127, 127, 127, 127, 128, 128};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(encode(kF8E8M0, kInputs[i], up), kUp[i]);
    EXPECT_EQ(encode(kF8E8M0, kInputs[i], down), 127u);
    EXPECT_EQ(encode(kF8E8M0, kInputs[i], nearest), kNearest[i]);
  }
  const struct {
    double x;
    uint64_t saturated, strict;
  } kRows[] = {{0, 0, 0xff},        {kNan, 0xff, 0xff},      {kInf, 0xfe, 0xff},
               {1e200, 0xfe, 0xff}, {0x1p-140, 0x00, 0xff},  {0x1p-127, 0x00, 0x00},
               {-1, 0xff, 0xff},    {0x1.8p127, 0xfe, 0xff}, {0x1p127, 0xfe, 0xfe}};
  for (const auto& row : kRows) {
    EXPECT_EQ(encode(kF8E8M0, row.x, up), row.saturated) << row.x;
    EXPECT_EQ(encode(kF8E8M0, row.x, strict), row.strict) << row.x;
  }
}

TEST(Float, FastPathsEqualTheGeneralOnesOnAll16BitValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    ASSERT_EQ(std::bit_cast<uint32_t>(f16_to_f32(half)), encode(kF32, decode(kF16, bits))) << bits;
    ASSERT_EQ(std::bit_cast<uint32_t>(bf16_to_f32(half)), encode(kF32, decode(kBF16, bits)))
        << bits;
  }
}

TEST(Float, FastPathsFromFloat32EqualTheGeneralOnes) {
  std::mt19937 random(4);
  const auto check = [](uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    double wide = x;
    ASSERT_EQ(f32_to_f16(x), encode(kF16, wide)) << bits;
    ASSERT_EQ(f32_to_bf16(x), encode(kBF16, wide)) << bits;
  };
  for (uint32_t high = 0; high < 0x10000; ++high) {
    const uint32_t top = high << 16;
    for (uint32_t low : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x7fffu, 0x8000u,
                         0x8001u, 0xffffu})
      check(top | low);
    check(top | (random() & 0xffff));
  }
}

TEST(Float, UnitRoundoff) {
  EXPECT_EQ(float_format(kF32).unit_roundoff(), 0x1p-24);
  EXPECT_EQ(float_format(kF16).unit_roundoff(), 0x1p-11);
  EXPECT_EQ(float_format(kBF16).unit_roundoff(), 0x1p-8);
}

}  // namespace
}  // namespace tessera
