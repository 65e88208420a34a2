#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

constexpr Tolerance kSums{1e-5};

// As torch spells it: a scale behind the product, a mask, the keys transposed.
TEST(Attention, Masked) {
  rewrites("attention",
           R"(graph @"g"(%0: f32[b,2,s,4], %1: f32[b,2,t,4], %2: f32[b,2,t,3], %3: f32[b,1,1,t]) {
  %4 = transpose(%1) {perm = [0, 1, 3, 2]} : f32[b,2,4,t]
  %5 = dot(%0, %4) : f32[b,2,s,t]
  %6 = constant f32[] {0.5}
  %7 = mul(%5, %6) : f32[b,2,s,t]
  %8 = add(%7, %3) : f32[b,2,s,t]
  %9 = softmax(%8) {axis = -1} : f32[b,2,s,t]
  %10 = dot(%9, %2) : f32[b,2,s,3]
  return %10 "y"
})",
           R"(graph @"g"(%0: f32[b,2,s,4], %1: f32[b,2,t,4], %2: f32[b,2,t,3], %3: f32[b,1,1,t]) {
  %4 = attention(%0, %1, %2, %3) {causal = 0, scale = 0.5} : f32[b,2,s,3]
  return %4 "y"
})",
           kSums);
}

// Scales on both sides, behind views.
TEST(Attention, ScalesOfQueriesAndKeys) {
  rewrites("attention",
           R"(graph @"g"(%0: f32[b,s,2,4], %1: f32[b,2,t,4], %2: f32[b,2,t,3]) {
  %3 = constant f32[] {0.5}
  %4 = mul(%0, %3) : f32[b,s,2,4]
  %5 = transpose(%4) {perm = [0, 2, 1, 3]} : f32[b,2,s,4]
  %6 = constant f32[1] {4.0}
  %7 = div(%1, %6) : f32[b,2,t,4]
  %8 = dot(%5, %7) {transpose_b = 1} : f32[b,2,s,t]
  %9 = softmax(%8) {axis = 3} : f32[b,2,s,t]
  %10 = dot(%9, %2) : f32[b,2,s,3]
  return %10 "y"
})",
           R"(graph @"g"(%0: f32[b,s,2,4], %1: f32[b,2,t,4], %2: f32[b,2,t,3]) {
  %3 = transpose(%0) {perm = [0, 2, 1, 3]} : f32[b,2,s,4]
  %4 = attention(%3, %1, %2) {causal = 0, scale = 0.125} : f32[b,2,s,3]
  return %4 "y"
})",
           kSums);
}

TEST(Attention, CausalByConstant) {
  rewrites("attention", R"(graph @"g"(%0: f32[b,3,4], %1: f32[b,3,4], %2: f32[b,3,4]) {
  %3 = dot(%0, %1) {transpose_b = 1} : f32[b,3,3]
  %4 = constant f32[3,3] {0.0, -inf, -inf, 0.0, 0.0, -3.4028234663852886e+38, 0.0, 0.0, 0.0}
  %5 = add(%4, %3) : f32[b,3,3]
  %6 = softmax(%5) : f32[b,3,3]
  %7 = dot(%6, %2) : f32[b,3,4]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[b,3,4], %1: f32[b,3,4], %2: f32[b,3,4]) {
  %3 = constant i64[4] {1, -1, 3, 4}
  %4 = reshape(%0, %3) {zero_is_zero = 0} : f32[1,b,3,4]
  %5 = constant i64[4] {1, -1, 3, 4}
  %6 = reshape(%1, %5) {zero_is_zero = 0} : f32[1,b,3,4]
  %7 = constant i64[4] {1, -1, 3, 4}
  %8 = reshape(%2, %7) {zero_is_zero = 0} : f32[1,b,3,4]
  %9 = attention(%4, %6, %8) {causal = 1, scale = 1.0} : f32[1,b,3,4]
  %10 = constant i64[3] {-1, 3, 4}
  %11 = reshape(%9, %10) {zero_is_zero = 0} : f32[b,3,4]
  return %11 "y"
})",
           kSums);
}

