// Passes relu, sigmoid, gelu and hard_swish.
#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

// A graph of one input x, %0, whose body ends in %9 : the result.
std::string of_x(std::string_view body, std::string_view type = "f32[n,3]") {
  return fmt::format("graph @\"g\"(%0: {0}) {{\n{1}  return %9 \"y\"\n}}", type, body);
}

TEST(Relu, IsAMaximumWithZero) {
  rewrites("relu", R"(graph @"g"(%0: f32[n,3], %1: i32[2]) {
  %2 = constant f32[] {0.0}
  %3 = max(%2, %0) : f32[n,3]
  %4 = relu(%3) : f32[n,3]
  %5 = constant i32[1] {0}
  %6 = max(%1, %5) : i32[2]
  return %4 "y", %6 "z"
})",
           R"(graph @"g"(%0: f32[n,3], %1: i32[2]) {
  %2 = relu(%0) : f32[n,3]
  %3 = relu(%1) : i32[2]
  return %2 "y", %3 "z"
})");
  stays("relu", R"(graph @"g"(%0: f32[3]) {
  %1 = constant f32[2,1] {0.0, 0.0}
  %2 = max(%0, %1) : f32[2,3]
  %3 = constant f32[] {1.0}
  %4 = max(%0, %3) : f32[3]
  return %2 "y", %4 "z"
})");
}

TEST(Sigmoid, Spelled) {
  rewrites("sigmoid", of_x(R"(  %1 = neg(%0) : f32[n,3]
  %2 = exp(%1) : f32[n,3]
  %3 = constant f32[] {1.0}
  %4 = add(%3, %2) : f32[n,3]
  %9 = div(%3, %4) : f32[n,3]
)"),
           of_x("  %9 = sigmoid(%0) : f32[n,3]\n"));
}

TEST(Sigmoid, TimesItsArgument) {
  rewrites("sigmoid", of_x(R"(  %1 = constant f32[] {1.75}
  %2 = mul(%0, %1) : f32[n,3]
  %3 = sigmoid(%2) : f32[n,3]
  %4 = mul(%3, %0) : f32[n,3]
  %5 = softplus(%4) : f32[n,3]
  %6 = tanh(%5) : f32[n,3]
  %7 = mul(%4, %6) : f32[n,3]
  %8 = sigmoid(%7) : f32[n,3]
  %9 = mul(%7, %8) : f32[n,3]
)"),
           of_x(R"(  %1 = silu(%0) {alpha = 1.75} : f32[n,3]
  %2 = mish(%1) : f32[n,3]
  %9 = silu(%2) : f32[n,3]
)"),
           kRounding);
}

TEST(Sigmoid, NotOfAnotherValueOrReadElsewhere) {
  stays("sigmoid", R"(graph @"g"(%0: f32[3], %1: f32[3]) {
  %2 = sigmoid(%0) : f32[3]
  %3 = mul(%1, %2) : f32[3]
  %4 = sigmoid(%1) : f32[3]
  %5 = mul(%1, %4) : f32[3]
  %6 = constant f32[] {1.0}
  %7 = add(%0, %6) : f32[3]
  %8 = sigmoid(%7) : f32[3]
  %9 = mul(%0, %8) : f32[3]
  return %3 "a", %5 "b", %4 "c", %9 "d"
})");
}

TEST(Gelu, ByErf) {
  const std::string gelu = of_x("  %9 = gelu(%0) : f32[n,3]\n");
  // torch: 0.5 (1 + erf(x / sqrt 2)) x
  rewrites("gelu", of_x(R"(  %1 = constant f32[] {1.4142135381698608}
  %2 = div(%0, %1) : f32[n,3]
  %3 = erf(%2) : f32[n,3]
  %4 = constant f32[] {1.0}
  %5 = add(%3, %4) : f32[n,3]
  %6 = constant f32[] {0.5}
  %7 = mul(%6, %5) : f32[n,3]
  %9 = mul(%0, %7) : f32[n,3]
)"),
           gelu, kRounding);
  // x/2 (1 + erf(x * 0.707)), the half beside x
  rewrites("gelu", of_x(R"(  %1 = constant f32[] {0.5}
  %2 = mul(%0, %1) : f32[n,3]
  %3 = constant f32[1] {0.70710677}
  %4 = mul(%3, %0) : f32[n,3]
  %5 = erf(%4) : f32[n,3]
  %6 = constant f32[1,1] {1.0}
  %7 = add(%6, %5) : f32[n,3]
  %9 = mul(%2, %7) : f32[n,3]
)"),
           gelu, kRounding);
  // x (1/2 + erf(x / sqrt 2) / 2), and a product divided by 2
  rewrites("gelu", of_x(R"(  %1 = constant f32[] {1.4142135381698608}
  %2 = div(%0, %1) : f32[n,3]
  %3 = erf(%2) : f32[n,3]
  %4 = constant f32[] {1.0}
  %5 = mul(%3, %4) : f32[n,3]
  %6 = add(%5, %4) : f32[n,3]
  %7 = mul(%6, %0) : f32[n,3]
  %8 = constant f32[] {2.0}
  %9 = div(%7, %8) : f32[n,3]
)"),
           gelu, kRounding);
}

