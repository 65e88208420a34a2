#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Slices, GatherOfARun) {
  rewrites("slices", R"(graph @"g"(%0: f32[n,5]) {
  %1 = constant i64[] {-2}
  %2 = gather(%0, %1) {axis = 1} : f32[n]
  %3 = constant i64[2] {1, 2}
  %4 = gather(%0, %3) {axis = -1} : f32[n,2]
  %5 = constant i64[5] {0, 1, 2, 3, 4}
  %6 = gather(%0, %5) {axis = 1} : f32[n,5]
  return %2 "x", %4 "y", %6 "z"
})",
           R"(graph @"g"(%0: f32[n,5]) {
  %1 = constant i64[1] {3}
  %2 = constant i64[1] {4}
  %3 = constant i64[1] {1}
  %4 = slice(%0, %1, %2, %3) : f32[n,1]
  %5 = constant i64[1] {0}
  %6 = reshape(%4, %5) {zero_is_zero = 0} : f32[n]
  %7 = constant i64[1] {1}
  %8 = constant i64[1] {3}
  %9 = constant i64[1] {1}
  %10 = slice(%0, %7, %8, %9) : f32[n,2]
  return %6 "x", %10 "y", %0 "z"
})");
}

// Queries, keys and values out of one product.
TEST(Slices, OfTransposedHeads) {
  rewrites("slices", R"(graph @"g"(%0: f32[n,24]) {
  %1 = constant i64[4] {-1, 3, 2, 4}
  %2 = reshape(%0, %1) : f32[n,3,2,4]
  %3 = transpose(%2) {perm = [1, 2, 0, 3]} : f32[3,2,n,4]
  %4 = constant i64[1] {1}
  %5 = constant i64[1] {2}
  %6 = constant i64[1] {0}
  %7 = slice(%3, %4, %5, %6) : f32[1,2,n,4]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[n,24]) {
  %1 = constant i64[1] {8}
  %2 = constant i64[1] {16}
  %3 = constant i64[1] {1}
  %4 = slice(%0, %1, %2, %3) : f32[n,8]
  %5 = constant i64[4] {0, 1, 2, 4}
  %6 = reshape(%4, %5) {zero_is_zero = 0} : f32[n,1,2,4]
  %7 = transpose(%6) {perm = [1, 2, 0, 3]} : f32[1,2,n,4]
  return %7 "y"
})");
}

TEST(Slices, OfAConcat) {
  rewrites("slices", R"(graph @"g"(%0: f32[n,2], %1: f32[n,3]) {
  %2 = concat(%0, %1) {axis = 1} : f32[n,5]
  %3 = constant i64[1] {2}
  %4 = constant i64[1] {9}
  %5 = constant i64[1] {1}
  %6 = slice(%2, %3, %4, %5) : f32[n,3]
  %7 = exp(%6) : f32[n,3]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[n,2], %1: f32[n,3]) {
  %2 = exp(%1) : f32[n,3]
  return %2 "y"
})");
}

TEST(Slices, NotOfOtherIndicesStepsOrInnerAxes) {
  stays("slices", R"(graph @"g"(%0: f32[5,6]) {
  %1 = constant i64[2] {2, 1}
  %2 = gather(%0, %1) {axis = 0} : f32[2,6]
  %3 = constant i64[3] {5, 2, 3}
  %4 = reshape(%0, %3) : f32[5,2,3]
  %5 = constant i64[1] {1}
  %6 = constant i64[1] {2}
  %7 = slice(%4, %5, %6, %6) : f32[5,2,1]
  %8 = transpose(%0) {perm = [1, 0]} : f32[6,5]
  %9 = constant i64[1] {0}
  %10 = constant i64[1] {6}
  %11 = slice(%8, %9, %10, %9, %6) : f32[3,5]
  return %2 "x", %7 "y", %11 "z"
})");
}

}  // namespace
}  // namespace tessera::passes::check
