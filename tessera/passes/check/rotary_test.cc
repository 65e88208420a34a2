#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

// As exported from transformers: the tables repeat their halves because they are made so.
TEST(Rotary, RotateHalf) {
  constexpr std::string_view kText = R"(graph @"g"(%0: f32[2,3,s,4], %1: f32[1,1,s,2]) {{
  %2 = concat(%1, {}) {{axis = -1}} : f32[1,1,s,4]
  %3 = cos(%2) : f32[1,1,s,4]
  %4 = sin(%2) : f32[1,1,s,4]
  %5 = mul(%0, %3) : f32[2,3,s,4]
  %6 = constant i64[1] {{2}}
  %7 = constant i64[1] {{4}}
  %8 = constant i64[1] {{3}}
  %9 = slice(%0, %6, %7, %8) : f32[2,3,s,2]
  %10 = neg(%9) : f32[2,3,s,2]
  %11 = constant i64[1] {{0}}
  %12 = slice(%0, %11, %6, %8) : f32[2,3,s,2]
  %13 = concat(%10, %12) {{axis = 3}} : f32[2,3,s,4]
  %14 = mul(%13, %4) : f32[2,3,s,4]
  %15 = add(%5, %14) : f32[2,3,s,4]
  return %15 "y"
}})";
  rewrites("rotary", fmt::format(kText, "%1"),
           R"(graph @"g"(%0: f32[2,3,s,4], %1: f32[1,1,s,2]) {
  %2 = concat(%1, %1) {axis = -1} : f32[1,1,s,4]
  %3 = cos(%2) : f32[1,1,s,4]
  %4 = sin(%2) : f32[1,1,s,4]
  %5 = constant i64[1] {0}
  %6 = constant i64[1] {2}
  %7 = constant i64[1] {3}
  %8 = slice(%3, %5, %6, %7) : f32[1,1,s,2]
  %9 = constant i64[1] {1}
  %10 = squeeze(%8, %9) : f32[1,s,2]
  %11 = constant i64[1] {0}
  %12 = constant i64[1] {2}
  %13 = constant i64[1] {3}
  %14 = slice(%4, %11, %12, %13) : f32[1,1,s,2]
  %15 = constant i64[1] {1}
  %16 = squeeze(%14, %15) : f32[1,s,2]
  %17 = rotary(%0, %10, %16) : f32[2,3,s,4]
  return %17 "y"
})",
           kRounding);
}

// Halves that differ are another function.
TEST(Rotary, NotWhereTablesDoNotRepeat) {
  stays("rotary", R"(graph @"g"(%0: f32[2,3,5,4], %1: f32[5,4], %2: f32[5,4]) {
  %3 = mul(%0, %1) : f32[2,3,5,4]
  %4 = constant i64[1] {2}
  %5 = constant i64[1] {4}
  %6 = constant i64[1] {3}
  %7 = slice(%0, %4, %5, %6) : f32[2,3,5,2]
  %8 = neg(%7) : f32[2,3,5,2]
  %9 = constant i64[1] {0}
  %10 = slice(%0, %9, %4, %6) : f32[2,3,5,2]
  %11 = concat(%8, %10) {axis = 3} : f32[2,3,5,4]
  %12 = mul(%11, %2) : f32[2,3,5,4]
  %13 = add(%3, %12) : f32[2,3,5,4]
  return %13 "y"
})",
        "rotary: nothing shows that the halves of its tables are equal");
}

TEST(Rotary, ByHalves) {
  rewrites("rotary", R"(graph @"g"(%0: f32[2,3,5,4], %1: f32[5,2], %2: f32[5,2]) {
  %3 = constant i64[1] {0}
  %4 = constant i64[1] {2}
  %5 = constant i64[1] {4}
  %6 = constant i64[1] {3}
  %7 = slice(%0, %3, %4, %6) : f32[2,3,5,2]
  %8 = slice(%0, %4, %5, %6) : f32[2,3,5,2]
  %9 = mul(%7, %1) : f32[2,3,5,2]
  %10 = mul(%2, %8) : f32[2,3,5,2]
  %11 = sub(%9, %10) : f32[2,3,5,2]
  %12 = mul(%8, %1) : f32[2,3,5,2]
  %13 = mul(%7, %2) : f32[2,3,5,2]
  %14 = add(%12, %13) : f32[2,3,5,2]
  %15 = concat(%11, %14) {axis = -1} : f32[2,3,5,4]
  return %15 "y"
})",
           R"(graph @"g"(%0: f32[2,3,5,4], %1: f32[5,2], %2: f32[5,2]) {
  %3 = constant i64[1] {0}
  %4 = unsqueeze(%1, %3) : f32[1,5,2]
  %5 = constant i64[1] {0}
  %6 = unsqueeze(%2, %5) : f32[1,5,2]
  %7 = rotary(%0, %4, %6) : f32[2,3,5,4]
  return %7 "y"
})",
           kRounding);
}

TEST(Rotary, OfSomeChannels) {
  rewrites("rotary", R"(graph @"g"(%0: f32[2,3,5,6], %1: f32[1,5,2], %2: f32[1,5,2]) {
  %3 = constant i64[1] {0}
  %4 = constant i64[1] {4}
  %5 = constant i64[1] {6}
  %6 = constant i64[1] {3}
  %7 = slice(%0, %3, %4, %6) : f32[2,3,5,4]
  %8 = rotary(%7, %1, %2) : f32[2,3,5,4]
  %9 = slice(%0, %4, %5, %6) : f32[2,3,5,2]
  %10 = concat(%8, %9) {axis = 3} : f32[2,3,5,6]
  return %10 "y"
})",
           R"(graph @"g"(%0: f32[2,3,5,6], %1: f32[1,5,2], %2: f32[1,5,2]) {
  %3 = rotary(%0, %1, %2) {dim = 4} : f32[2,3,5,6]
  return %3 "y"
})",
           kRounding);
}

TEST(Rotary, PositionsAreGathered) {
  rewrites("rotary",
           R"(graph @"g"(%0: f32[2,3,2,4], %1: f32[7,2], %2: f32[7,2]) {
  %3 = constant i64[2,2] {0,3,6,1}
  %4 = rotary(%0, %1, %2, %3) : f32[2,3,2,4]
  return %4 "y"
})",
           R"(graph @"g"(%0: f32[2,3,2,4], %1: f32[7,2], %2: f32[7,2]) {
  %3 = constant i64[2,2] {0,3,6,1}
  %4 = gather(%1, %3) {axis = 0} : f32[2,2,2]
  %5 = gather(%2, %3) {axis = 0} : f32[2,2,2]
  %6 = rotary(%0, %4, %5) : f32[2,3,2,4]
  return %6 "y"
})",
           kRounding);
}

}  // namespace
}  // namespace tessera::passes::check
