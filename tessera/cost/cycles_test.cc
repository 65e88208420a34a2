#include "tessera/cost/cycles.h"

#include <gtest/gtest.h>

#include "tessera/chip/catalog.h"
#include "tessera/cost/cost.h"

namespace tessera::cost {
namespace {

using enum chip::Dataflow;

chip::Chip load(std::string_view id) {
  auto chip = chip::Catalog().load(id);
  EXPECT_TRUE(chip) << chip.error().message;
  return chip ? *std::move(chip) : chip::Chip();
}

// Reports of SCALE-Sim v3, test/general: total less stall cycles.
TEST(Systolic, ClosedFormsGiveTheGoldenReports) {
  // AlexNet's first convolution as a product: 55 x 55 places, 96 filters, 3 x 11 x 11 taps.
  EXPECT_EQ(systolic_cycles(kWeightStationary, 32, 32, 55 * 55, 96, 363), 112283 + 0.0);
  EXPECT_EQ(systolic_cycles(kWeightStationary, 32, 32, 256, 128, 256), 52447 - 41248);
  EXPECT_EQ(systolic_cycles(kOutputStationary, 32, 32, 256, 128, 256), 52447 - 42272);
  EXPECT_EQ(systolic_cycles(kInputStationary, 32, 32, 256, 128, 256), 19984 - 5777);
  // One of four weights kept, in two folds of a 128 x 128 array.
  EXPECT_EQ(systolic_cycles(kWeightStationary, 128, 128, 55 * 55, 96, 182), 173949 - 167136);
}

TEST(Systolic, UtilisationOfTheReports) {
  const double cycles = systolic_cycles(kWeightStationary, 32, 32, 55 * 55, 96, 363);
  const double useful = 55.0 * 55 * 96 * 363 / (32 * 32);
  EXPECT_NEAR(100 * useful / cycles, 91.6831, 1e-4);
  // That of the products alone counts the cycle that the closed form leaves out.
  EXPECT_NEAR(100 * (256.0 * 128 * 256 / 1024) / (10175 + 1), 80.503, 1e-3);
}

TEST(Systolic, NothingToDoTakesNoCycles) {
  for (const auto flow : {kWeightStationary, kOutputStationary, kInputStationary}) {
    EXPECT_EQ(systolic_cycles(flow, 32, 32, 0, 4, 4), 0);
    EXPECT_EQ(systolic_cycles(flow, 32, 32, 4, 0, 4), 0);
    EXPECT_EQ(systolic_cycles(flow, 32, 32, 4, 4, 0), 0);
    EXPECT_GT(systolic_cycles(flow, 32, 32, 1, 1, 1), 0);
  }
}

// Each reference chip gives its simulator's cycles, at 1 GHz.
TEST(Systolic, ReferenceChipsTakeTheirCycles) {
  const auto problem = parse_problem("matmul_i8_m256n128k256");
  ASSERT_TRUE(problem) << problem.error().message;
  const std::pair<const char*, double> chips[] = {
      {"scalesim_ws", 11199}, {"scalesim_os", 10175}, {"scalesim_is", 14207}};
  for (const auto& [id, cycles] : chips) {
    const chip::Chip chip = load(id);
    const auto e = estimate(chip, *problem);
    ASSERT_TRUE(e) << e.error().message;
    EXPECT_EQ(e->cycles, cycles) << id;
    EXPECT_DOUBLE_EQ(e->time.expected.value, cycles * 1e-9) << id;
  }
  const auto conv = parse_problem("conv_i8_n1c3h224w224_k96r11s11t4");
  ASSERT_TRUE(conv) << conv.error().message;
  const auto e = estimate(load("scalesim_ws"), *conv);
  ASSERT_TRUE(e) << e.error().message;
  // 54 windows a side, for SCALE-Sim counts one that leaves the image: 55.
  EXPECT_EQ(e->cycles, systolic_cycles(kWeightStationary, 32, 32, 54 * 54, 96, 363));
}

// Mmad cycles = dt + ceil16(m) ceil16(n) ceil(k) / (16 16 cube_k), cube_k of 16 (f16), 32 (i8), 64
// (i4), 4 (f32, k in steps of 8), 8 (hf32).
TEST(Ascend, MmadCycles) {
  const chip::Chip chip = load("ascend910b2");
  const chip::Unit& cube = chip.units.at("cube");
  const auto cycles = [&](const char* type, double m, double n, double k) {
    return step_cycles(cube, cube.rates.find(type)->second, m, n, k);
  };
  const double dt = 6;
  EXPECT_EQ(cycles("f16", 128, 256, 64), dt + 8 * 16 * 4);
  EXPECT_EQ(cycles("bf16", 16, 16, 16), dt + 1);
  EXPECT_EQ(cycles("f16", 17, 16, 16), dt + 2);
  EXPECT_EQ(cycles("f16", 16, 16, 17), dt + 2);
  EXPECT_EQ(cycles("i8", 128, 256, 64), dt + 8 * 16 * 2);
  EXPECT_EQ(cycles("i4", 128, 256, 64), dt + 8 * 16 * 1);
  EXPECT_EQ(cycles("f32", 16, 16, 8), dt + 2);
  EXPECT_EQ(cycles("f32", 128, 256, 64), 4 * 8 * 16 * 4 + dt);  // a quarter of f16's rate
  EXPECT_EQ(cycles("hf32", 128, 256, 64), 2 * 8 * 16 * 4 + dt);
  const chip::Chip next = load("ascend950pr");
  const chip::Unit& unit = next.units.at("cube");
  EXPECT_EQ(step_cycles(unit.rates.find("f32")->second, 16, 16, 16), 16);  // a sixteenth
  EXPECT_EQ(step_cycles(unit.rates.find("f8e4m3fn")->second, 16, 16, 32), 1);
  EXPECT_EQ(step_cycles(unit.rates.find("f4e2m1")->second, 16, 16, 64), 1);
}

// L1 to L0A 256 B a cycle, to L0B 128, to BT and FB 32; arch 3510: 256 and 256.
TEST(Ascend, EngineRates) {
  const chip::Chip chip = load("ascend910b2");
  const auto& mte1 = chip.engines.at("mte1").routes;
  EXPECT_EQ(route_cycles(mte1.at("l1_l0a"), 128 * 64 * 2), 64);
  EXPECT_EQ(route_cycles(mte1.at("l1_l0b"), 256 * 64 * 2), 256);
  EXPECT_EQ(route_cycles(mte1.at("l1_bt"), 1024), 32);
  EXPECT_EQ(route_cycles(mte1.at("l1_fb"), 2048), 64);
  EXPECT_EQ(route_cycles(chip.engines.at("fix").routes.at("l0c_l1"), 64 * 2), 1);
  const chip::Chip next = load("ascend950pr");
  EXPECT_EQ(route_cycles(next.engines.at("mte1").routes.at("l1_l0b"), 256 * 64 * 2), 128);
}

TEST(Routes, ShortCopiesReachLessOfTheRate) {
  chip::Route route;
  route.bytes_per_cycle.value = 64;
  EXPECT_EQ(route_cycles(route, 6400), 100);
  route.half_bytes = chip::Size{Bytes(6400), {}};
  EXPECT_EQ(route_cycles(route, 6400), 200);  // half of the rate
  route.start_cycles = chip::Real{50, {}};
  EXPECT_EQ(route_cycles(route, 0), 150);
}

}  // namespace
}  // namespace tessera::cost
