#include "tessera/base/element.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

using enum DType;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<DType> all_with_bits(int most) {
  std::vector<DType> result;
  for (int i = 0; i < kDTypeCount; ++i)
    if (const auto d = static_cast<DType>(i); bits_of(d) > 0 && bits_of(d) <= most)
      result.push_back(d);
  return result;
}

// One element of type `to` made from `value` by `store`, read back as bits.
template <class T>
uint64_t stored(DType to, T value, void (*store)(DType, void*, int64_t, T, FloatCast),
                FloatCast cast = {}) {
  uint8_t room[16] = {};
  store(to, room, 0, value, cast);
  return load_bits(to, room, 0);
}

TEST(Element, PackedElementsLieLowestBitsFirst) {
  std::vector<uint8_t> bytes{0xe4, 0x1b};
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(load_bits(kU2, bytes.data(), i), static_cast<uint64_t>(i < 4 ? i : 7 - i));
  EXPECT_EQ(load_i64(kI2, bytes.data(), 2), -2);
  EXPECT_EQ(load_i64(kI4, bytes.data(), 0), 4);
  EXPECT_EQ(load_i64(kI4, bytes.data(), 1), -2);
  EXPECT_EQ(load_f64(kF4E2M1, bytes.data(), 1), -4.0);
}

TEST(Element, EveryPatternIsStoredWithoutTouchingItsNeighbours) {
  for (DType d : all_with_bits(8)) {
    const int per_byte = 8 / bits_of(d);
    for (uint64_t background : {0x00u, 0xffu})
      for (int at = 0; at < 2 * per_byte; ++at)
        for (uint64_t bits = 0; bits < uint64_t{1} << bits_of(d); ++bits) {
          uint8_t bytes[2] = {static_cast<uint8_t>(background), static_cast<uint8_t>(background)};
          store_bits(d, bytes, at, bits);
          const uint64_t other = background & ((uint64_t{1} << bits_of(d)) - 1);
          for (int i = 0; i < 2 * per_byte; ++i)
            ASSERT_EQ(load_bits(d, bytes, i), i == at ? bits : other) << name_of(d) << " at " << at;
        }
  }
}

TEST(Element, EveryPatternUpTo16BitsSurvivesTheWayOverFloat64) {
  for (DType d : all_with_bits(16)) {
    if (d == kBool) continue;
    for (uint64_t bits = 0; bits < uint64_t{1} << bits_of(d); ++bits) {
      uint16_t room = 0;
      store_bits(d, &room, 0, bits);
      const double value = load_f64(d, &room, 0);
      ASSERT_TRUE(std::isnan(value) || stored<double>(d, value, store_f64) == bits) << name_of(d);
    }
  }
}

TEST(Element, IntegersKeepTheirLowBits) {
  EXPECT_EQ(stored<int64_t>(kI8, 200, store_i64), 0xc8u);
  const int64_t extreme[] = {std::numeric_limits<int64_t>::min(), -1, 0, 1,
                             std::numeric_limits<int64_t>::max()};
  for (int64_t value : extreme) {
    uint8_t room[8];
    store_i64(kI64, room, 0, value);
    EXPECT_EQ(load_i64(kI64, room, 0), value);
    store_i64(kU64, room, 0, value);
    EXPECT_EQ(load_u64(kU64, room, 0), static_cast<uint64_t>(value));
    store_i64(kI32, room, 0, value);
    EXPECT_EQ(load_i64(kI32, room, 0), static_cast<int32_t>(value));
    store_i64(kI4, room, 0, value);
    EXPECT_EQ(load_i64(kI4, room, 0), static_cast<int8_t>(static_cast<uint64_t>(value) << 4) >> 4);
  }
  const uint64_t big = uint64_t{1} << 63;
  EXPECT_EQ(load_f64(kU64, &big, 0), 0x1p63);
  EXPECT_EQ(load_f64(kI64, &big, 0), -0x1p63);
}

// ml_dtypes' and numpy's answers where they define one.
TEST(Element, FloatsAreTruncatedAndWrapped) {
  const double inputs[] = {-9, -8, -1.5, 7, 8, 15, 16, 17.9, -17, 300};
  const int i4[] = {7, -8, -1, 7, -8, -1, 0, 1, -1, -4}, u4[] = {7, 8, 15, 7, 8, 15, 0, 1, 15, 12};
  const int i2[] = {-1, 0, -1, -1, 0, -1, 0, 1, -1, 0},
            u8[] = {247, 248, 255, 7, 8, 15, 16, 17, 239, 44};
  for (size_t i = 0; i < std::size(inputs); ++i) {
    EXPECT_EQ(truncate_to_int(inputs[i], 4), i4[i]);
    EXPECT_EQ(truncate_to_int(inputs[i], 2), i2[i]);
    EXPECT_EQ(truncate_to_uint(inputs[i], 4), static_cast<uint64_t>(u4[i]));
    EXPECT_EQ(truncate_to_uint(inputs[i], 8), static_cast<uint64_t>(u8[i]));
  }
  EXPECT_EQ(truncate_to_uint(1e19, 64), 10000000000000000000u);
}

