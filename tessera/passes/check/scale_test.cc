#include <gtest/gtest.h>

#include <cmath>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Scale, IntoConvolutions) {
  rewrites("scale", R"(graph @"g"(%0: f32[n,2,h,w]) {
  %1 = constant f32[4,1,1,1] {1.0, 2.0, 3.0, 4.0}
  %2 = constant f32[4] {0.5, 0.0, -1.0, 1.0}
  %3 = conv(%0, %1, %2) {groups = 2} : f32[n,4,h,w]
  %4 = constant f32[4,1,1] {2.0, 3.0, 4.0, 5.0}
  %5 = mul(%4, %3) : f32[n,4,h,w]
  return %5 "y"
})",
           R"(graph @"g"(%0: f32[n,2,h,w]) {
  %1 = constant f32[4,1,1,1] {2.0, 6.0, 12.0, 20.0}
  %2 = constant f32[4] {1.0, 0.0, -4.0, 5.0}
  %3 = conv(%0, %1, %2) {groups = 2} : f32[n,4,h,w]
  return %3 "y"
})",
           kRounding);
}

// Weights (C, M/G, taps): input channels 0 and 1 make output channels 0 and 1, 2 and 3 the others.
TEST(Scale, IntoTransposedConvolutions) {
  rewrites("scale", R"(graph @"g"(%0: f32[n,4,w]) {
  %1 = constant f32[4,2,1] {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}
  %2 = conv_transpose(%0, %1) {groups = 2} : f32[n,4,w]
  %3 = constant f32[1,4,1] {2.0, 4.0, 8.0, 16.0}
  %4 = div(%2, %3) : f32[n,4,w]
  return %4 "y"
})",
           R"(graph @"g"(%0: f32[n,4,w]) {
  %1 = constant f32[4,2,1] {0.5, 0.25, 0.5, 0.25, 0.125, 0.0625, 0.125, 0.0625}
  %2 = conv_transpose(%0, %1) {groups = 2} : f32[n,4,w]
  return %2 "y"
})",
           kRounding);
}

TEST(Scale, IntoDots) {
  rewrites("scale", R"(graph @"g"(%0: f32[n,s,2]) {
  %1 = constant f32[2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  %2 = dot(%0, %1) : f32[n,s,3]
  %3 = constant f32[3] {1.0, 10.0, 100.0}
  %4 = mul(%2, %3) : f32[n,s,3]
  %5 = constant f32[1,3] {1.0, 2.0, 3.0}
  %6 = dot(%4, %5) {transpose_b = 1} : f32[n,s,1]
  %7 = constant f32[] {2.0}
  %8 = mul(%6, %7) : f32[n,s,1]
  return %8 "y"
})",
           R"(graph @"g"(%0: f32[n,s,2]) {
  %1 = constant f32[2,3] {1.0, 20.0, 300.0, 4.0, 50.0, 600.0}
  %2 = dot(%0, %1) : f32[n,s,3]
  %3 = constant f32[1,3] {2.0, 4.0, 6.0}
  %4 = dot(%2, %3) {transpose_b = 1} : f32[n,s,1]
  return %4 "y"
})",
           kRounding);
}

TEST(Scale, ThroughSumsAndFactors) {
  rewrites("scale", R"(graph @"g"(%0: f32[n,2]) {
  %1 = constant f32[2] {3.0, 4.0}
  %2 = mul(%0, %1) : f32[n,2]
  %3 = constant f32[2] {1.0, -1.0}
  %4 = add(%3, %2) : f32[n,2]
  %5 = constant f32[] {2.0}
  %6 = div(%4, %5) : f32[n,2]
  return %6 "y"
})",
           R"(graph @"g"(%0: f32[n,2]) {
  %1 = constant f32[2] {1.5, 2.0}
  %2 = mul(%0, %1) : f32[n,2]
  %3 = constant f32[2] {0.5, -0.5}
  %4 = add(%2, %3) : f32[n,2]
  return %4 "y"
})",
           kRounding);
}

TEST(Scale, NotWhereTheResultIsReadElsewhere) {
  stays("scale", R"(graph @"g"(%0: f32[n,1]) {
  %1 = constant f32[1,2] {1.0, 2.0}
  %2 = dot(%0, %1) : f32[n,2]
  %3 = constant f32[] {2.0}
  %4 = mul(%2, %3) : f32[n,2]
  return %4 "y", %2 "z"
})",
        "the result of dot is read elsewhere, too");
}

TEST(Scale, NotWhereTheFactorDiffersWithinAChannel) {
  stays("scale", R"(graph @"g"(%0: f32[2,1]) {
  %1 = constant f32[1,2] {1.0, 2.0}
  %2 = dot(%0, %1) : f32[2,2]
  %3 = constant f32[2,1] {2.0, 3.0}
  %4 = mul(%2, %3) : f32[2,2]
  return %4 "y"
})",
        "differs within a channel");
}

TEST(Scale, NotToInfinity) {
  stays("scale", R"(graph @"g"(%0: f32[2,1]) {
  %1 = constant f32[1,2] {1e30, 2.0}
  %2 = dot(%0, %1) : f32[2,2]
  %3 = constant f32[] {1e30}
  %4 = mul(%2, %3) : f32[2,2]
  return %4 "y"
})",
        "a weight would become infinite");
  stays("scale", R"(graph @"g"(%0: f32[2,1]) {
  %1 = constant f32[1,2] {1.0, 2.0}
  %2 = dot(%0, %1) : f32[2,2]
  %3 = constant f32[] {0.0}
  %4 = div(%2, %3) : f32[2,2]
  return %4 "y"
})",
        "not finite");
}

TEST(Scale, NotWhereTwoConstantsMakeALargerOne) {
  stays("scale", R"(graph @"g"(%0: f32[2,2]) {
  %1 = constant f32[2,1] {1.0, 2.0}
  %2 = mul(%0, %1) : f32[2,2]
  %3 = constant f32[2] {2.0, 3.0}
  %4 = mul(%2, %3) : f32[2,2]
  return %4 "y"
})");
}

}  // namespace
}  // namespace tessera::passes::check
