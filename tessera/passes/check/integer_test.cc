#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Integer, Convolutions) {
  rewrites("integer", R"(graph @"g"(%0: u8[n,2,h,w]) {
  %1 = constant f32[] {0.5}
  %2 = constant u8[] {3}
  %3 = dequantize(%0, %1, %2) {to = dtype f32} : f32[n,2,h,w]
  %4 = constant i8[3,2,1,1] {1, -2, 3, 4, 5, -6}
  %5 = constant f32[3] {0.5, 1.0, 2.0}
  %6 = dequantize(%4, %5) {axis = 0, to = dtype f32} : f32[3,2,1,1]
  %7 = constant f32[3] {1.0, 2.0, 3.0}
  %8 = conv(%3, %6, %7) : f32[n,3,h,w]
  return %8 "y"
})",
           R"(graph @"g"(%0: u8[n,2,h,w]) {
  %1 = constant f32[] {0.5}
  %2 = constant u8[] {3}
  %3 = constant i8[3,2,1,1] {1, -2, 3, 4, 5, -6}
  %4 = constant f32[3] {0.5, 1.0, 2.0}
  %5 = constant f32[3] {1.0, 2.0, 3.0}
  %6 = constant i64[0] {}
  %7 = reshape(%2, %6) : u8[]
  %8 = conv_integer(%0, %3, %7) : i32[n,3,h,w]
  %9 = constant i64[0] {}
  %10 = reshape(%1, %9) : f32[]
  %11 = constant i64[3] {-1, 1, 1}
  %12 = reshape(%4, %11) : f32[3,1,1]
  %13 = mul(%10, %12) : f32[3,1,1]
  %14 = convert(%8) {to = dtype f32} : f32[n,3,h,w]
  %15 = mul(%14, %13) : f32[n,3,h,w]
  %16 = constant i64[3] {-1, 1, 1}
  %17 = reshape(%5, %16) : f32[3,1,1]
  %18 = add(%15, %17) : f32[n,3,h,w]
  return %18 "y"
})",
           kRounding);
}

TEST(Integer, RoundTrips) {
  rewrites("integer", R"(graph @"g"(%0: i8[n,2,3]) {
  %1 = constant f32[] {0.1}
  %2 = constant i8[] {-4}
  %3 = dequantize(%0, %1, %2) {to = dtype f32} : f32[n,2,3]
  %4 = transpose(%3) {perm = [0, 2, 1]} : f32[n,3,2]
  %5 = quantize(%4, %1, %2) {to = dtype i8} : i8[n,3,2]
  return %5 "y"
})",
           R"(graph @"g"(%0: i8[n,2,3]) {
  %1 = transpose(%0) {perm = [0, 2, 1]} : i8[n,3,2]
  return %1 "y"
})");
}

TEST(Integer, MaximaOfBytes) {
  rewrites("integer", R"(graph @"g"(%0: u8[n,2,7]) {
  %1 = constant f32[] {0.1}
  %2 = constant u8[] {4}
  %3 = dequantize(%0, %1, %2) {to = dtype f32} : f32[n,2,7]
  %4 = max_pool(%3) {kernel = [3]} : f32[n,2,5]
  %5 = quantize(%4, %1, %2) {to = dtype u8} : u8[n,2,5]
  return %5 "y"
})",
           R"(graph @"g"(%0: u8[n,2,7]) {
  %1 = max_pool(%0) {kernel = [3]} : u8[n,2,5]
  return %1 "y"
})");
}

TEST(Integer, StaysWhereScalesDiffer) {
  stays("integer", R"(graph @"g"(%0: u8[n,2]) {
  %1 = constant f32[2] {0.5, 0.25}
  %2 = dequantize(%0, %1) {axis = 1, to = dtype f32} : f32[n,2]
  %3 = constant i8[2,3] {1, -2, 3, 4, 5, -6}
  %4 = constant f32[] {0.5}
  %5 = dequantize(%3, %4) {to = dtype f32} : f32[2,3]
  %6 = dot(%2, %5) : f32[n,3]
  return %6 "y"
})",
        "the left side has several scales");
  stays("integer", R"(graph @"g"(%0: u8[n,2]) {
  %1 = constant f32[] {0.5}
  %2 = dequantize(%0, %1) {to = dtype f32} : f32[n,2]
  %3 = constant f32[] {0.25}
  %4 = quantize(%2, %3) {to = dtype u8} : u8[n,2]
  return %4 "y"
})");
}

}  // namespace
}  // namespace tessera::passes::check
