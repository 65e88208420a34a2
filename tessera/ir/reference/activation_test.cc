#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

constexpr double kInf = INFINITY;

struct Case {
  const char* name;
  op::Attrs attrs;
  double x, y;
};

class Activation : public ::testing::TestWithParam<Case> {};

TEST_P(Activation, HasTheValueWorkedOutByHand) {
  const Case& c = GetParam();
  auto y = run_op(c.name, {f32({1}, {c.x})}, c.attrs);
  ASSERT_TRUE(y) << y.error().message;
  const double actual = (*y)[0].tensor().f64(0);
  if (std::isinf(c.y))
    EXPECT_EQ(actual, c.y);
  else
    EXPECT_NEAR(actual, c.y, 1e-6 * std::max(1.0, std::fabs(c.y)));
}

INSTANTIATE_TEST_SUITE_P(
    Table, Activation,
    ::testing::Values(
        Case{"relu", {}, -2, 0}, Case{"relu", {}, 3, 3},
        Case{"leaky_relu", {{"alpha", 0.1}}, -2, -0.2},
        Case{"elu", {{"alpha", 2.0}}, -1, -1.2642411176}, Case{"elu", {}, 4, 4},
        Case{"elu", {}, -kInf, -1}, Case{"sigmoid", {}, 0, 0.5}, Case{"sigmoid", {}, -200, 0},
        Case{"sigmoid", {}, 200, 1}, Case{"silu", {}, 1, 0.7310585786},
        Case{"silu", {{"alpha", 2.0}}, 1, 0.8807970780}, Case{"hard_sigmoid", {}, 1, 0.7},
        Case{"hard_sigmoid", {}, -3, 0}, Case{"hard_sigmoid", {}, 3, 1},
        Case{"hard_swish", {}, 1, 2.0 / 3}, Case{"hard_swish", {}, -3, 0},
        Case{"hard_swish", {}, 5, 5}, Case{"gelu", {}, 1, 0.8413447461}, Case{"gelu", {}, 0, 0},
        Case{"gelu", {{"tanh", int64_t{1}}}, 1, 0.8411919906},
        Case{"softplus", {}, 0, 0.6931471806}, Case{"softplus", {}, 500, 500},
        Case{"softplus", {}, -500, 0}, Case{"mish", {}, 1, 0.8650983883}, Case{"mish", {}, 0, 0}),
    [](const auto& p) { return std::string(p.param.name) + "_" + std::to_string(p.index); });

TEST(Softmax, RowsSumToOneAlongAnyAxis) {
  const Tensor x = random(DType::kF32, {3, 4, 5}, 1, -50, 50);
  for (int64_t axis : {-3, -2, -1, 0, 1, 2}) {
    auto y = run_op("softmax", {x}, {{"axis", axis}});
    ASSERT_TRUE(y) << y.error().message;
    auto sum = run_op("reduce", {(*y)[0].tensor(), i64({1}, {static_cast<double>(axis)})},
                      {{"kind", std::string("sum")}});
    ASSERT_TRUE(sum) << sum.error().message;
    for (double s : values_of((*sum)[0].tensor())) EXPECT_NEAR(s, 1, 1e-6);
    auto log = run_op("log_softmax", {x}, {{"axis", axis}});
    ASSERT_TRUE(log) << log.error().message;
    for (int64_t i = 0; i < x.count(); ++i)
      EXPECT_NEAR(std::exp((*log)[0].tensor().f64(i)), (*y)[0].tensor().f64(i), 1e-6);
  }
  EXPECT_FALSE(run_op("softmax", {x}, {{"axis", int64_t{3}}}));
  EXPECT_FALSE(run_op("softmax", {i64({2}, {1, 2})}));
}

TEST(Softmax, TakesSizesZeroAndOne) {
  EXPECT_EQ((*run_op("softmax", {f32({0, 3}, {})}))[0].tensor().dims(), (Dims{0, 3}));
  EXPECT_EQ((*run_op("softmax", {f32({3, 0}, {})}))[0].tensor().dims(), (Dims{3, 0}));
  EXPECT_EQ(values_of((*run_op("softmax", {f32({1}, {-7})}))[0].tensor()), std::vector<double>{1});
}

TEST(Hardmax, MarksTheFirstMaximum) {
  auto y = run_op("hardmax", {f32({2, 3}, {1, 5, 5, 2, 0, 1})});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(values_of((*y)[0].tensor()), (std::vector<double>{0, 1, 0, 1, 0, 0}));
  auto columns = run_op("hardmax", {f32({2, 3}, {1, 5, 5, 2, 0, 5})}, {{"axis", int64_t{0}}});
  ASSERT_TRUE(columns) << columns.error().message;
  EXPECT_EQ(values_of((*columns)[0].tensor()), (std::vector<double>{0, 1, 1, 1, 0, 0}));
}

}  // namespace
}  // namespace tessera::ir::reference
