#include "tessera/base/budget.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Budget, IsTheFormula) {
  const ErrorBudget half{DType::kF16, DType::kF32, kDirectForm};
  EXPECT_DOUBLE_EQ(half.bound(-3, 16, 10), 3 * 0x1p-11 + 4 * 0x1p-24 * 4 * 10);
  const ErrorBudget winograd{DType::kF32, DType::kF32, kTransformedForm};
  EXPECT_DOUBLE_EQ(winograd.bound(0, 9, 1), 64 * 0x1p-24 * 3);
  const ErrorBudget narrow{DType::kF32, DType::kF32, kDirectForm, DType::kBF16};
  EXPECT_DOUBLE_EQ(narrow.bound(0, 16, 10), (4 * 0x1p-24 * 4 + 2 * 0x1p-8) * 10);
}

TEST(Budget, IntegersAreExact) {
  const ErrorBudget exact{DType::kI32, DType::kI32, kDirectForm};
  EXPECT_EQ(exact.bound(1e6, 1 << 20, 1e9), 0);
  EXPECT_TRUE(exact.holds(5, 5, 10, 50));
  EXPECT_FALSE(exact.holds(5, 6, 10, 50));
}

TEST(Budget, SpecialValuesMatchOnlyThemselves) {
  const ErrorBudget budget;
  EXPECT_TRUE(budget.holds(kNan, kNan, 1, 1));
  EXPECT_FALSE(budget.holds(kNan, 1, 1, 1e30));
  EXPECT_FALSE(budget.holds(1, kNan, 1, 1e30));
  EXPECT_TRUE(budget.holds(kInf, kInf, 1, 1));
  EXPECT_FALSE(budget.holds(-kInf, kInf, 1, 1));
  EXPECT_FALSE(budget.holds(kInf, 1e38, 1, kInf));
}

// Any order of summation in float32 keeps it; bfloat16 sums sold as float32 do not.
TEST(Budget, AdmitsHonestSumsAndCatchesLowPrecision) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int products : {1, 7, 64, 1000, 10000}) {
    double ref = 0, sum_abs = 0;
    float forward = 0, low = 0;
    for (int k = 0; k < products; ++k) {
      const float a = normal(random), b = normal(random);
      ref += double{a} * b;
      sum_abs += std::abs(double{a} * b);
      forward += a * b;
      low = bf16_to_f32(f32_to_bf16(low + a * b));
    }
    const ErrorBudget budget;
    EXPECT_TRUE(budget.holds(forward, ref, products, sum_abs)) << products;
    EXPECT_FALSE(budget.holds(low, ref, products, sum_abs)) << products;
  }
}

}  // namespace
}  // namespace tessera
