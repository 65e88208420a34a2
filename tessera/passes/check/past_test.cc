#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

constexpr Tolerance kSums{1e-5};

TEST(Past, OfKeysAndValues) {
  rewrites(
      "past",
      R"(graph @"g"(%0: f32[1,2,3,4], %1: f32[1,2,p,4], %2: f32[1,2,s,4], %3: f32[1,2,p,5], %4: f32[1,2,s,5]) {
  %5 = concat(%1, %2) {axis = 2} : f32[1,2,p + s,4]
  %6 = concat(%3, %4) {axis = -2} : f32[1,2,p + s,5]
  %7 = attention(%0, %5, %6) {scale = 0.5} : f32[1,2,3,5]
  return %7 "y"
})",
      R"(graph @"g"(%0: f32[1,2,3,4], %1: f32[1,2,p,4], %2: f32[1,2,s,4], %3: f32[1,2,p,5], %4: f32[1,2,s,5]) {
  %5 = attention(%0, %2, %4, _, %1, %3) {scale = 0.5} : f32[1,2,3,5]
  return %5 "y"
})",
      kSums);
}

// The new cache is put together before the attention, and needs not be.
TEST(Past, YieldsWhatIsReadElsewhere) {
  rewrites(
      "past",
      R"(graph @"g"(%0: f32[1,2,1,4], %1: f32[1,2,p,4], %2: f32[1,2,1,4], %3: f32[1,2,p,4], %4: f32[1,2,1,4]) {
  %5 = concat(%1, %2) {axis = 2} : f32[1,2,p + 1,4]
  %6 = concat(%3, %4) {axis = 2} : f32[1,2,p + 1,4]
  %7 = concat(%5, %6) {axis = 0} : f32[2,2,p + 1,4]
  %8 = attention(%0, %5, %6) : f32[1,2,1,4]
  return %8 "y", %7 "cache", %6 "values"
})",
      R"(graph @"g"(%0: f32[1,2,1,4], %1: f32[1,2,p,4], %2: f32[1,2,1,4], %3: f32[1,2,p,4], %4: f32[1,2,1,4]) {
  %5, %6, %7 = attention(%0, %2, %4, _, %1, %3) : f32[1,2,1,4], f32[1,2,p + 1,4], f32[1,2,p + 1,4]
  %8 = concat(%6, %7) {axis = 0} : f32[2,2,p + 1,4]
  return %5 "y", %8 "cache", %7 "values"
})",
      kSums);
}

// Queries that follow from the joined keys: these are made first.
TEST(Past, StaysWhereTheQueriesNeedIt) {
  rewrites("past",
           R"(graph @"g"(%0: f32[1,2,3,4], %1: f32[1,2,p,4], %2: f32[1,2,1,4]) {
  %3 = concat(%1, %2) {axis = 2} : f32[1,2,p + 1,4]
  %4 = neg(%3) : f32[1,2,p + 1,4]
  %5 = attention(%4, %3, %3) : f32[1,2,p + 1,4]
  return %5 "y"
})",
           R"(graph @"g"(%0: f32[1,2,3,4], %1: f32[1,2,p,4], %2: f32[1,2,1,4]) {
  %3 = concat(%1, %2) {axis = 2} : f32[1,2,p + 1,4]
  %4 = neg(%3) : f32[1,2,p + 1,4]
  %5 = attention(%4, %2, %2, _, %1, %1) : f32[1,2,p + 1,4]
  return %5 "y"
})",
           kSums);
}

TEST(Past, NotOfCausalAttention) {
  stays("past",
        R"(graph @"g"(%0: f32[1,2,s,4], %1: f32[1,2,p,4], %2: f32[1,2,s,4]) {
  %3 = concat(%1, %2) {axis = 2} : f32[1,2,p + s,4]
  %4 = attention(%0, %3, %3) {causal = 1} : f32[1,2,s,4]
  return %4 "y"
})");
}

}  // namespace
}  // namespace tessera::passes::check
