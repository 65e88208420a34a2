#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(BatchNorm, BecomesProductAndSum) {
  rewrites("batch_norm", R"(graph @"g"(%0: f32[n,2,h,w]) {
  %1 = constant f32[2] {2.0, 3.0}
  %2 = constant f32[2] {0.5, -1.0}
  %3 = constant f32[2] {1.0, 4.0}
  %4 = constant f32[2] {3.75, 0.0}
  %5 = batch_norm(%0, %1, %2, %3, %4) {epsilon = 0.25} : f32[n,2,h,w]
  return %5 "y"
})",
           R"(graph @"g"(%0: f32[n,2,h,w]) {
  %1 = constant f32[2,1,1] {1.0, 6.0}
  %2 = mul(%0, %1) : f32[n,2,h,w]
  %3 = constant f32[2,1,1] {-0.5, -25.0}
  %4 = add(%2, %3) : f32[n,2,h,w]
  return %4 "y"
})",
           kRounding);
}

TEST(BatchNorm, NotByUnknownStatisticsOrWithoutVariance) {
  stays("batch_norm", R"(graph @"g"(%0: f32[n,2], %1: f32[2]) {
  %2 = constant f32[2] {1.0, 1.0}
  %3 = batch_norm(%0, %2, %2, %1, %2) : f32[n,2]
  return %3 "y"
})",
        "no constants");
  stays("batch_norm", R"(graph @"g"(%0: f32[n,1]) {
  %1 = constant f32[1] {0.0}
  %2 = constant f32[1] {1.0}
  %3 = batch_norm(%0, %2, %2, %2, %1) {epsilon = 0.0} : f32[n,1]
  return %3 "y"
})",
        "the factor of channel 0 is inf");
}

}  // namespace
}  // namespace tessera::passes::check