// The mask of a decoder, from ranges: query i is at place i, and sees keys up to it.
TEST(Attention, CausalByPositions) {
  rewrites("attention", R"(graph @"g"(%0: f32[1,2,s,4], %1: f32[1,2,s,4], %2: f32[1,2,s,4]) {
  %3 = constant i64[] {0}
  %4 = constant i64[] {1}
  %5 = shape_of(%0) : i64[4]
  %6 = constant i64[] {2}
  %7 = gather(%5, %6) {axis = 0} : i64[]
  %8 = range(%3, %7, %4) : i64[s]
  %9 = constant i64[1] {1}
  %10 = unsqueeze(%8, %9) : i64[s,1]
  %11 = le(%8, %10) : bool[s,s]
  %12 = constant f32[] {0.0}
  %13 = constant f32[] {-3.4028234663852886e+38}
  %14 = select(%11, %12, %13) : f32[s,s]
  %15 = dot(%0, %1) {transpose_b = 1} : f32[1,2,s,s]
  %16 = add(%15, %14) : f32[1,2,s,s]
  %17 = softmax(%16) : f32[1,2,s,s]
  %18 = dot(%17, %2) : f32[1,2,s,4]
  return %18 "y"
})",
           R"(graph @"g"(%0: f32[1,2,s,4], %1: f32[1,2,s,4], %2: f32[1,2,s,4]) {
  %3 = attention(%0, %1, %2) {causal = 1, scale = 1.0} : f32[1,2,s,4]
  return %3 "y"
})",
           kSums);
}

// One query behind a past sees all keys.
TEST(Attention, OneQueryBehindAPast) {
  rewrites("attention",
           R"(graph @"g"(%0: f32[1,2,1,4], %1: f32[1,2,p + 1,4], %2: f32[1,2,p + 1,4], %3: f32[p]) {
  %4 = constant i64[] {0}
  %5 = constant i64[] {1}
  %6 = shape_of(%3) : i64[1]
  %7 = gather(%6, %4) {axis = 0} : i64[]
  %8 = add(%7, %5) : i64[]
  %9 = range(%4, %8, %5) : i64[p + 1]
  %10 = le(%9, %7) : bool[p + 1]
  %11 = dot(%0, %1) {transpose_b = 1} : f32[1,2,1,p + 1]
  %12 = constant f32[] {-inf}
  %13 = select(%10, %11, %12) : f32[1,2,1,p + 1]
  %14 = softmax(%13) : f32[1,2,1,p + 1]
  %15 = dot(%14, %2) : f32[1,2,1,4]
  return %15 "y"
})",
           R"(graph @"g"(%0: f32[1,2,1,4], %1: f32[1,2,p + 1,4], %2: f32[1,2,p + 1,4], %3: f32[p]) {
  %4 = attention(%0, %1, %2) {causal = 0, scale = 1.0} : f32[1,2,1,4]
  return %4 "y"
})",
           kSums);
}

// Several queries behind a past: query i sees it, and new keys up to i.
TEST(Attention, CausalBehindAPast) {
  rewrites(
      "attention",
      R"(graph @"g"(%0: f32[1,2,s,4], %1: f32[1,2,p,4], %2: f32[1,2,s,4], %3: f32[1,2,p,4], %4: f32[1,2,s,4]) {
  %5 = concat(%1, %2) {axis = 2} : f32[1,2,p + s,4]
  %6 = concat(%3, %4) {axis = 2} : f32[1,2,p + s,4]
  %7 = constant i64[] {0}
  %8 = constant i64[] {1}
  %9 = constant i64[] {2}
  %10 = shape_of(%1) : i64[4]
  %11 = gather(%10, %9) {axis = 0} : i64[]
  %12 = shape_of(%5) : i64[4]
  %13 = gather(%12, %9) {axis = 0} : i64[]
  %14 = range(%7, %13, %8) : i64[p + s]
  %15 = range(%11, %13, %8) : i64[s]
  %16 = constant i64[1] {1}
  %17 = unsqueeze(%15, %16) : i64[s,1]
  %18 = le(%14, %17) : bool[s,p + s]
  %19 = transpose(%5) {perm = [0, 1, 3, 2]} : f32[1,2,4,p + s]
  %20 = dot(%0, %19) : f32[1,2,s,p + s]
  %21 = constant f32[] {-inf}
  %22 = select(%18, %20, %21) : f32[1,2,s,p + s]
  %23 = softmax(%22) : f32[1,2,s,p + s]
  %24 = dot(%23, %6) : f32[1,2,s,4]
  return %24 "y"
})",
      R"(graph @"g"(%0: f32[1,2,s,4], %1: f32[1,2,p,4], %2: f32[1,2,s,4], %3: f32[1,2,p,4], %4: f32[1,2,s,4]) {
  %5 = attention(%0, %2, %4, _, %1, %3) {causal = 1, scale = 1.0} : f32[1,2,s,4]
  return %5 "y"
})",
      kSums);
}

