#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

void expect_near(const Tensor& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.count(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < actual.count(); ++i)
    EXPECT_NEAR(actual.f64(i), expected[static_cast<size_t>(i)], 1e-6) << i;
}

TEST(LayerNorm, HasTheValueWorkedOutByHand) {
  // Rows {1, 3} and {5, 5}: means 2 and 5, variances 1 and 0.
  auto y = run_op("layer_norm", {f32({2, 2}, {1, 3, 5, 5}), f32({2}, {2, 4}), f32({2}, {10, 20})},
                  {{"epsilon", 3.0}}, 3);
  ASSERT_TRUE(y) << y.error().message;
  expect_near((*y)[0].tensor(), {9, 22, 10, 20});
  expect_near((*y)[1].tensor(), {2, 5});
  expect_near((*y)[2].tensor(), {0.5, 1 / std::sqrt(3)});
  EXPECT_EQ((*y)[1].tensor().dims(), (Dims{2, 1}));
}

TEST(LayerNorm, TakesAnAxisAndLeavesOutBiasAndScale) {
  auto y = run_op("layer_norm", {f32({1, 2, 2}, {1, 1, 3, 3}), std::nullopt, f32({1}, {1})},
                  {{"axis", int64_t{1}}, {"epsilon", 0.0}}, 2);
  ASSERT_TRUE(y) << y.error().message;
  expect_near((*y)[0].tensor(), {0, 0, 2, 2});
  EXPECT_EQ((*y)[1].tensor().dims(), (Dims{1, 1, 1}));
  EXPECT_FALSE(run_op("layer_norm", {f32({2, 2}, {1, 2, 3, 4})}, {{"axis", int64_t{2}}}));
  EXPECT_FALSE(run_op("layer_norm", {i64({2}, {1, 2})}));
}

TEST(RmsNorm, HasTheValueWorkedOutByHand) {
  auto y = run_op("rms_norm", {f32({1, 2}, {3, 4}), f32({2}, {1, 2})}, {{"epsilon", 0.0}});
  ASSERT_TRUE(y) << y.error().message;
  const double rms = std::sqrt(12.5);
  expect_near((*y)[0].tensor(), {3 / rms, 8 / rms});
}

TEST(GroupNorm, NormalisesEachGroupAndScalesEachChannel) {
  // One sample, 4 channels of one element in 2 groups: {1, 3} and {2, 6}.
  auto y = run_op("group_norm",
                  {f32({1, 4, 1}, {1, 3, 2, 6}), f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 1, 1})},
                  {{"groups", int64_t{2}}, {"epsilon", 0.0}});
  ASSERT_TRUE(y) << y.error().message;
  expect_near((*y)[0].tensor(), {-1, 2, -2, 5});
  EXPECT_FALSE(run_op("group_norm", {f32({1, 4}, {1, 3, 2, 6}), f32({4}, {}), f32({4}, {})},
                      {{"groups", int64_t{3}}}));
}

}  // namespace
}  // namespace tessera::ir::reference
