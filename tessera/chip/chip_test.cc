#include "tessera/chip/chip.h"

#include <gtest/gtest.h>

#include "tessera/chip/catalog.h"
#include "tessera/chip/figures.h"

namespace tessera::chip {
namespace {

constexpr double kTera = 1e12;

Chip load(std::string_view id) {
  auto chip = Catalog().load(id);
  EXPECT_TRUE(chip) << chip.error().message;
  return chip ? *std::move(chip) : Chip();
}

double peak_of(const Chip& chip, std::string_view unit, std::string_view type) {
  for (const Peak& p : peaks(chip))
    if (p.unit == unit && p.type == type) return p.flops_per_second;
  ADD_FAILURE() << chip.id << ": no " << type << " on unit " << unit;
  return 0;
}

TEST(Catalog, EveryFileLoadsAndReadsBackTheSame) {
  const auto ids = Catalog().ids();
  ASSERT_TRUE(ids) << ids.error().message;
  for (const std::string& id : *ids) {
    const auto chip = Catalog().load(id);
    ASSERT_TRUE(chip) << chip.error().message;
    EXPECT_EQ(chip->id, id);
    EXPECT_NE(chip->hash, 0u);
    const std::string json = to_json(*chip);
    const auto again = read_chip({"again", json}, id, nullptr);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(to_json(*again), json) << id;
    for (const Peak& p : peaks(*chip)) {
      EXPECT_GT(p.flops_per_second, 0) << id << " " << p.unit << " " << p.type;
      EXPECT_GT(p.ridge, 0) << id << " " << p.unit << " " << p.type;
    }
  }
}

TEST(Catalog, UnknownNamesAreToldWithSimilarOnes) {
  const auto chip = Catalog().load("h100");
  ASSERT_FALSE(chip);
  EXPECT_EQ(chip.error().code, Code::kNotFound);
  EXPECT_NE(chip.error().message.find("h100_sxm"), std::string::npos) << chip.error().message;
  EXPECT_EQ(Catalog().load("").error().code, Code::kInvalidArgument);
  EXPECT_EQ(Catalog().load("../x/y.json").error().code, Code::kNotFound);
  EXPECT_FALSE(Catalog({"/nonexistent"}).ids());
}

// A cube does 16 x 16 x 16 multiply-adds a cycle: 8192 FLOP.
TEST(Peaks, AscendCube) {
  Chip chip = load("ascend910b2");
  EXPECT_EQ(chip.units.at("cube").rates.at("f16").macs_per_cycle.value * 2, 8192);
  EXPECT_NEAR(peak_of(chip, "cube", "f16") / kTera, 353.9, 0.05);
  EXPECT_NEAR(peak_of(chip, "cube", "f32") * 4, peak_of(chip, "cube", "f16"), 1);
  EXPECT_NEAR(peak_of(chip, "cube", "hf32") * 2, peak_of(chip, "cube", "f16"), 1);
  EXPECT_NEAR(peak_of(chip, "vector", "f16") / kTera, 22.1, 0.05);
  chip.cores.at("aic").count.value = 32;
  EXPECT_NEAR(peak_of(chip, "cube", "f16") / kTera, 471.86, 0.005);
  EXPECT_NEAR(peaks(chip)[0].ridge, peaks(chip)[0].flops_per_second / 1.6e12, 1e-9);
}

TEST(Peaks, Gpus) {
  const Chip h100 = load("h100_sxm");
  EXPECT_NEAR(peak_of(h100, "tensor", "f16") / kTera, 989.4, 0.05);
  EXPECT_NEAR(peak_of(h100, "tensor", "f8e4m3fn") / kTera, 1979, 0.5);
  EXPECT_NEAR(peak_of(h100, "cuda", "f32") / kTera, 66.9, 0.05);
  const Chip mi300x = load("mi300x");
  EXPECT_NEAR(peak_of(mi300x, "matrix", "f16") / kTera, 1307.4, 0.05);
  EXPECT_NEAR(peak_of(mi300x, "matrix", "xf32") / kTera, 653.7, 0.05);
  EXPECT_NEAR(peak_of(mi300x, "matrix", "f32") / kTera, 163.4, 0.05);
}

// Cores x units x multiply-adds x 2 x clock is what vendors publish, to the digits that they give.
TEST(Peaks, OthersAsPublished) {
  const struct {
    const char* chip;
    const char* unit;
    const char* type;
    double tera;
    double within;
  } cases[] = {
      {"v100_sxm", "tensor", "f16", 125, 0.5},
      {"v100_sxm", "cuda", "f32", 15.7, 0.05},
      {"a100_sxm_80gb", "tensor", "f16", 311.87, 0.01},
      {"a100_sxm_80gb", "tensor", "tf32", 156, 0.1},
      {"a100_sxm_80gb", "tensor", "i8", 624, 0.5},
      {"a100_sxm_80gb", "cuda", "f32", 19.5, 0.05},
      {"h100_pcie", "tensor", "f16", 756, 0.5},
      {"h200_sxm", "tensor", "f16", 989.4, 0.05},
      {"h800", "cuda", "f64", 1, 0.05},
      {"l4", "tensor", "f16", 121, 0.5},
      {"l4", "cuda", "f32", 30.3, 0.05},
      {"b200", "tensor", "f16", 2250, 1},
      {"b200", "tensor", "f4e2m1", 9000, 5},
      {"mi100", "matrix", "f16", 184.6, 0.05},
      {"mi100", "vector", "f64", 11.5, 0.05},
      {"mi210", "matrix", "f16", 181, 0.05},
      {"mi250x", "matrix", "f16", 383, 0.05},
      {"mi250x", "vector", "f32", 47.9, 0.05},
      {"mi325x", "matrix", "f16", 1307.4, 0.05},
      {"mi355x", "matrix", "f16", 2516.6, 0.05},
      {"tpu_v3", "mxu", "bf16", 123, 0.5},
      {"tpu_v4", "mxu", "bf16", 275, 0.5},
      {"tpu_v5e", "mxu", "bf16", 197, 0.5},
      {"tpu_v5e", "mxu", "i8", 394, 1},
      {"tpu_v5p", "mxu", "bf16", 459, 0.5},
      {"tpu_v6e", "mxu", "bf16", 918, 0.5},
      {"gaudi2", "mme", "bf16", 432, 0.6},
      {"gaudi3", "mme", "bf16", 1677, 1},
      {"cpu_amx", "amx", "bf16", 109, 0.05},
      {"ascend910a", "cube", "f16", 262, 0.2},
      {"ascend910b1", "cube", "f16", 363.7, 0.05},
      {"ascend910b3", "cube", "f16", 294.9, 0.05},
      {"ascend910b4", "cube", "f16", 245.8, 0.05},
      {"ascend910c_die", "cube", "f16", 353.9, 0.05},
      {"ascend910c", "cube", "f16", 707.8, 0.05},
      {"ascend310p3", "cube", "i8", 140, 2},
      {"ascend310b", "cube", "i8", 20, 0.05},
      {"ascend950pr", "cube", "f16", 378.5, 0.05},
      {"ascend950dt", "cube", "f16", 432.5, 0.05},
      {"ascend950dt", "cube", "f8e4m3fn", 865, 0.2},
      {"scalesim_os", "array", "i8", 2.048, 1e-9},
      {"gemmini", "array", "i8", 0.512, 1e-9},
  };
  for (const auto& c : cases)
    EXPECT_NEAR(peak_of(load(c.chip), c.unit, c.type) / kTera, c.tera, c.within)
        << c.chip << " " << c.unit << " " << c.type;
}

TEST(Peaks, ShowTheirArithmetic) {
  const Chip h100 = load("h100_sxm");
  for (const Peak& p : peaks(h100))
    if (p.unit == "tensor" && p.type == "f16") {
      EXPECT_EQ(p.arithmetic, "132 sm x 4 x 512 x 2 x 1.83 GHz");
    }
  EXPECT_EQ(peak_flops(h100, UnitKind::kMatrix, "f16"), peak_of(h100, "tensor", "f16"));
  EXPECT_EQ(peak_flops(h100, UnitKind::kMatrix, "i4"), 0);
  EXPECT_EQ(peak_flops(h100, UnitKind::kScalar, "f32"), 0);
}

struct Case {
  const char* chip;
  Block block;
  int64_t blocks;
  double fraction;
  const char* bound;
};

TEST(Occupancy, KnownCases) {
  const Case cases[] = {
      // 48 KiB and the reserved 1 KiB: 4 of 49 KiB in 228 KiB; 4 blocks of 4 warps of 64.
      {"h100_sxm", {128, 32, Bytes(48 << 10)}, 4, 0.25, "shared memory"},
      // 2048 registers a warp: 32 warps, 4 blocks of 8.
      {"a100_sxm_80gb", {256, 64, Bytes(0)}, 4, 0.5, "registers"},
      // No reserve before Ampere; 48 warps a core on Ada.
      {"v100_sxm", {64, 32, Bytes(32 << 10)}, 3, 6. / 64, "shared memory"},
      {"l4", {256, 32, Bytes(0)}, 6, 1, "warps"},
      {"h100_sxm", {1024, 32, Bytes(0)}, 2, 1, "warps"},
      {"h100_sxm", {32, 16, Bytes(0)}, 32, 0.5, "blocks"},
      // 255 registers round up to 256 a lane: 8 warps, of which a block of 5 takes 5.
      {"h100_sxm", {160, 255, Bytes(0)}, 1, 5. / 64, "registers"},
      // 512 registers a lane: one wave in each of 4 SIMDs.
      {"mi300x", {256, 512, Bytes(0)}, 1, 0.125, "registers"},
      {"mi300x", {256, 128, Bytes(0)}, 4, 0.5, "registers"},
      {"mi300x", {256, 32, Bytes(32 << 10)}, 2, 0.25, "shared memory"},
  };
  for (const Case& c : cases) {
    const auto got = occupancy(load(c.chip), c.block);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->blocks, c.blocks) << c.chip << " " << c.block.threads;
    EXPECT_DOUBLE_EQ(got->fraction, c.fraction) << c.chip << " " << c.block.threads;
    EXPECT_EQ(got->bound, c.bound) << c.chip << " " << c.block.threads;
  }
}

TEST(Occupancy, RefusesWhatNoCoreHolds) {
  const Chip chip = load("h100_sxm");
  EXPECT_EQ(occupancy(chip, {1025, 32, Bytes(0)}).error().code, Code::kOutOfRange);
  EXPECT_EQ(occupancy(chip, {0, 32, Bytes(0)}).error().code, Code::kOutOfRange);
  EXPECT_EQ(occupancy(chip, {32, 256, Bytes(0)}).error().code, Code::kOutOfRange);
  EXPECT_EQ(occupancy(chip, {32, 32, Bytes(232449)}).error().code, Code::kOutOfRange);
  EXPECT_EQ(occupancy(chip, {512, 255, Bytes(0)})->blocks, 0) << "more registers than a core has";
  EXPECT_EQ(occupancy(load("ascend910b2"), {32, 32, Bytes(0)}).error().code,
            Code::kFailedPrecondition);
}

}  // namespace
}  // namespace tessera::chip
