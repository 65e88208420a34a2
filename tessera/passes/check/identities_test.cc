#include "tessera/passes/check/golden.h"

#include <gtest/gtest.h>

namespace tessera::passes::check {
namespace {

TEST(Identities, NeutralElements) {
  rewrites("identities", R"(graph @"g"(%0: f32[n,3], %1: bool[n]) {
  %2 = constant f32[] {0.0}
  %3 = constant f32[1] {1.0}
  %4 = constant f32[3] {-inf, -inf, -inf}
  %5 = constant bool[] {1}
  %6 = add(%2, %0) : f32[n,3]
  %7 = mul(%6, %3) : f32[n,3]
  %8 = div(%7, %3) : f32[n,3]
  %9 = max(%8, %4) : f32[n,3]
  %10 = sub(%9, %2) : f32[n,3]
  %11 = exp(%10) : f32[n,3]
  %12 = and(%1, %5) : bool[n]
  %13 = not(%12) : bool[n]
  return %11 "y", %13 "z"
})",
           R"(graph @"g"(%0: f32[n,3], %1: bool[n]) {
  %2 = exp(%0) : f32[n,3]
  %3 = not(%1) : bool[n]
  return %2 "y", %3 "z"
})");
}

TEST(Identities, WhatMovesNothing) {
  rewrites("identities", R"(graph @"g"(%0: f32[n,4]) {
  %1 = constant i64[2] {-1, 4}
  %2 = reshape(%0, %1) : f32[n,4]
  %3 = transpose(%2) {perm = [0, 1]} : f32[n,4]
  %4 = constant i64[1] {0}
  %5 = constant i64[1] {9223372036854775807}
  %6 = slice(%3, %4, %5, %4) : f32[n,4]
  %7 = constant i64[4] {0, 0, 0, 0}
  %8 = pad(%6, %7) : f32[n,4]
  %9 = constant i64[2] {1, 1}
  %10 = broadcast_to(%8, %9) : f32[n,4]
  %11 = tile(%10, %9) : f32[n,4]
  %12 = convert(%11) {to = dtype f32} : f32[n,4]
  %13 = concat(%12) {axis = 0} : f32[n,4]
  %14 = identity(%13) : f32[n,4]
  %15 = tanh(%14) : f32[n,4]
  return %15 "y"
})",
           R"(graph @"g"(%0: f32[n,4]) {
  %1 = tanh(%0) : f32[n,4]
  return %1 "y"
})");
}

TEST(Identities, ThereAndBack) {
  rewrites("identities", R"(graph @"g"(%0: f16[5], %1: bool[3]) {
  %2 = convert(%0) {to = dtype f32} : f32[5]
  %3 = convert(%2) {to = dtype f16} : f16[5]
  %4 = neg(%3) : f16[5]
  %5 = neg(%4) : f16[5]
  %6 = abs(%5) : f16[5]
  %7 = not(%1) : bool[3]
  %8 = not(%7) : bool[3]
  return %6 "y", %8 "z"
})",
           R"(graph @"g"(%0: f16[5], %1: bool[3]) {
  %2 = abs(%0) : f16[5]
  return %2 "y", %1 "z"
})");
}

TEST(Identities, ConstantChoiceAndEmptyParts) {
  rewrites("identities", R"(graph @"g"(%0: f32[2,3], %1: f32[0,3]) {
  %2 = constant bool[2,1] {1, 1}
  %3 = constant f32[] {5.0}
  %4 = select(%2, %0, %3) : f32[2,3]
  %5 = concat(%4, %1, %4) {axis = 0} : f32[4,3]
  return %5 "y"
})",
           R"(graph @"g"(%0: f32[2,3], %1: f32[0,3]) {
  %2 = concat(%0, %0) {axis = 0} : f32[4,3]
  return %2 "y"
})");
}

TEST(Identities, NotWhereTheShapeChanges) {
  stays("identities", R"(graph @"g"(%0: f32[3], %1: f32[2,1]) {
  %2 = constant f32[2,1] {0.0, 0.0}
  %3 = add(%0, %2) : f32[2,3]
  %4 = constant i64[2] {2, 3}
  %5 = broadcast_to(%1, %4) : f32[2,3]
  return %3 "y", %5 "z"
})");
}

TEST(Identities, NotWhereElementsMove) {
  stays("identities", R"(graph @"g"(%0: f32[3,3], %1: f32[4]) {
  %2 = transpose(%0) {perm = [1, 0]} : f32[3,3]
  %3 = constant i64[1] {-1}
  %4 = constant i64[1] {-9}
  %5 = constant i64[1] {0}
  %6 = slice(%1, %3, %4, %5, %3) : f32[4]
  %7 = constant i64[2] {1, -1}
  %8 = pad(%1, %7) : f32[4]
  return %2 "x", %6 "y", %8 "z"
})");
}

TEST(Identities, NotWhereTheRankIsUnknown) {
  stays("identities", R"(graph @"g"(%0: f32[3], %1: i64[k]) {
  %2 = reshape(%0, %1) : f32[*]
  %3 = constant i64[1] {0}
  %4 = unsqueeze(%2, %3) : f32[*]
  return %4 "y"
})");
}

TEST(Identities, NotThroughANarrowerType) {
  stays("identities", R"(graph @"g"(%0: f32[5]) {
  %1 = convert(%0) {to = dtype f16} : f16[5]
  %2 = convert(%1) {to = dtype f32} : f32[5]
  return %2 "y"
})");
}

}  // namespace
}  // namespace tessera::passes::check