TEST(Attention, ByCondition) {
  rewrites("attention",
           R"(graph @"g"(%0: f32[1,2,3,4], %1: f32[1,2,3,4], %2: f32[1,2,3,4], %3: bool[1,1,3,3]) {
  %4 = dot(%0, %1) {transpose_b = 1} : f32[1,2,3,3]
  %5 = constant f32[] {-inf}
  %6 = select(%3, %5, %4) : f32[1,2,3,3]
  %7 = softmax(%6) : f32[1,2,3,3]
  %8 = dot(%7, %2) : f32[1,2,3,4]
  return %8 "y"
})",
           R"(graph @"g"(%0: f32[1,2,3,4], %1: f32[1,2,3,4], %2: f32[1,2,3,4], %3: bool[1,1,3,3]) {
  %4 = not(%3) : bool[1,1,3,3]
  %5 = attention(%0, %1, %2, %4) {causal = 0, scale = 1.0} : f32[1,2,3,4]
  return %5 "y"
})",
           kSums);
}

// Two constant masks become one, larger than each; a cap in front of them.
TEST(Attention, MasksAndCap) {
  rewrites("attention", R"(graph @"g"(%0: f32[2,2,1,4], %1: f32[2,2,2,4], %2: f32[2,2,2,4]) {
  %3 = dot(%0, %1) {transpose_b = 1} : f32[2,2,1,2]
  %4 = constant f32[] {0.25}
  %5 = mul(%3, %4) : f32[2,2,1,2]
  %6 = constant f32[] {8.0}
  %7 = div(%5, %6) : f32[2,2,1,2]
  %8 = tanh(%7) : f32[2,2,1,2]
  %9 = mul(%8, %6) : f32[2,2,1,2]
  %10 = constant f32[1,2,1,2] {1.0, 2.0, 3.0, 4.0}
  %11 = add(%9, %10) : f32[2,2,1,2]
  %12 = constant f32[2,1,1,2] {10.0, 20.0, 30.0, -inf}
  %13 = add(%12, %11) : f32[2,2,1,2]
  %14 = softmax(%13) : f32[2,2,1,2]
  %15 = dot(%14, %2) : f32[2,2,1,4]
  return %15 "y"
})",
           R"(graph @"g"(%0: f32[2,2,1,4], %1: f32[2,2,2,4], %2: f32[2,2,2,4]) {
  %3 = constant f32[2,2,1,2] {11.0, 22.0, 13.0, 24.0, 31.0, -inf, 33.0, -inf}
  %4 = attention(%0, %1, %2, %3) {causal = 0, scale = 0.25, softcap = 8.0} : f32[2,2,1,4]
  return %4 "y"
})",
           kSums);
}

