#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Common, EqualNodesBecomeOne) {
  rewrites("common", R"(graph @"g"(%0: f32[n,3]) {
  %1 = constant f32[] {2.0}
  %2 = constant f32[] {2.0}
  %3 = mul(%0, %1) : f32[n,3]
  %4 = mul(%0, %2) : f32[n,3]
  %5 = exp(%3) : f32[n,3]
  %6 = exp(%4) : f32[n,3]
  %7 = add(%5, %6) : f32[n,3]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[n,3]) {
  %1 = constant f32[] {2.0}
  %2 = mul(%0, %1) : f32[n,3]
  %3 = exp(%2) : f32[n,3]
  %4 = add(%3, %3) : f32[n,3]
  return %4 "y"
})");
}

TEST(Common, NotWithOtherAttributesConstantsOrOrder) {
  stays("common", R"(graph @"g"(%0: f32[3,3]) {
  %1 = constant f32[] {0.0}
  %2 = constant f32[] {-0.0}
  %3 = div(%0, %1) : f32[3,3]
  %4 = div(%0, %2) : f32[3,3]
  %5 = softmax(%3) {axis = 0} : f32[3,3]
  %6 = softmax(%3) {axis = 1} : f32[3,3]
  %7 = sub(%5, %6) : f32[3,3]
  %8 = sub(%6, %5) : f32[3,3]
  return %4 "a", %7 "b", %8 "c"
})");
}

TEST(Common, RandomNumbersOfOneKeyOnly) {
  rewrites("common", R"(graph @"g"() {
  %0 = constant i64[1] {3}
  %1 = random(%0) {key = 1} : u32[3]
  %2 = random(%0) {key = 1} : u32[3]
  %3 = random(%0) {key = 2} : u32[3]
  return %1 "x", %2 "y", %3 "z"
})",
           R"(graph @"g"() {
  %0 = constant i64[1] {3}
  %1 = random(%0) {key = 1} : u32[3]
  %2 = random(%0) {key = 2} : u32[3]
  return %1 "x", %1 "y", %2 "z"
})");
}

}  // namespace
}  // namespace tessera::passes::check