TEST(Gelu, ByTanh) {
  const std::string gelu = of_x("  %9 = gelu(%0) {tanh = 1} : f32[n,3]\n");
  // x^3 by pow
  rewrites("gelu", of_x(R"(  %1 = constant f32[] {0.5}
  %2 = mul(%0, %1) : f32[n,3]
  %3 = constant f32[] {3.0}
  %4 = pow(%0, %3) : f32[n,3]
  %5 = constant f32[] {0.044714998453855515}
  %6 = mul(%4, %5) : f32[n,3]
  %7 = add(%0, %6) : f32[n,3]
  %8 = constant f32[] {0.7978845834732056}
  %10 = mul(%7, %8) : f32[n,3]
  %11 = tanh(%10) : f32[n,3]
  %12 = constant f32[] {1.0}
  %13 = add(%11, %12) : f32[n,3]
  %9 = mul(%2, %13) : f32[n,3]
)"),
           gelu, kRounding);
  // sqrt(2/pi) x (1 + 0.044715 x x)
  rewrites("gelu", of_x(R"(  %1 = mul(%0, %0) : f32[n,3]
  %2 = constant f32[] {0.044714998453855515}
  %3 = mul(%2, %1) : f32[n,3]
  %4 = constant f32[] {1.0}
  %5 = add(%3, %4) : f32[n,3]
  %6 = constant f32[] {0.7978845834732056}
  %7 = mul(%0, %6) : f32[n,3]
  %8 = mul(%7, %5) : f32[n,3]
  %10 = tanh(%8) : f32[n,3]
  %11 = add(%4, %10) : f32[n,3]
  %12 = mul(%11, %0) : f32[n,3]
  %13 = constant f32[] {0.5}
  %9 = mul(%12, %13) : f32[n,3]
)"),
           gelu, kRounding);
}

TEST(Gelu, NotWithOtherNumbersOrReadElsewhere) {
  constexpr std::string_view kBody = R"(  %1 = constant f32[] {{{}}}
  %2 = mul(%0, %1) : f32[n,3]
  %3 = erf(%2) : f32[n,3]
  %4 = constant f32[] {{{}}}
  %5 = add(%3, %4) : f32[n,3]
  %6 = constant f32[] {{0.5}}
  %7 = mul(%6, %0) : f32[n,3]
  %9 = mul(%7, %5) : f32[n,3]
)";
  stays("gelu", of_x(fmt::format(kBody, "0.7", "1.0")), "almost gelu");
  stays("gelu", of_x(fmt::format(kBody, "0.70710677", "1.1")), "almost gelu");
  stays("gelu", R"(graph @"g"(%0: f32[3]) {
  %1 = constant f32[] {0.70710677}
  %2 = mul(%0, %1) : f32[3]
  %3 = erf(%2) : f32[3]
  %4 = constant f32[] {1.0}
  %5 = add(%3, %4) : f32[3]
  %6 = constant f32[] {0.5}
  %7 = mul(%6, %0) : f32[3]
  %8 = mul(%7, %5) : f32[3]
  return %8 "y", %3 "z"
})");
}

TEST(HardSwish, ByClip) {
  // x * relu6(x + 3) / 6
  rewrites("hard_swish", of_x(R"(  %1 = constant f32[] {3.0}
  %2 = add(%0, %1) : f32[n,3]
  %3 = constant f32[] {0.0}
  %4 = max(%2, %3) : f32[n,3]
  %5 = constant f32[] {6.0}
  %6 = min(%4, %5) : f32[n,3]
  %7 = mul(%0, %6) : f32[n,3]
  %9 = div(%7, %5) : f32[n,3]
)"),
           of_x("  %9 = hard_swish(%0) : f32[n,3]\n"), kRounding);
  // relu6(x + 3) / 6 alone, max after min
  rewrites("hard_swish", of_x(R"(  %1 = constant f32[] {3.0}
  %2 = add(%0, %1) : f32[n,3]
  %3 = constant f32[] {6.0}
  %4 = min(%2, %3) : f32[n,3]
  %5 = relu(%4) : f32[n,3]
  %9 = div(%5, %3) : f32[n,3]
)"),
           of_x(R"(  %9 = hard_sigmoid(%0) {alpha = 0.16666666666666666, beta = 0.5} : f32[n,3]
)"),
           kRounding);
}

TEST(HardSwish, NotByAnotherSlopeNorForAClipAlone) {
  stays("hard_swish", of_x(R"(  %1 = hard_sigmoid(%0) {alpha = 0.2, beta = 0.5} : f32[n,3]
  %2 = mul(%0, %1) : f32[n,3]
  %3 = constant f32[] {0.0}
  %4 = max(%2, %3) : f32[n,3]
  %5 = constant f32[] {6.0}
  %9 = min(%4, %5) : f32[n,3]
)"));
}

}  // namespace
}  // namespace tessera::passes::check
