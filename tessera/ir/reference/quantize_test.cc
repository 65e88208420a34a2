#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

std::vector<double> quantized(DType to, std::vector<double> x, double scale, double zero,
                              op::Attrs attrs = {}) {
  attrs.set("to", to);
  const int64_t n = static_cast<int64_t>(x.size());
  auto y =
      run_op("quantize", {f32({n}, std::move(x)), f32({}, {scale}), tensor(to, {}, {zero})}, attrs);
  EXPECT_TRUE(y) << y.error().message;
  return y ? values_of((*y)[0].tensor()) : std::vector<double>{};
}

TEST(Quantize, RoundsToEvenThenAddsTheZeroPointThenSaturates) {
  using V = std::vector<double>;
  EXPECT_EQ(quantized(DType::kU8, {0, 1, 3, 5, -3, 1000, -1000}, 2, 128),
            (V{128, 128, 130, 130, 126, 255, 0}));
  EXPECT_EQ(quantized(DType::kI8, {1e30, -1e30, INFINITY, NAN}, 1, 1), (V{127, -128, 127, 0}));
  EXPECT_EQ(quantized(DType::kI4, {7.6, -9, 3}, 1, 0), (V{7, -8, 3}));
  EXPECT_EQ(quantized(DType::kU2, {-1, 0.5, 1.5, 9}, 1, 0), (V{0, 0, 2, 3}));
  EXPECT_EQ(quantized(DType::kI16, {40000, -40000}, 1, 0), (V{32767, -32768}));
  EXPECT_EQ(quantized(DType::kF8E4M3FN, {1e6, 17}, 1, 0), (V{448, 16}));
  EXPECT_TRUE(std::isnan(quantized(DType::kF8E4M3FN, {1e6}, 1, 0, {{"saturate", int64_t{0}}})[0]));
  EXPECT_EQ(quantized(DType::kF4E2M1, {5.1, -100}, 1, 0), (V{6, -6}));
  // In f16, 2049 is 2048.
  EXPECT_EQ(quantized(DType::kI16, {2049}, 1, 0, {{"precision", DType::kF16}}), V{2048});
}

TEST(Quantize, FindsTheScaleByTensorAxisOrBlock) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  auto values = [&](const Tensor& scale, int64_t axis, int64_t block) {
    auto y = run_op("quantize", {x, scale}, {{"to", DType::kU8}, {"axis", axis}, {"block", block}});
    EXPECT_TRUE(y) << y.error().message;
    return y ? values_of((*y)[0].tensor()) : std::vector<double>{};
  };
  using V = std::vector<double>;
  EXPECT_EQ(values(f32({1}, {0.5}), 1, 0), (V{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(values(f32({3}, {1, 0.5, 0.25}), 1, 0), (V{1, 4, 12, 4, 10, 24}));
  EXPECT_EQ(values(f32({2}, {1, 0.5}), -2, 0), (V{1, 2, 3, 8, 10, 12}));
  EXPECT_EQ(values(f32({2, 2}, {1, 0.5, 0.25, 0.125}), 1, 2), (V{1, 2, 6, 16, 20, 48}));
}

TEST(Quantize, RefusesScalesThatDoNotFit) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const op::Attrs to{{"to", DType::kU8}};
  EXPECT_FALSE(run_op("quantize", {x, f32({2}, {1, 1})}, to));
  EXPECT_FALSE(run_op("quantize", {x, f32({2, 2}, {1, 1, 1, 1})}, to));
  EXPECT_FALSE(run_op("quantize", {x, f32({2, 2}, {1, 1, 1, 1})},
                      {{"to", DType::kU8}, {"block", int64_t{1}}}));
  EXPECT_FALSE(
      run_op("quantize", {x, f32({3}, {1, 1, 1})}, {{"to", DType::kU8}, {"axis", int64_t{2}}}));
  EXPECT_FALSE(run_op("quantize", {x, f32({}, {1}), tensor(DType::kI8, {}, {0})}, to));
  EXPECT_FALSE(run_op("quantize", {x, f32({}, {1})}, {{"to", DType::kI64}}));
  EXPECT_FALSE(run_op("dequantize",
                      {tensor(DType::kU8, {1}, {1}), f32({}, {1}), tensor(DType::kI8, {}, {0})},
                      {{"to", DType::kF32}}));
}

TEST(Quantize, DecompositionIsTheReference) {
  for (DType to : {DType::kU8, DType::kI8, DType::kI4, DType::kU2, DType::kI16, DType::kF8E4M3FN,
                   DType::kF8E5M2, DType::kF4E2M1})
    for (auto [dims, scale_dims, axis, block] :
         {std::tuple<Dims, Dims, int64_t, int64_t>{{2, 5, 3}, {}, 1, 0},
          {{2, 5, 3}, {5}, 1, 0},
          {{2, 5, 3}, {3}, -1, 0},
          {{2, 5, 3}, {2, 3, 3}, 1, 2},
          {{0, 5}, {5}, 1, 0},
          {{7}, {7}, 1, 0},
          {{}, {1}, 1, 0}}) {
      const op::Attrs attrs{{"to", to}, {"axis", axis}, {"block", block}};
      const std::vector<std::optional<Tensor>> in{random(DType::kF32, dims, 1, -300, 300),
                                                  random(DType::kF32, scale_dims, 2, 0.5, 2),
                                                  tensor(to, scale_dims, {})};
      auto a = run_op("quantize", in, attrs), b = run_op("quantize", in, attrs, 1, true);
      ASSERT_TRUE(a) << a.error().message;
      ASSERT_TRUE(b) << b.error().message;
      EXPECT_EQ((*a)[0].tensor().dims(), (*b)[0].tensor().dims());
      EXPECT_EQ(values_of((*a)[0].tensor()), values_of((*b)[0].tensor()));
      op::Attrs back{{"to", DType::kF32}, {"axis", axis}, {"block", block}};
      const std::vector<std::optional<Tensor>> q{(*a)[0].tensor(), in[1], in[2]};
      auto c = run_op("dequantize", q, back), d = run_op("dequantize", q, back, 1, true);
      ASSERT_TRUE(c) << c.error().message;
      ASSERT_TRUE(d) << d.error().message;
      EXPECT_EQ(values_of((*c)[0].tensor()), values_of((*d)[0].tensor()));
    }
}

TEST(DotInteger, SubtractsZeroPointsOfRowsAndColumns) {
  const Tensor a = tensor(DType::kU8, {2, 2}, {1, 2, 3, 4}),
               b = tensor(DType::kI8, {2, 2}, {5, -6, 7, -8});
  auto y = run_op("dot_integer",
                  {a, b, tensor(DType::kU8, {2}, {1, 3}), tensor(DType::kI8, {2}, {5, -6})});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ((*y)[0].tensor().dtype(), DType::kI32);
  EXPECT_EQ(values_of((*y)[0].tensor()),
            (std::vector<double>{2, -2, 2, -2}));  // [0 1; 0 1] @ [0 0; 2 -2]
}

}  // namespace
}  // namespace tessera::ir::reference
