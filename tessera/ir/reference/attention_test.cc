#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

// Plain loops. Letters as in op/rows_attention.cc.
std::vector<double> attend(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                           auto visible, double cap = 0) {
  const int64_t B = q.dim(0), H = q.dim(1), S = q.dim(2), E = q.dim(3), Hk = k.dim(1), T = k.dim(2),
                F = v.dim(3);
  std::vector<double> y;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < S; ++i) {
        const int64_t kh = h / (H / Hk);
        std::vector<double> p(static_cast<size_t>(T));
        double sum = 0;
        for (int64_t j = 0; j < T; ++j) {
          double s = 0;
          for (int64_t e = 0; e < E; ++e)
            s += q.f64(((b * H + h) * S + i) * E + e) * k.f64(((b * Hk + kh) * T + j) * E + e);
          s *= scale;
          if (cap > 0) s = cap * std::tanh(s / cap);
          sum += p[static_cast<size_t>(j)] = visible(b, i, j) ? std::exp(s) : 0;
        }
        for (int64_t f = 0; f < F; ++f) {
          double total = 0;
          for (int64_t j = 0; j < T; ++j)
            total += p[static_cast<size_t>(j)] / sum * v.f64(((b * Hk + kh) * T + j) * F + f);
          y.push_back(total);
        }
      }
  return y;
}