// Keys and values of 2 heads for 6 heads of queries.
TEST(Attention, Grouped) {
  rewrites("attention", R"(graph @"g"(%0: f32[b,6,s,4], %1: f32[b,2,t,4], %2: f32[b,2,t,3]) {
  %3 = constant i64[1] {2}
  %4 = unsqueeze(%1, %3) : f32[b,2,1,t,4]
  %5 = constant i64[5] {1, 1, 3, 1, 1}
  %6 = broadcast_to(%4, %5) : f32[b,2,3,t,4]
  %7 = constant i64[4] {0, 6, -1, 4}
  %8 = reshape(%6, %7) : f32[b,6,t,4]
  %9 = unsqueeze(%2, %3) : f32[b,2,1,t,3]
  %10 = broadcast_to(%9, %5) : f32[b,2,3,t,3]
  %11 = constant i64[4] {0, 6, -1, 3}
  %12 = reshape(%10, %11) : f32[b,6,t,3]
  %13 = transpose(%8) {perm = [0, 1, 3, 2]} : f32[b,6,4,t]
  %14 = dot(%0, %13) : f32[b,6,s,t]
  %15 = softmax(%14) : f32[b,6,s,t]
  %16 = dot(%15, %12) : f32[b,6,s,3]
  return %16 "y"
})",
           R"(graph @"g"(%0: f32[b,6,s,4], %1: f32[b,2,t,4], %2: f32[b,2,t,3]) {
  %3 = attention(%0, %1, %2) {causal = 0, scale = 1.0} : f32[b,6,s,3]
  return %3 "y"
})",
           kSums);
}

constexpr std::string_view kText =
    R"(graph @"g"(%0: f32[1,2,3,4], %1: f32[1,2,3,4], %2: f32[1,2,3,4], %3: f32[1,2,3,1], %4: bool[3,3]) {{
  %5 = dot(%0, %1) {{transpose_b = 1}} : f32[1,2,3,3]
  {}
  %7 = softmax(%6) : f32[1,2,3,3]
  %8 = dot(%7, %2) : f32[1,2,3,4]
  return %8 "y"{}
}})";

TEST(Attention, NotWhereSomethingIsReadElsewhere) {
  stays("attention", fmt::format(kText, "%6 = relu(%5) : f32[1,2,3,3]", ""));
  stays("attention",
        fmt::format(kText, "%9 = constant f32[] {2.0}\n  %6 = mul(%5, %9) : f32[1,2,3,3]",
                    ", %7 \"p\""),
        "the probabilities are read elsewhere");
  stays("attention",
        fmt::format(kText, "%9 = constant f32[] {2.0}\n  %6 = mul(%5, %9) : f32[1,2,3,3]",
                    ", %5 \"s\""),
        "the scores are read elsewhere");
}

// A mask of one column would hide the others.
TEST(Attention, NotByAMaskOfOneColumn) {
  stays("attention", fmt::format(kText, "%6 = add(%5, %3) : f32[1,2,3,3]", ""), "need 3 columns");
}

// Where all keys of a query are hidden, a number yields their mean and -inf NaN.
TEST(Attention, NotHiddenByANumber) {
  stays("attention",
        fmt::format(kText, "%9 = constant f32[] {-1e9}\n  %6 = select(%4, %5, %9) : f32[1,2,3,3]",
                    ""),
        "hides by -1000000000, need -inf");
}

// What lies below the diagonal by 2, or hides by too little.
TEST(Attention, MasksThatAreAlmostCausalStay) {
  rewrites("attention", R"(graph @"g"(%0: f32[1,1,2,4], %1: f32[1,1,2,4], %2: f32[1,1,2,4]) {
  %3 = dot(%0, %1) {transpose_b = 1} : f32[1,1,2,2]
  %4 = constant f32[2,2] {0.0, -10000.0, 0.0, 0.0}
  %5 = add(%3, %4) : f32[1,1,2,2]
  %6 = softmax(%5) : f32[1,1,2,2]
  %7 = dot(%6, %2) : f32[1,1,2,4]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[1,1,2,4], %1: f32[1,1,2,4], %2: f32[1,1,2,4]) {
  %3 = constant f32[2,2] {0.0, -10000.0, 0.0, 0.0}
  %4 = attention(%0, %1, %2, %3) {causal = 0, scale = 1.0} : f32[1,1,2,4]
  return %4 "y"
})",
           kSums);
}

}  // namespace
}  // namespace tessera::passes::check
