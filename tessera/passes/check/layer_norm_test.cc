#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

constexpr Tolerance kNorm{1e-5};

TEST(LayerNorm, Spelled) {
  rewrites("layer_norm", R"(graph @"g"(%0: f32[n,s,4]) {
  %1 = constant i64[1] {-1}
  %2 = reduce(%0, %1) {keepdims = 1, kind = "sum"} : f32[n,s,1]
  %3 = constant f32[] {4.0}
  %4 = div(%2, %3) : f32[n,s,1]
  %5 = sub(%0, %4) : f32[n,s,4]
  %6 = constant f32[] {2.0}
  %7 = pow(%5, %6) : f32[n,s,4]
  %8 = reduce(%7, %1) {keepdims = 1, kind = "sum"} : f32[n,s,1]
  %9 = div(%8, %3) : f32[n,s,1]
  %10 = constant f32[] {0.015625}
  %11 = add(%9, %10) : f32[n,s,1]
  %12 = sqrt(%11) : f32[n,s,1]
  %13 = div(%5, %12) : f32[n,s,4]
  %14 = constant f32[4] {1.0, 2.0, 3.0, 4.0}
  %15 = mul(%14, %13) : f32[n,s,4]
  %16 = constant f32[1,1,4] {0.5, 0.5, 0.0, 1.0}
  %17 = add(%15, %16) : f32[n,s,4]
  return %17 "y"
})",
           R"(graph @"g"(%0: f32[n,s,4]) {
  %1 = constant f32[4] {1.0, 2.0, 3.0, 4.0}
  %2 = constant f32[1,1,4] {0.5, 0.5, 0.0, 1.0}
  %3 = constant i64[1] {4}
  %4 = reshape(%2, %3) : f32[4]
  %5 = layer_norm(%0, %1, %4) {axis = 2, epsilon = 0.015625, stash = dtype f32} : f32[n,s,4]
  return %5 "y"
})",
           kNorm);
}

// d d, and a product with 1 / sqrt; over two axes.
TEST(LayerNorm, OverTwoAxes) {
  rewrites("layer_norm", R"(graph @"g"(%0: f32[n,2,2]) {
  %1 = constant i64[2] {2, 1}
  %2 = reduce(%0, %1) {kind = "sum"} : f32[n,1,1]
  %3 = constant f32[] {0.25}
  %4 = mul(%2, %3) : f32[n,1,1]
  %5 = sub(%0, %4) : f32[n,2,2]
  %6 = mul(%5, %5) : f32[n,2,2]
  %7 = reduce(%6, %1) {kind = "sum"} : f32[n,1,1]
  %8 = mul(%3, %7) : f32[n,1,1]
  %9 = constant f32[1,1,1] {0.5}
  %10 = add(%9, %8) : f32[n,1,1]
  %11 = sqrt(%10) : f32[n,1,1]
  %12 = constant f32[] {1.0}
  %13 = div(%12, %11) : f32[n,1,1]
  %14 = mul(%13, %5) : f32[n,2,2]
  return %14 "y"
})",
           R"(graph @"g"(%0: f32[n,2,2]) {
  %1 = layer_norm(%0) {axis = 1, epsilon = 0.5, stash = dtype f32} : f32[n,2,2]
  return %1 "y"
})",
           kNorm);
}

TEST(LayerNorm, RootMeanSquare) {
  rewrites("layer_norm", R"(graph @"g"(%0: f32[n,2], %1: f32[2]) {
  %2 = constant f32[] {2.0}
  %3 = pow(%0, %2) : f32[n,2]
  %4 = constant i64[1] {-1}
  %5 = reduce(%3, %4) {kind = "sum"} : f32[n,1]
  %6 = div(%5, %2) : f32[n,1]
  %7 = constant f32[] {0.5}
  %8 = add(%6, %7) : f32[n,1]
  %9 = constant f32[] {-0.5}
  %10 = pow(%8, %9) : f32[n,1]
  %11 = mul(%0, %10) : f32[n,2]
  %12 = mul(%1, %11) : f32[n,2]
  return %12 "y"
})",
           R"(graph @"g"(%0: f32[n,2], %1: f32[2]) {
  %2 = rms_norm(%0, %1) {axis = 1, epsilon = 0.5, stash = dtype f32} : f32[n,2]
  return %2 "y"
})",
           kNorm);
}