void expect_near(const Tensor& actual, const std::vector<double>& expected,
                 double tolerance = 1e-5) {
  ASSERT_EQ(actual.count(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < actual.count(); ++i)
    ASSERT_NEAR(actual.f64(i), expected[static_cast<size_t>(i)], tolerance) << i;
}

TEST(Attention, SharesKeyHeadsAmongGroupsOfQueryHeads) {
  for (int64_t Hk : {1, 2, 4}) {
    const Tensor q = random(DType::kF32, {2, 4, 3, 5}, 1),
                 k = random(DType::kF32, {2, Hk, 7, 5}, 2),
                 v = random(DType::kF32, {2, Hk, 7, 2}, 3);
    auto y = run_op("attention", {q, k, v}, {{"softcap", 0.5}});
    ASSERT_TRUE(y) << y.error().message;
    expect_near((*y)[0].tensor(),
                attend(
                    q, k, v, 1 / std::sqrt(5), [](auto...) { return true; }, 0.5));
  }
}

TEST(Attention, CausalHidesWhatComesAfterThePast) {
  const Tensor q = random(DType::kF32, {1, 2, 3, 4}, 1), k = random(DType::kF32, {1, 2, 3, 4}, 2),
               v = random(DType::kF32, {1, 2, 3, 4}, 3);
  const Tensor pk = random(DType::kF32, {1, 2, 2, 4}, 4), pv = random(DType::kF32, {1, 2, 2, 4}, 5);
  auto y = run_op("attention", {q, k, v, std::nullopt, pk, pv},
                  {{"causal", int64_t{1}}, {"scale", 0.7}}, 3);
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ((*y)[1].tensor().dims(), (Dims{1, 2, 5, 4}));
  expect_near((*y)[0].tensor(), attend(q, (*y)[1].tensor(), (*y)[2].tensor(), 0.7,
                                       [](int64_t, int64_t i, int64_t j) { return j <= i + 2; }));
}

TEST(Attention, MasksAreBoolOrAddedAndMayBeShort) {
  const Tensor q = random(DType::kF32, {2, 1, 2, 4}, 1), k = random(DType::kF32, {2, 1, 3, 4}, 2),
               v = random(DType::kF32, {2, 1, 3, 4}, 3);
  const auto expected =
      attend(q, k, v, 0.5, [](int64_t, int64_t i, int64_t j) { return j <= i && j < 2; });
  auto y = run_op("attention", {q, k, v, tensor(DType::kBool, {2, 2}, {1, 0, 1, 1})});
  ASSERT_TRUE(y) << y.error().message;
  expect_near((*y)[0].tensor(), expected);
  auto added = run_op("attention", {q, k, v, f32({2, 2}, {0, -INFINITY, 0, 0})});
  ASSERT_TRUE(added) << added.error().message;
  expect_near((*added)[0].tensor(), expected);
  auto lengths =
      run_op("attention", {q, k, v, std::nullopt, std::nullopt, std::nullopt, i64({2}, {1, 3})});
  ASSERT_TRUE(lengths) << lengths.error().message;
  expect_near((*lengths)[0].tensor(), attend(q, k, v, 0.5, [](int64_t b, int64_t, int64_t j) {
                return j < (b == 0 ? 1 : 3);
              }));
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Tensor q = random(DType::kF32, {1, 3, 2, 4}, 1), k = random(DType::kF32, {1, 2, 3, 4}, 2),
               k3 = random(DType::kF32, {1, 3, 3, 4}, 2);
  EXPECT_FALSE(run_op("attention", {q, k, k}));  // 3 heads, 2 key heads
  EXPECT_FALSE(
      run_op("attention", {q, k3, random(DType::kF32, {1, 3, 4, 4}, 1)}));  // 3 keys, 4 values
  EXPECT_FALSE(
      run_op("attention", {q, k3, k3, random(DType::kF32, {2, 4}, 1)}));  // too many columns
  EXPECT_FALSE(run_op("attention", {q, k3, k3, std::nullopt, k3}));       // past keys alone
}

TEST(Rotary, TurnsPairsByTheirAngle) {
  const double c = std::cos(0.5), s = std::sin(0.5);
  const Tensor x = f32({1, 1, 1, 5}, {1, 2, 3, 4, 9}), cos = f32({1, 1, 2}, {c, 1}),
               sin = f32({1, 1, 2}, {s, 0});
  auto halves = run_op("rotary", {x, cos, sin}, {{"dim", int64_t{4}}});
  ASSERT_TRUE(halves) << halves.error().message;
  expect_near((*halves)[0].tensor(), {c - 3 * s, 2, s + 3 * c, 4, 9}, 1e-6);
  auto interleaved =
      run_op("rotary", {x, cos, sin}, {{"dim", int64_t{4}}, {"interleaved", int64_t{1}}});
  ASSERT_TRUE(interleaved) << interleaved.error().message;
  expect_near((*interleaved)[0].tensor(), {c - 2 * s, s + 2 * c, 3, 4, 9}, 1e-6);
  auto table =
      run_op("rotary", {x, f32({2, 2}, {1, 1, c, 1}), f32({2, 2}, {0, 0, s, 0}), i64({1, 1}, {1})},
             {{"dim", int64_t{4}}});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(values_of((*table)[0].tensor()), values_of((*halves)[0].tensor()));
  EXPECT_FALSE(run_op("rotary", {x, cos, sin}));  // 5 channels
  EXPECT_FALSE(run_op("rotary", {x, f32({2, 2}, {}), f32({2, 2}, {}), i64({1, 1}, {2})},
                      {{"dim", int64_t{4}}}));  // no such position
}

TEST(LinearAttention, HasTheValueWorkedOutByHand) {
  // One head of size 1: state = 0.5 * 2 + 3 * b, b = 0.25 (5 - 3 * 1), y = 4 * 10 * state
  auto y = run_op(
      "linear_attention",
      {f32({1, 1, 1, 1}, {10}), f32({1, 1, 1, 1}, {3}), f32({1, 1, 1, 1}, {5}),
       f32({1, 1, 1, 1}, {2}), f32({1, 1, 1, 1}, {std::log(0.5)}), f32({1, 1, 1, 1}, {0.25})},
      {{"scale", 4.0}}, 2);
  ASSERT_TRUE(y) << y.error().message;
  expect_near((*y)[1].tensor(), {2.5}, 1e-6);
  expect_near((*y)[0].tensor(), {100}, 1e-4);
}

TEST(LinearAttention, WithoutGatesIsTheSumOfOuterProducts) {
  const Tensor q = random(DType::kF32, {2, 4, 3, 5}, 1), k = random(DType::kF32, {2, 2, 3, 5}, 2),
               v = random(DType::kF32, {2, 2, 3, 2}, 3);
  auto y = run_op("linear_attention", {q, k, v}, {{"scale", 1.0}}, 2);
  ASSERT_TRUE(y) << y.error().message;
  std::vector<double> expected;
  for (int64_t bh = 0; bh < 8; ++bh)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t f = 0; f < 2; ++f) {
        double sum = 0;
        for (int64_t j = 0; j <= i; ++j)
          for (int64_t e = 0; e < 5; ++e)
            sum += q.f64((bh * 3 + i) * 5 + e) * k.f64((bh / 2 * 3 + j) * 5 + e) *
                   v.f64((bh / 2 * 3 + j) * 2 + f);
        expected.push_back(sum);
      }
  expect_near((*y)[0].tensor(), expected);
}

}  // namespace
}  // namespace tessera::ir::reference
