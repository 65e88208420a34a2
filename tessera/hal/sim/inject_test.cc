#include "tessera/hal/sim/inject.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/chip/catalog.h"

namespace tessera::hal::sim {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

MatrixUnit unit_of(std::string_view chip, std::string_view type) {
  return *MatrixUnit::make(*chip::Catalog().load(chip), type);
}

float dot(const MatrixUnit& unit, const std::vector<float>& a, const std::vector<float>& b,
          float c) {
  const auto k = static_cast<int64_t>(a.size());
  unit.multiply(1, 1, k, a.data(), k, b.data(), 1, &c, 1);
  return c;
}

MatrixUnit faulty(const MatrixUnit& unit, std::string_view list, std::string_view node = "n") {
  return with_faults(unit, *parse_injections(list), node);
}

TEST(Inject, ListsOfNamesAndNodes) {
  const auto list = parse_injections("bf16-inputs@layer.0/MatMul,ecc,drop-tail@x@y");
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(*list, (std::vector<Injection>{{Fault::kBf16Inputs, "layer.0/MatMul"},
                                           {Fault::kEcc, ""},
                                           {Fault::kDropTail, "x@y"}}));
  EXPECT_EQ(str(*list), "bf16-inputs@layer.0/MatMul,ecc,drop-tail@x@y");
  EXPECT_TRUE(parse_injections("")->empty());
  for (int i = 0; i < kFaultCount; ++i) {
    const auto one = parse_injections(name_of(static_cast<Fault>(i)));
    ASSERT_TRUE(one) << one.error().message;
    EXPECT_EQ((*one)[0].fault, static_cast<Fault>(i));
  }
  for (const char* bad : {"bf16", "ecc@", ",ecc", "ecc,,ecc", " ecc"}) {
    const auto none = parse_injections(bad);
    ASSERT_FALSE(none) << bad;
    EXPECT_EQ(none.error().code, Code::kInvalidArgument);
  }
  EXPECT_NE(parse_injections("bf16").error().message.find("bf16-inputs"), std::string::npos);
}

TEST(Inject, HappensAtItsNode) {
  const auto list = *parse_injections("ecc,saturate@a");
  EXPECT_TRUE(injected(list, Fault::kEcc, "b"));
  EXPECT_TRUE(injected(list, Fault::kSaturate, "a"));
  EXPECT_FALSE(injected(list, Fault::kSaturate, "b"));
  EXPECT_FALSE(injected(list, Fault::kLateError, "a"));
}

TEST(Inject, Bf16Inputs) {
  for (const char* type : {"f16", "f32", "hf32"}) {
    const MatrixUnit unit = unit_of("ascend910b2", type);
    EXPECT_EQ(dot(unit, {1 + 0x1p-10f}, {1}, 0), 1 + 0x1p-10f);
    EXPECT_EQ(dot(faulty(unit, "bf16-inputs"), {1 + 0x1p-10f}, {1}, 0), 1) << type;
    EXPECT_EQ(dot(faulty(unit, "bf16-inputs@other"), {1 + 0x1p-10f}, {1}, 0), 1 + 0x1p-10f);
  }
}

TEST(Inject, Fp16Accumulate) {
  for (const char* chip : {"ascend910b2", "tpu_v4", "h100_sxm", "mi300x", "mi250x"}) {
    const MatrixUnit unit = unit_of(chip, "bf16");
    EXPECT_EQ(dot(unit, {1}, {1}, 0x1p12f), 0x1p12f + 1) << chip;
    EXPECT_EQ(dot(faulty(unit, "fp16-accumulate"), {1}, {1}, 0x1p12f), 0x1p12f) << chip;
    EXPECT_TRUE(std::isinf(dot(faulty(unit, "fp16-accumulate"), {0x1p10f}, {0x1p10f}, 0))) << chip;
  }
}

TEST(Inject, SaturateAndSwallowNan) {
  for (const char* chip : {"ascend910b2", "tpu_v4", "h100_sxm", "mi300x"}) {
    const MatrixUnit unit = unit_of(chip, "bf16");
    EXPECT_TRUE(std::isinf(dot(unit, {0x1p100f}, {0x1p100f}, 0))) << chip;
    EXPECT_EQ(dot(faulty(unit, "saturate"), {0x1p100f}, {0x1p100f}, 0),
              std::numeric_limits<float>::max());
    EXPECT_TRUE(std::isnan(dot(unit, {kNan}, {1}, 0))) << chip;
    EXPECT_EQ(dot(faulty(unit, "swallow-nan"), {kNan}, {1}, 0), 0) << chip;
    EXPECT_TRUE(std::isinf(dot(faulty(unit, "swallow-nan"), {0x1p100f}, {0x1p100f}, 0))) << chip;
  }
}

TEST(Inject, DropTail) {
  const MatrixUnit unit = unit_of("tpu_v4", "bf16");
  const std::vector<float> ones(35, 1);
  EXPECT_EQ(dot(unit, ones, ones, 0), 35);
  EXPECT_EQ(dot(faulty(unit, "drop-tail"), ones, ones, 0), 32);
  const MatrixUnit integers = faulty(unit_of("ascend910b2", "i8"), "drop-tail");
  int32_t c = 0;
  integers.multiply(1, 1, 35, ones.data(), 35, ones.data(), 1, &c, 1);
  EXPECT_EQ(c, 32);
}

TEST(Inject, FlippedBits) {
  std::vector<std::byte> bytes(100);
  int set = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<std::byte> before = bytes;
    flip_bit(bytes, seed);
    int changed = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      changed += std::popcount(static_cast<unsigned>(before[i] ^ bytes[i]));
    EXPECT_EQ(changed, 1);
  }
  for (const std::byte b : bytes) set += b != std::byte{0};
  EXPECT_GT(set, 20);  // not always the same
  flip_bit({}, 1);
}

}  // namespace
}  // namespace tessera::hal::sim