// Over channels in front, by another count, or where the deviation is wanted, too.
TEST(LayerNorm, NotOverOtherAxesOrCounts) {
  constexpr std::string_view kText = R"(graph @"g"(%0: f32[2,3,4]) {{
  %1 = constant i64[1] {{{}}}
  %2 = mul(%0, %0) : f32[2,3,4]
  %3 = reduce(%2, %1) {{kind = "sum"}} : f32[{}]
  %4 = constant f32[] {{{}.0}}
  %5 = div(%3, %4) : f32[{}]
  %6 = constant f32[] {{1.0}}
  %7 = add(%5, %6) : f32[{}]
  %8 = sqrt(%7) : f32[{}]
  %9 = div(%0, %8) : f32[2,3,4]
  return %9 "y"
}})";
  auto text = [&](int axis, std::string_view kept, int count) {
    return fmt::format(kText, axis, kept, count, kept, kept, kept);
  };
  stays("layer_norm", text(1, "2,1,4", 3));
  stays("layer_norm", text(2, "2,3,1", 3));
}

TEST(LayerNorm, NotByAScaleOfOtherSizes) {
  stays("layer_norm", R"(graph @"g"(%0: f32[2,3], %1: f32[2,1], %2: f32[2,3]) {
  %3 = layer_norm(%0) : f32[2,3]
  %4 = mul(%3, %1) : f32[2,3]
  %5 = layer_norm(%4) : f32[2,3]
  %6 = mul(%5, %2) : f32[2,3]
  return %6 "y"
})");
}

TEST(MeanPool, MeanOfThePixels) {
  rewrites("mean_pool", R"(graph @"g"(%0: f32[n,3,2,4]) {
  %1 = constant i64[2] {-1, -2}
  %2 = reduce(%0, %1) {keepdims = 1, kind = "sum"} : f32[n,3,1,1]
  %3 = constant f32[] {8.0}
  %4 = div(%2, %3) : f32[n,3,1,1]
  %5 = exp(%0) : f32[n,3,2,4]
  %6 = reduce(%5, %1) {keepdims = 0, kind = "sum"} : f32[n,3]
  %7 = div(%6, %3) : f32[n,3]
  return %4 "y", %7 "z"
})",
           R"(graph @"g"(%0: f32[n,3,2,4]) {
  %1 = global_average_pool(%0) : f32[n,3,1,1]
  %2 = exp(%0) : f32[n,3,2,4]
  %3 = global_average_pool(%2) : f32[n,3,1,1]
  %4 = constant i64[2] {-1, 3}
  %5 = reshape(%3, %4) : f32[n,3]
  return %1 "y", %5 "z"
})",
           kRounding);
}

TEST(MeanPool, NotOverSomeAxesOrByAnotherCount) {
  stays("mean_pool", R"(graph @"g"(%0: f32[2,3,2,4]) {
  %1 = constant i64[1] {-1}
  %2 = reduce(%0, %1) {kind = "sum"} : f32[2,3,2,1]
  %3 = constant f32[] {4.0}
  %4 = div(%2, %3) : f32[2,3,2,1]
  %5 = constant i64[2] {2, 3}
  %6 = reduce(%0, %5) {kind = "sum"} : f32[2,3,1,1]
  %7 = div(%6, %3) : f32[2,3,1,1]
  return %4 "y", %7 "z"
})");
}

}  // namespace
}  // namespace tessera::passes::check
