#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Transposes, BecomeOneOrNone) {
  rewrites("transposes", R"(graph @"g"(%0: f32[n,2,3]) {
  %1 = transpose(%0) {perm = [2, 0, 1]} : f32[3,n,2]
  %2 = transpose(%1) {perm = [2, 0, 1]} : f32[2,3,n]
  %3 = transpose(%1) {perm = [1, 2, 0]} : f32[n,2,3]
  %4 = tanh(%3) : f32[n,2,3]
  return %2 "y", %4 "z"
})",
           R"(graph @"g"(%0: f32[n,2,3]) {
  %1 = transpose(%0) {perm = [1, 2, 0]} : f32[2,3,n]
  %2 = tanh(%0) : f32[n,2,3]
  return %1 "y", %2 "z"
})");
}

TEST(Transposes, GoBelowElementwiseOperators) {
  rewrites("transposes", R"(graph @"g"(%0: f32[n,2,3], %1: f32[n,2,3]) {
  %2 = transpose(%0) {perm = [0, 2, 1]} : f32[n,3,2]
  %3 = tanh(%2) : f32[n,3,2]
  %4 = constant f32[3,1] {1.0, 2.0, 3.0}
  %5 = mul(%4, %3) : f32[n,3,2]
  %6 = transpose(%1) {perm = [0, 2, 1]} : f32[n,3,2]
  %7 = add(%5, %6) : f32[n,3,2]
  %8 = concat(%7, %7) {axis = 1} : f32[n,6,2]
  return %8 "y"
})",
           R"(graph @"g"(%0: f32[n,2,3], %1: f32[n,2,3]) {
  %2 = tanh(%0) : f32[n,2,3]
  %3 = constant f32[3] {1.0, 2.0, 3.0}
  %4 = mul(%3, %2) : f32[n,2,3]
  %5 = add(%4, %1) : f32[n,2,3]
  %6 = transpose(%5) {perm = [0, 2, 1]} : f32[n,3,2]
  %7 = concat(%6, %6) {axis = 1} : f32[n,6,2]
  return %7 "y"
})");
}

TEST(Transposes, GoBelowConcats) {
  rewrites("transposes", R"(graph @"g"(%0: f32[n,2,3], %1: f32[n,2,4]) {
  %2 = transpose(%0) {perm = [2, 0, 1]} : f32[3,n,2]
  %3 = transpose(%1) {perm = [2, 0, 1]} : f32[4,n,2]
  %4 = concat(%2, %3) {axis = -3} : f32[7,n,2]
  return %4 "y"
})",
           R"(graph @"g"(%0: f32[n,2,3], %1: f32[n,2,4]) {
  %2 = concat(%0, %1) {axis = 2} : f32[n,2,7]
  %3 = transpose(%2) {perm = [2, 0, 1]} : f32[7,n,2]
  return %3 "y"
})");
}

TEST(Transposes, IntoDots) {
  rewrites("transposes", R"(graph @"g"(%0: f32[n,2,4], %1: f32[n,5,4], %2: f32[n,5,2,4]) {
  %3 = transpose(%1) {perm = [0, 2, 1]} : f32[n,4,5]
  %4 = dot(%0, %3) : f32[n,2,5]
  %5 = transpose(%2) {perm = [0, 2, 3, 1]} : f32[n,2,4,5]
  %6 = constant i64[1] {2}
  %7 = unsqueeze(%0, %6) : f32[n,2,1,4]
  %8 = dot(%7, %5) : f32[n,2,1,5]
  return %4 "y", %8 "z"
})",
           R"(graph @"g"(%0: f32[n,2,4], %1: f32[n,5,4], %2: f32[n,5,2,4]) {
  %3 = dot(%0, %1) {transpose_b = 1} : f32[n,2,5]
  %4 = constant i64[1] {2}
  %5 = unsqueeze(%0, %4) : f32[n,2,1,4]
  %6 = transpose(%2) {perm = [0, 2, 1, 3]} : f32[n,2,5,4]
  %7 = dot(%5, %6) {transpose_b = 1} : f32[n,2,1,5]
  return %3 "y", %7 "z"
})",
           kRounding);
}

TEST(Transposes, NotWhereReadElsewhereOrOtherwiseTransposed) {
  stays("transposes", R"(graph @"g"(%0: f32[2,2,2]) {
  %1 = transpose(%0) {perm = [0, 2, 1]} : f32[2,2,2]
  %2 = tanh(%1) : f32[2,2,2]
  %3 = transpose(%0) {perm = [2, 1, 0]} : f32[2,2,2]
  %4 = add(%1, %3) : f32[2,2,2]
  return %2 "y", %4 "z"
})");
}

}  // namespace
}  // namespace tessera::passes::check
