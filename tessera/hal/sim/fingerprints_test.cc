// What is known of real chips, value by value: each figure below was seen on hardware by others.
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/chip/catalog.h"
#include "tessera/hal/sim/numerics.h"

namespace tessera::hal::sim {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

MatrixUnit unit_of(std::string_view chip, std::string_view type, const Modes& modes = {}) {
  auto unit = MatrixUnit::make(*chip::Catalog().load(chip), type, modes);
  EXPECT_TRUE(unit) << unit.error().message;
  return *unit;
}

float dot(const MatrixUnit& unit, std::vector<float> a, std::vector<float> b, float c) {
  const auto k = static_cast<int64_t>(a.size());
  unit.multiply(1, 1, k, a.data(), k, b.data(), 1, &c, 1);
  return c;
}
float dot(std::string_view chip, std::string_view type, std::vector<float> a, std::vector<float> b,
          float c) {
  return dot(unit_of(chip, type), std::move(a), std::move(b), c);
}

// The values of FTTN (Li et al., CCGrid 2024) for one multiplication on five chips. Its abstract
// gives the values but not the matrices; these are built in its manner, large products that cancel
// around small ones. A quad of products is (large, x, -large, y):
//   V100, A100, MI250X   x and y are below what the large one leaves of them
//   H100                 keeps what is at least 2^-25 of it: 32 of 2^30, 1/8 of 2^22, but not 16
//   MI100                keeps all
TEST(Fingerprints, FttnMultiplication) {
  std::vector<float> a, b;
  const auto quad = [&](float large, float x, float y) {
    for (const float v : {large, x, -large, y}) a.push_back(v);
    for (const float v : {large, 1.0f, large, 1.0f}) b.push_back(v);
  };
  for (int block = 0; block < 2; ++block) {
    for (int i = 0; i < 3; ++i) quad(0x1p15f, 32, 0);
    quad(0x1p15f, 16, 16);
  }
  quad(0x1p11f, -0.125f, 0);
  for (int i = 0; i < 3; ++i) quad(0, 0, 0);
  EXPECT_EQ(dot("v100_sxm", "f16", a, b, 0), 0);
  EXPECT_EQ(dot("a100_sxm_80gb", "f16", a, b, 0), 0);
  EXPECT_EQ(dot("mi250x", "f16", a, b, 0), 0);
  EXPECT_EQ(dot("mi100", "f16", a, b, 0), 255.875f);
  EXPECT_EQ(dot("h100_sxm", "f16", a, b, 0), 191.875f);
}

// MMA-Sim's example: -2^23 - 1/2 - 1/4 - 1/8 + 2^23.
TEST(Fingerprints, MmaSimDiscrepancies) {
  const std::vector<float> a{-0x1p13f, -0.5f, -0.25f, -0.125f}, b{0x1p10f, 1, 1, 1};
  const struct {
    const char *chip, *type;
    float value;
  } rows[] = {{"v100_sxm", "f16", 0},
              {"a100_sxm_80gb", "f16", -0.5f},
              {"a100_sxm_80gb", "bf16", -0.5f},
              {"a100_sxm_80gb", "tf32", -0.5f},
              {"l4", "f16", -0.5f},
              {"l4", "f8e5m2", 0},
              {"h100_sxm", "f16", -0.75f},
              {"h100_sxm", "tf32", -0.75f},
              {"h100_sxm", "f8e5m2", 0},
              {"b200", "f16", -0.75f},
              {"b200", "f8e5m2", -0.75f},
              {"mi100", "f16", -0.875f},
              {"mi250x", "f16", 0},
              {"mi250x", "bf16", 0},
              {"mi300x", "f16", -0.5f},
              {"mi300x", "bf16", -0.5f},
              {"mi300x", "xf32", -0.5f},
              {"mi300x", "f8e5m2fnuz", -1},
              {"mi300x", "f32", -0.875f}};
  for (const auto& row : rows)
    EXPECT_EQ(dot(row.chip, row.type, a, b, 0x1p23f), row.value) << row.chip << " " << row.type;
  // Of two products at a time, the first pair is exact and the second is added to what it left.
  EXPECT_EQ(dot("mi100", "bf16", a, b, 0x1p23f), -0.875f);
}

// FTTN's tests of features: extra bits, width of the fused sum, direction of rounding, subnormals.
TEST(Fingerprints, ExtraBits) {
  const float below_one = -(1 - 0x1p-24f);
  EXPECT_EQ(dot("v100_sxm", "f16", {1}, {1}, below_one), 0x1p-23f);  // none
  for (const char* chip : {"a100_sxm_80gb", "h100_sxm", "mi100", "mi250x", "mi300x"})
    EXPECT_EQ(dot(chip, "f16", {1}, {1}, below_one), 0x1p-24f) << chip;
  // One more: the sum is 1.125 - 2^-25, cut off.
  const float c = -(0x1p-3f + 0x1p-25f);
  EXPECT_EQ(bits(dot("a100_sxm_80gb", "f16", {1}, {1.25f}, c)), 0x3f900000u);
  EXPECT_EQ(bits(dot("h100_sxm", "f16", {1}, {1.25f}, c)), 0x3f8fffffu);
  // Three, to nearest even.
  const float d = -(0x1p-3f + 0x1p-24f + 0x1p-26f);
  for (const char* chip : {"mi100", "mi250x"})
    EXPECT_EQ(bits(dot(chip, "f16", {1}, {1.25f}, d)), 0x3f8fffffu) << chip;
}

int fused_width(std::string_view chip, std::string_view type) {
  for (int i = 1; i < 64; ++i) {
    std::vector<float> a(i + 1), b(i + 1);
    a[0] = a[i] = 0x1p-10f;
    b[0] = b[i] = 0x1p-14f;
    if (dot(chip, type, a, b, 1) == 1) return i;
  }
  return 64;
}

TEST(Fingerprints, WidthOfFusedSums) {
  EXPECT_EQ(fused_width("a100_sxm_80gb", "f16"), 8);
  EXPECT_EQ(fused_width("h100_sxm", "f16"), 16);
  EXPECT_EQ(fused_width("b200", "bf16"), 16);
  EXPECT_EQ(fused_width("l4", "f16"), 8);
  EXPECT_EQ(fused_width("mi100", "f16"), 4);
  EXPECT_EQ(fused_width("mi100", "bf16"), 2);
  EXPECT_EQ(fused_width("tpu_v4", "bf16"), 1);
  // Volta has no bits to see it by; sums of 4 show by what a large addend cuts off in their group.
  std::vector<float> a{0, 0, 0, 1, 1}, b{0, 0, 0, 0x1p14f, 0x1p-10f};
  EXPECT_EQ(dot("v100_sxm", "f16", a, b, -0x1p14f), 0x1p-10f);
  a[2] = b[2] = 0x1p-5f;
  EXPECT_EQ(dot("v100_sxm", "f16", a, b, -0x1p14f), 0x1p-10f);
}

TEST(Fingerprints, SumsAreCutOffOrRoundedToNearest) {
  const std::vector<float> one{0x1p-14f}, more{0x1p-9f + 0x1p-10f};  // 3/4 of 2's last place
  for (const char* chip : {"v100_sxm", "a100_sxm_80gb", "h100_sxm", "b200"}) {
    EXPECT_EQ(dot(chip, "f16", one, more, 2), 2) << chip;
    EXPECT_EQ(dot(chip, "f16", {-1, -0x1p-14f}, {2, 0x1p-9f + 0x1p-10f}, 0), -2) << chip;
  }
  for (const char* chip : {"mi100", "mi250x", "mi300x"})
    EXPECT_EQ(dot(chip, "f16", one, more, 2), 2 + 0x1p-22f) << chip;
  for (const char* chip : {"mi100", "mi250x"})
    EXPECT_EQ(dot(chip, "f16", {-1, -0x1p-14f}, {2, 0x1p-9f + 0x1p-10f}, 0), -2 - 0x1p-22f) << chip;
  // CDNA 3 cuts products off at half of 2's last place, which leaves a tie.
  EXPECT_EQ(dot("mi300x", "f16", {-1, -0x1p-14f}, {2, 0x1p-9f + 0x1p-10f}, 0), -2);
  // Sums kept in f16 are rounded to nearest even, whatever those of f32 are.
  for (const char* chip : {"v100_sxm", "a100_sxm_80gb", "h100_sxm"}) {
    const MatrixUnit half = unit_of(chip, "f16", {.accumulate = "f16"});
    EXPECT_EQ(dot(half, {1, 1}, {2, 0x1p-10f + 0x1p-11f}, 0), 2 + 0x1p-9f) << chip;
    EXPECT_EQ(dot(half, {1, 1}, {1, 0x1p-11f}, 0), 1) << chip;
    EXPECT_EQ(dot(half, {1, 1}, {0x1p15f, 0x1p15f}, 0), kInf) << chip;
  }
}

// FP8 of Ada and of Hopper: 13 bits of mantissa, cut off; of Blackwell all.
TEST(Fingerprints, NarrowSumsOfFp8) {
  EXPECT_EQ(dot("h100_sxm", "f8e4m3fn", {1}, {1}, 0x1p-13f), 1 + 0x1p-13f);
  EXPECT_EQ(dot("h100_sxm", "f8e4m3fn", {1}, {1}, 0x1p-14f), 1);
  EXPECT_EQ(dot("l4", "f8e5m2", {1}, {1}, 0x1.fffp-14f), 1);
  EXPECT_EQ(dot("b200", "f8e4m3fn", {1}, {1}, 0x1p-14f), 1 + 0x1p-14f);
  EXPECT_EQ(bits(dot("h100_sxm", "f8e4m3fn", {0}, {0}, std::bit_cast<float>(0x3f8007ffu))),
            0x3f800400u);
}

TEST(Fingerprints, Subnormals) {
  for (const char* chip : {"v100_sxm", "a100_sxm_80gb", "h100_sxm", "mi100", "mi300x"}) {
    EXPECT_EQ(dot(chip, "f16", {0x1p-24f}, {1}, 0), 0x1p-24f) << chip;
    EXPECT_EQ(dot(chip, "f16", {0}, {0}, 0x1p-127f), 0x1p-127f) << chip;
  }
  EXPECT_EQ(dot("mi250x", "f16", {0x1p-24f}, {1}, 0), 0);
  EXPECT_EQ(dot("mi250x", "f16", {1}, {0x1p-15f}, 0), 0);
  EXPECT_EQ(dot("mi250x", "f16", {1}, {0x1p-14f}, 0), 0x1p-14f);
  EXPECT_EQ(dot("mi250x", "f16", {0}, {0}, 0x1p-127f), 0);
  EXPECT_EQ(dot("mi250x", "bf16", {0x1p-100f}, {0x1p-27f}, 0), 0);  // a product, too
}

TEST(Fingerprints, InfinitiesAndNans) {
  for (const char* chip : {"v100_sxm", "a100_sxm_80gb", "h100_sxm", "b200"}) {
    EXPECT_EQ(bits(dot(chip, "f16", {kNan}, {1}, 0)), 0x7fffffffu) << chip;
    EXPECT_EQ(bits(dot(chip, "f16", {1}, {-kNan}, 0)), 0x7fffffffu) << chip;
    EXPECT_EQ(bits(dot(chip, "f16", {kInf}, {0}, 0)), 0x7fffffffu) << chip;
    EXPECT_EQ(bits(dot(chip, "f16", {kInf, -1}, {1, kInf}, 0)), 0x7fffffffu) << chip;
    EXPECT_EQ(dot(chip, "f16", {kInf}, {-2}, 1), -kInf) << chip;
  }
  const MatrixUnit half = unit_of("h100_sxm", "f16", {.accumulate = "f16"});
  EXPECT_EQ(f32_to_f16(dot(half, {kNan}, {1}, 0)), 0x7fff);
  // Ascend, both modes.
  const MatrixUnit inf = unit_of("ascend910b2", "f16"),
                   saturating = unit_of("ascend910b2", "f16", {.overflow = "saturate"}),
                   old = unit_of("ascend910a", "f16");
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_TRUE(std::isnan(dot(inf, {kInf}, {0}, 0)));
  EXPECT_TRUE(std::isnan(dot(inf, {kInf, kInf}, {1, -1}, 0)));
  EXPECT_TRUE(std::isnan(dot(inf, {kNan}, {1}, 0)));
  EXPECT_EQ(dot(inf, {kInf}, {-3}, 0), -kInf);
  EXPECT_EQ(dot(inf, {0x1p15f}, {0x1p15f}, kMax), kMax);
  EXPECT_EQ(dot(unit_of("ascend910b2", "bf16"), {0x1p120f}, {0x1p120f}, 0), kInf);
  for (const MatrixUnit& unit : {saturating, old}) {
    EXPECT_EQ(dot(unit, {kInf}, {0}, 0), 0);
    EXPECT_EQ(dot(unit, {kInf}, {-3}, 0), -kMax);
    EXPECT_EQ(dot(unit, {kInf}, {3}, 7), kMax);
  }
  EXPECT_EQ(
      dot(unit_of("ascend910b2", "bf16", {.overflow = "saturate"}), {0x1p120f}, {0x1p120f}, 0),
      kMax);
}

// CDNA 3: a product of more than float32 holds is infinite by itself; NVIDIA's cancel.
TEST(Fingerprints, ProductsBeyondFloat32) {
  const std::vector<float> a{0x1p100f, 0x1p100f}, b{0x1p100f, -0x1p100f};
  EXPECT_EQ(dot("h100_sxm", "bf16", a, b, 3), 0);  // 3 is below what 2^200 leaves of it
  EXPECT_TRUE(std::isnan(dot("mi300x", "bf16", a, b, 3)));
  EXPECT_EQ(dot("mi300x", "bf16", {0x1p100f}, {-0x1p100f}, 3), -kInf);
}

// CDNA 3 rounds the accumulator down, so that a small negative one counts and a positive does not.
TEST(Fingerprints, Cdna3RoundsTheAccumulatorDown) {
  EXPECT_EQ(dot("mi300x", "f16", {1}, {0x1p10f}, 0x1p-30f), 0x1p10f);
  const float c = -0x1p-30f;  // counts as -2^-14, the last place below 2^10
  EXPECT_EQ(dot("mi300x", "f16", {1}, {0x1p10f}, c), 0x1p10f - 0x1p-14f);
  // In FP8 it is dropped when it is more than 25 binary orders below.
  EXPECT_EQ(dot("mi300x", "f8e4m3fnuz", {32}, {32}, -0x1p-15f), 0x1p10f - 0x1p-14f);
  EXPECT_EQ(dot("mi300x", "f8e4m3fnuz", {32}, {32}, -0x1p-16f), 0x1p10f);
}

// Four bits on Blackwell: sums of 16 are exact before they are cut off, here at 8 below 2^38.
TEST(Fingerprints, SixteenProductsOfFp4AreOneAddend) {
  const float below = 0x1p38f - 0x1p14f;
  EXPECT_EQ(dot("b200", "f4e2m1", std::vector<float>(16, 2), std::vector<float>(16, -2), 0x1p38f),
            below);
  EXPECT_EQ(dot("b200", "f4e2m1", {2}, {-2}, 0x1p38f), 0x1p38f);
  std::vector<float> apart(64);
  for (int i = 0; i < 64; i += 16) apart[i] = 2;
  EXPECT_EQ(dot("b200", "f4e2m1", apart, std::vector<float>(64, -2), 0x1p38f), 0x1p38f);
}

TEST(Fingerprints, Tf32CutsOperandsOff) {
  const float x = 1 + 0x1p-10f + 0x1p-11f;
  for (const char* chip : {"a100_sxm_80gb", "h100_sxm"})
    EXPECT_EQ(dot(chip, "tf32", {x}, {1}, 0), 1 + 0x1p-10f) << chip;
  EXPECT_EQ(dot("mi300x", "xf32", {x}, {1}, 0), 1 + 0x1p-10f);
  EXPECT_EQ(dot("a100_sxm_80gb", "tf32", {-x}, {1}, 0), -1 - 0x1p-10f);
}

// HF32: 11 bits of mantissa on A2 and A3, 10 on 950; a carry goes to the exponent.
TEST(Fingerprints, Hf32) {
  const auto rounded = [](std::string_view chip, float x, const Modes& modes = {}) {
    unit_of(chip, "hf32", modes).round_operands({&x, 1});
    return x;
  };
  const Modes away{.operand_rounding = Rounding::kNearestAway};
  const auto of = [](uint32_t b) { return std::bit_cast<float>(b); };
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x3f800fff))), 0x3f801000u);
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x3f800800))), 0x3f800000u);  // a tie, to even
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x3f801800))), 0x3f802000u);
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x3f800800), away)), 0x3f801000u);
  EXPECT_EQ(bits(rounded("ascend910b2", of(0xbf800800), away)), 0xbf801000u);
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x3fffffff))), 0x40000000u);  // the carry
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x7f7fffff))), 0x7f800000u);
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x807fffff))), 0x80000000u);  // subnormals
  EXPECT_EQ(bits(rounded("ascend910b2", of(0x00000001), away)), 0u);
  EXPECT_EQ(bits(rounded("ascend910b2", kInf)), 0x7f800000u);
  EXPECT_EQ(bits(rounded("ascend950pr", of(0x3f801000))), 0x3f800000u);
  EXPECT_EQ(bits(rounded("ascend950pr", of(0x3f803000))), 0x3f804000u);
  EXPECT_EQ(dot("ascend910b2", "hf32", {of(0x3f800fff)}, {1}, 0), of(0x3f801000));
}

