#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Bias, IntoConvolutions) {
  rewrites("bias", R"(graph @"g"(%0: f32[n,1,w]) {
  %1 = constant f32[2,1,1] {1.0, 2.0}
  %2 = conv(%0, %1) : f32[n,2,w]
  %3 = constant f32[2,1] {1.0, -1.0}
  %4 = add(%3, %2) : f32[n,2,w]
  %5 = constant f32[2] {10.0, 20.0}
  %6 = conv_transpose(%4, %1, %5) {groups = 2} : f32[n,2,w]
  %7 = constant f32[1] {1.0}
  %8 = sub(%6, %7) : f32[n,2,w]
  return %8 "y"
})",
           R"(graph @"g"(%0: f32[n,1,w]) {
  %1 = constant f32[2,1,1] {1.0, 2.0}
  %2 = constant f32[2] {1.0, -1.0}
  %3 = conv(%0, %1, %2) : f32[n,2,w]
  %4 = constant f32[2] {9.0, 19.0}
  %5 = conv_transpose(%3, %1, %4) {groups = 2} : f32[n,2,w]
  return %5 "y"
})",
           kRounding);
}

TEST(Bias, TermsBecomeOne) {
  rewrites("bias", R"(graph @"g"(%0: f32[n,2]) {
  %1 = constant f32[2] {1.0, 2.0}
  %2 = sub(%0, %1) : f32[n,2]
  %3 = constant f32[] {5.0}
  %4 = add(%2, %3) : f32[n,2]
  %5 = exp(%4) : f32[n,2]
  %6 = sub(%5, %3) : f32[n,2]
  return %6 "y"
})",
           R"(graph @"g"(%0: f32[n,2]) {
  %1 = constant f32[2] {4.0, 3.0}
  %2 = add(%0, %1) : f32[n,2]
  %3 = exp(%2) : f32[n,2]
  %4 = constant f32[] {-5.0}
  %5 = add(%3, %4) : f32[n,2]
  return %5 "y"
})",
           kRounding);
}

TEST(Bias, NotPerElementOrOfOneReadElsewhere) {
  stays("bias", R"(graph @"g"(%0: f32[n,1,2]) {
  %1 = constant f32[1,1,1] {1.0}
  %2 = conv(%0, %1) : f32[n,1,2]
  %3 = constant f32[2] {1.0, 2.0}
  %4 = add(%2, %3) : f32[n,1,2]
  return %4 "y"
})",
        "differs within a channel");
  stays("bias", R"(graph @"g"(%0: f32[n,1,2]) {
  %1 = constant f32[1,1,1] {1.0}
  %2 = conv(%0, %1) : f32[n,1,2]
  %3 = constant f32[] {1.0}
  %4 = add(%2, %3) : f32[n,1,2]
  %5 = add(%4, %2) : f32[n,1,2]
  return %5 "y"
})",
        "read elsewhere");
}

TEST(Bias, NotOfIntegers) {
  stays("bias", R"(graph @"g"(%0: i32[2]) {
  %1 = constant i32[] {1}
  %2 = add(%0, %1) : i32[2]
  %3 = add(%2, %1) : i32[2]
  return %3 "y"
})");
}

}  // namespace
}  // namespace tessera::passes::check
