#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Reshapes, ViewsBecomeOne) {
  rewrites("reshapes", R"(graph @"g"(%0: f32[n,4,6]) {
  %1 = constant i64[2] {0, -1}
  %2 = unsqueeze(%0, %1) : f32[1,n,4,6,1]
  %3 = constant i64[3] {0, -1, 8}
  %4 = reshape(%2, %3) : f32[1,3*n,8]
  %5 = constant i64[1] {0}
  %6 = squeeze(%4, %5) : f32[3*n,8]
  %7 = exp(%6) : f32[3*n,8]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[n,4,6]) {
  %1 = constant i64[2] {-1, 8}
  %2 = reshape(%0, %1) {zero_is_zero = 0} : f32[3*n,8]
  %3 = exp(%2) : f32[3*n,8]
  return %3 "y"
})");
}

TEST(Reshapes, OpenSizesStayWhereTheyAre) {
  rewrites("reshapes", R"(graph @"g"(%0: f32[n,m,6]) {
  %1 = constant i64[1] {2}
  %2 = unsqueeze(%0, %1) : f32[n,m,1,6]
  %3 = constant i64[4] {0, 0, 2, 3}
  %4 = reshape(%2, %3) : f32[n,m,2,3]
  return %4 "y"
})",
           R"(graph @"g"(%0: f32[n,m,6]) {
  %1 = constant i64[4] {0, 0, 2, 3}
  %2 = reshape(%0, %1) {zero_is_zero = 0} : f32[n,m,2,3]
  return %2 "y"
})");
}

TEST(Reshapes, TransposesOfAxesOfOne) {
  rewrites("reshapes", R"(graph @"g"(%0: f32[5,1,n], %1: f32[2,3,1]) {
  %2 = transpose(%0) {perm = [1, 0, 2]} : f32[1,5,n]
  %3 = exp(%2) : f32[1,5,n]
  %4 = transpose(%1) {perm = [1, 2, 0]} : f32[3,1,2]
  %5 = constant i64[4] {1, 3, 2, 1}
  %6 = reshape(%4, %5) : f32[1,3,2,1]
  return %3 "y", %6 "z"
})",
           R"(graph @"g"(%0: f32[5,1,n], %1: f32[2,3,1]) {
  %2 = constant i64[3] {1, 5, 0}
  %3 = reshape(%0, %2) {zero_is_zero = 0} : f32[1,5,n]
  %4 = exp(%3) : f32[1,5,n]
  %5 = constant i64[4] {1, 2, 3, 1}
  %6 = reshape(%1, %5) {zero_is_zero = 0} : f32[1,2,3,1]
  %7 = transpose(%6) {perm = [0, 2, 1, 3]} : f32[1,3,2,1]
  return %4 "y", %7 "z"
})");
}

// A chain of products and sums on rows: the views around it cancel.
TEST(Reshapes, AroundAChain) {
  rewrites("reshapes", R"(graph @"g"(%0: f32[2,n,3]) {
  %1 = constant i64[2] {-1, 3}
  %2 = reshape(%0, %1) : f32[2*n,3]
  %3 = layer_norm(%2) {axis = 1} : f32[2*n,3]
  %4 = constant f32[3,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  %5 = dot(%3, %4) : f32[2*n,2]
  %6 = constant f32[1,2] {1.0, 2.0}
  %7 = add(%5, %6) : f32[2*n,2]
  %8 = relu(%7) : f32[2*n,2]
  %9 = constant i64[3] {2, -1, 2}
  %10 = reshape(%8, %9) : f32[2,n,2]
  return %10 "y"
})",
           R"(graph @"g"(%0: f32[2,n,3]) {
  %1 = layer_norm(%0) {axis = -1} : f32[2,n,3]
  %2 = constant f32[3,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  %3 = dot(%1, %2) : f32[2,n,2]
  %4 = constant f32[2] {1.0, 2.0}
  %5 = add(%3, %4) : f32[2,n,2]
  %6 = relu(%5) : f32[2,n,2]
  return %6 "y"
})",
           kRounding);
}

// The sum with the residual can follow the product.
TEST(Reshapes, BeforeAChainThatASumFollows) {
  rewrites("reshapes", R"(graph @"g"(%0: f32[2,2,2], %1: f32[1,2,3]) {
  %2 = constant i64[2] {2, 4}
  %3 = reshape(%0, %2) : f32[2,4]
  %4 = constant f32[4,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}
  %5 = dot(%3, %4) : f32[2,3]
  %6 = constant i64[3] {1, 2, 3}
  %7 = reshape(%5, %6) : f32[1,2,3]
  %8 = add(%7, %1) : f32[1,2,3]
  return %8 "y"
})",
           R"(graph @"g"(%0: f32[2,2,2], %1: f32[1,2,3]) {
  %2 = constant i64[3] {1, 2, 4}
  %3 = reshape(%0, %2) {zero_is_zero = 0} : f32[1,2,4]
  %4 = constant f32[4,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}
  %5 = dot(%3, %4) : f32[1,2,3]
  %6 = add(%5, %1) : f32[1,2,3]
  return %6 "y"
})",
           kRounding);
}

TEST(Reshapes, NotThroughWhatSeesTheAxes) {
  // A term for each row; a softmax over rows; a value read elsewhere.
  stays("reshapes", R"(graph @"g"(%0: f32[2,2,3]) {
  %1 = constant i64[2] {4, 3}
  %2 = reshape(%0, %1) : f32[4,3]
  %3 = constant f32[4,1] {1.0, 2.0, 3.0, 4.0}
  %4 = add(%2, %3) : f32[4,3]
  %5 = constant i64[3] {2, 2, 3}
  %6 = reshape(%4, %5) : f32[2,2,3]
  %7 = softmax(%2) {axis = 0} : f32[4,3]
  %8 = reshape(%7, %5) : f32[2,2,3]
  %9 = exp(%2) : f32[4,3]
  %10 = reshape(%9, %5) : f32[2,2,3]
  return %6 "a", %8 "b", %9 "c", %10 "d"
})");
}

TEST(Reshapes, NotWhereTwoSizesAreOpen) {
  stays("reshapes", R"(graph @"g"(%0: f32[n,m,6], %1: i64[3]) {
  %2 = constant i64[3] {-1, 2, 3}
  %3 = reshape(%0, %2) : f32[n*m,2,3]
  %4 = shape_of(%0) : i64[3]
  %5 = transpose(%0) {perm = [1, 0, 2]} : f32[m,n,6]
  %6 = reshape(%5, %4) : f32[n,m,6]
  return %3 "y", %6 "z"
})");
}

}  // namespace
}  // namespace tessera::passes::check