// Groups of 16 of Ascend's cube, as this catalog assumes: summed exactly, rounded once.
TEST(Fingerprints, AscendFusedSums) {
  std::vector<float> a(17, 1), b(17, 0x1p-24f);
  b[0] = 1;
  // 1 + 15 x 2^-24 = 1 + 7.5 units, a tie, to even; the 17th is half a unit by itself.
  EXPECT_EQ(dot("ascend910b2", "f16", a, b, 0), 1 + 8 * 0x1p-23f);
  EXPECT_EQ(dot("tpu_v4", "bf16", a, b, 0), 1);  // one after the other
}

// What leaves the unit.
TEST(ConvertResults, SaturatesWhereAsked) {
  const auto converted = [](float x, DType to, const OutputCast& cast) {
    convert_results(to, cast, {&x, 1});
    return x;
  };
  EXPECT_EQ(converted(1e6f, DType::kF16, {}), kInf);
  EXPECT_EQ(converted(-1e6f, DType::kF16, {.saturate = true}), -65504);
  EXPECT_EQ(converted(-kInf, DType::kF16, {.saturate = true}), -65504);
  EXPECT_EQ(converted(kNan, DType::kF16, {.saturate = true}), 0);
  EXPECT_TRUE(std::isnan(converted(kNan, DType::kBF16, {})));
  EXPECT_EQ(converted(1 + 0x1p-11f, DType::kF16, {}), 1);
  EXPECT_EQ(converted(1 + 0x1p-11f, DType::kF16, {.rounding = Rounding::kNearestAway}),
            1 + 0x1p-10f);
  EXPECT_EQ(converted(1 + 0x1p-11f, DType::kF16, {.rounding = Rounding::kToOdd}), 1 + 0x1p-10f);
  EXPECT_EQ(converted(2.5f, DType::kI8, {.saturate = true}), 2);
  EXPECT_EQ(converted(2.5f, DType::kI8, {.rounding = Rounding::kNearestAway, .saturate = true}), 3);
  EXPECT_EQ(converted(-2.5f, DType::kI8, {.rounding = Rounding::kToOdd}), -3);
  EXPECT_EQ(converted(300, DType::kI8, {.saturate = true}), 127);
  EXPECT_EQ(converted(300, DType::kI8, {}), 300 - 256);  // the low bits
  EXPECT_EQ(converted(-1, DType::kU8, {.saturate = true}), 0);
  EXPECT_EQ(converted(100, DType::kI8, {.saturate = true, .scale = 0.5f}), 50);
  EXPECT_EQ(converted(kNan, DType::kI8, {}), 0);
}

// The fixpipe of A2 and A3 has no infinities in f16 and bf16; that of 950 has them in f16.
TEST(ConvertResults, AsTheFixpipeDoes) {
  const auto left = [](std::string_view chip, DType to, const Modes& modes = {}) {
    float x = kInf;
    const MatrixUnit unit = unit_of(chip, "f16", modes);
    convert_results(to, unit.output_cast(to), {&x, 1});
    return x;
  };
  EXPECT_EQ(left("ascend910b2", DType::kF16), 65504);
  EXPECT_EQ(left("ascend910b2", DType::kBF16), 0x1.fep127f);
  EXPECT_EQ(left("ascend910b2", DType::kF32), kInf);
  EXPECT_EQ(left("ascend910b2", DType::kF32, {.overflow = "saturate"}), 0x1.fffffep127f);
  EXPECT_EQ(left("ascend950pr", DType::kF16), kInf);
  EXPECT_EQ(left("ascend950pr", DType::kBF16), 0x1.fep127f);
  EXPECT_EQ(left("h100_sxm", DType::kF16), kInf);
}

}  // namespace
}  // namespace tessera::hal::sim
