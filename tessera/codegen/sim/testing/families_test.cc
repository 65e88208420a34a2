// Programs of every family on simulated chips of every make against the reference: odd sizes, any
// layout; races, missing flags and indices outside fail the launch.
#include "tessera/tile/testing/families.h"

#include <gtest/gtest.h>

#include "tessera/codegen/sim/testing/run.h"

namespace tessera::codegen::sim::testing {
namespace {

using Draw = std::optional<tile::testing::Trial>(std::mt19937_64&);

std::optional<tile::testing::Trial> random_group(std::mt19937_64& random) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kF16, DType::kBF16,
                              DType::kI32, DType::kI64, DType::kU8,  DType::kF64};
  const auto dims = tile::testing::random_dims(random, static_cast<int>(random() % 5), 2000);
  return tile::testing::random_group(random, dims, kTypes[random() % std::size(kTypes)],
                                     1 + static_cast<int>(random() % 8));
}

// How many of the problems that are drawn there was a program for.
int right(const char* chip, uint64_t seed, int tries, Draw* draw) {
  auto machine = Machine::open(chip, {{"threads", "2"}});
  EXPECT_TRUE(machine) << machine.error().message;
  if (!machine) return 0;
  std::mt19937_64 random(seed);
  int ran = 0;
  std::string why;
  for (int i = 0; i < tries; ++i) {
    const auto trial = draw(random);
    if (!trial) continue;
    const auto fault = machine->run(*trial, &why);
    if (!fault) continue;
    EXPECT_EQ(*fault, "") << chip;
    if (!fault->empty()) return ran;
    ++ran;
  }
  EXPECT_GT(ran, 0) << chip << ": " << why;
  return ran;
}

class Families : public ::testing::TestWithParam<const char*> {};

TEST_P(Families, ElementwiseGroups) { EXPECT_GE(right(GetParam(), 5, 60, random_group), 30); }
TEST_P(Families, Reductions) {
  EXPECT_GE(right(GetParam(), 1, 40, tile::testing::random_reduction), 20);
}
TEST_P(Families, SoftmaxAndNormalizations) {
  EXPECT_GE(right(GetParam(), 2, 40, tile::testing::random_normalization), 20);
}
TEST_P(Families, Products) { right(GetParam(), 3, 60, tile::testing::random_product); }

INSTANTIATE_TEST_SUITE_P(Chips, Families,
                         ::testing::Values("ascend910b2", "ascend310p3", "ascend950pr", "tpu_v5e",
                                           "h100_sxm", "mi300x"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace tessera::codegen::sim::testing