TEST(Element, FloatsBeyondEveryIntegerSaturate) {
  for (double x : {0x1p64, 1e300, kInf}) {
    EXPECT_EQ(truncate_to_int(x, 64), std::numeric_limits<int64_t>::max());
    EXPECT_EQ(truncate_to_int(-x, 64), std::numeric_limits<int64_t>::min());
    EXPECT_EQ(truncate_to_int(x, 8), 127);
    EXPECT_EQ(truncate_to_int(-x, 2), -2);
    EXPECT_EQ(truncate_to_uint(x, 64), std::numeric_limits<uint64_t>::max());
    EXPECT_EQ(truncate_to_uint(-x, 64), 0u);
  }
  EXPECT_EQ(truncate_to_int(kNan, 64), 0);
  EXPECT_EQ(truncate_to_uint(kNan, 8), 0u);
  EXPECT_EQ(truncate_to_int(-0x1p63, 64), std::numeric_limits<int64_t>::min());
}

TEST(Element, WideIntegersAreRoundedOnce) {
  // By way of float64 this would become the tie 2^25 + 2 and then 2^25: one rounding too many.
  const int64_t value = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(stored<int64_t>(kF32, value, store_i64), std::bit_cast<uint32_t>(0x1.000002p60f));
  EXPECT_EQ(stored<int64_t>(kF32, -value, store_i64), std::bit_cast<uint32_t>(-0x1.000002p60f));
  EXPECT_EQ(stored<uint64_t>(kF32, std::numeric_limits<uint64_t>::max(), store_u64),
            std::bit_cast<uint32_t>(0x1p64f));
  EXPECT_EQ(stored<int64_t>(kF16, 65520, store_i64), 0x7c00u);
  EXPECT_EQ(stored<int64_t>(kF32, 0, store_i64), 0u);
}

TEST(Element, BoolIsWhetherItDiffersFromZero) {
  const uint8_t odd = 7;
  EXPECT_EQ(load_i64(kBool, &odd, 0), 1);
  EXPECT_EQ(load_f64(kBool, &odd, 0), 1.0);
  EXPECT_EQ(stored<double>(kBool, 0.1, store_f64), 1u);
  EXPECT_EQ(stored<double>(kBool, -0.0, store_f64), 0u);
  EXPECT_EQ(stored<double>(kBool, kNan, store_f64), 1u);
  EXPECT_EQ(stored<int64_t>(kBool, 256, store_i64), 1u);
  uint8_t normal = 0;
  convert_elements(kBool, &odd, kBool, &normal, 1);
  EXPECT_EQ(normal, 1);
}

TEST(Element, ComplexKeepsBothPartsAndGivesItsRealPart) {
  std::complex<float> value;
  store_c128(kC64, &value, 0, {1.5, -2});
  EXPECT_EQ(value, std::complex<float>(1.5f, -2));
  EXPECT_EQ(load_c128(kC64, &value, 0), std::complex<double>(1.5, -2));
  EXPECT_EQ(load_f64(kC64, &value, 0), 1.5);
  EXPECT_EQ(load_i64(kC64, &value, 0), 1);
  EXPECT_EQ(load_u64(kC64, &value, 0), 1u);
  std::complex<double> wide;
  store_i64(kC128, &wide, 0, -3);
  EXPECT_EQ(wide, std::complex<double>(-3, 0));
}

// convert_elements against one element at a time, for every pair of types, with counts that end
// inside a byte.
TEST(Element, ConversionOfArraysEqualsThatOfElements) {
  const std::vector<double> values{0,    -0.0, 1, -1,   2.5,   -3.7, 100, 1e6, -1e6,
                                   1e-8, 3,    6, kInf, -kInf, 0.25, 5,   448};
  const auto count = static_cast<int64_t>(values.size());
  for (DType from : all_with_bits(128))
    for (DType to : all_with_bits(128))
      for (bool saturate : {false, true}) {
        std::vector<uint8_t> src(16 * values.size() + 1), got(src.size()), want(src.size());
        void* unaligned = src.data() + 1;
        for (int64_t i = 0; i < count; ++i)
          store_f64(from, unaligned, i, values[static_cast<size_t>(i)]);
        const FloatCast cast{Rounding::kNearestEven, saturate && from != to};
        convert_elements(from, unaligned, to, got.data() + 1, count, cast);
        for (int64_t i = 0; i < count; ++i) {
          if (is_complex(from))
            store_c128(to, want.data() + 1, i, load_c128(from, unaligned, i), cast);
          else if (is_float(from))
            store_f64(to, want.data() + 1, i, load_f64(from, unaligned, i), cast);
          else if (is_signed_int(from))
            store_i64(to, want.data() + 1, i, load_i64(from, unaligned, i), cast);
          else
            store_u64(to, want.data() + 1, i, load_u64(from, unaligned, i), cast);
        }
        ASSERT_EQ(got, want) << name_of(from) << " to " << name_of(to);
      }
}

TEST(Element, StringsAreNotElements) {
  std::string text = "x";
  convert_elements(kString, &text, kF32, nullptr, 1);
  store_f64(kString, &text, 0, 1.0);
  EXPECT_EQ(load_f64(kString, &text, 0), 0.0);
  EXPECT_EQ(text, "x");
}

}  // namespace
}  // namespace tessera
