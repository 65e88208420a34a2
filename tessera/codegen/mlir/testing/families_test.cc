// Compiled programs of every family against the reference: odd sizes, any layout, vectors along any
// axis, pieces of any size.
#include "tessera/tile/testing/families.h"

#include <gtest/gtest.h>

#include "tessera/codegen/mlir/compiler.h"
#include "tessera/codegen/mlir/testing/run.h"

namespace tessera::codegen::mlir::testing {
namespace {

using Draw = std::optional<tile::testing::Trial>(std::mt19937_64&);

std::optional<tile::testing::Trial> random_group(std::mt19937_64& random) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kI32,
                              DType::kI64, DType::kU8,  DType::kI8,  DType::kF16, DType::kBF16};
  const auto dims = tile::testing::random_dims(random, static_cast<int>(random() % 5), 2000);
  return tile::testing::random_group(random, dims, kTypes[random() % std::size(kTypes)],
                                     1 + static_cast<int>(random() % 12));
}

// How many of the problems that are drawn there was code for.
int right(uint64_t seed, int tries, Draw* draw) {
  Machine machine;
  std::mt19937_64 random(seed);
  int ran = 0;
  for (int i = 0; i < tries; ++i) {
    const auto trial = draw(random);
    if (!trial) continue;
    for (const Target& target : targets()) {
      const auto fault = machine.run(random, *trial, target);
      if (!fault) continue;
      EXPECT_EQ(*fault, "");
      if (!fault->empty()) return ran;
      ++ran;
    }
  }
  return ran;
}

class Families : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto compiler = Compiler::open(); !compiler) GTEST_SKIP() << compiler.error().message;
  }
};

TEST_F(Families, ElementwiseGroups) { EXPECT_GE(right(5, 150, random_group), 100); }
TEST_F(Families, Reductions) { EXPECT_GE(right(1, 60, tile::testing::random_reduction), 40); }
TEST_F(Families, SoftmaxAndNormalizations) {
  EXPECT_GE(right(2, 60, tile::testing::random_normalization), 40);
}
TEST_F(Families, Products) { EXPECT_GE(right(3, 60, tile::testing::random_product), 40); }
TEST_F(Families, ProductsOfBytesInWholeNumbers) {
  EXPECT_GE(right(4, 20, tile::testing::random_byte_product), 15);
}

}  // namespace
}  // namespace tessera::codegen::mlir::testing
