#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Pad, IntoConvolution) {
  rewrites("pad", R"(graph @"g"(%0: f32[n,1,h,5]) {
  %1 = constant i64[4] {1, 2, 3, 4}
  %2 = constant i64[2] {-1, 2}
  %3 = constant f32[] {0.0}
  %4 = pad(%0, %1, %3, %2) : f32[n,1,h + 6,9]
  %5 = constant f32[1,1,2,2] {1.0, 2.0, 3.0, 4.0}
  %6 = conv(%4, %5) {pads_begin = [1, 0], pads_end = [0, 1], strides = [2, 1]} : f32[n,1,floordiv(h + 5, 2) + 1,9]
  return %6 "y"
})",
           R"(graph @"g"(%0: f32[n,1,h,5]) {
  %1 = constant f32[1,1,2,2] {1.0, 2.0, 3.0, 4.0}
  %2 = conv(%0, %1) {pads_begin = [3, 1], pads_end = [4, 4], strides = [2, 1]} : f32[n,1,floordiv(h + 5, 2) + 1,9]
  return %2 "y"
})",
           kRounding);
}

TEST(Pad, IntoPooling) {
  rewrites("pad", R"(graph @"g"(%0: f32[2,1,4]) {
  %1 = constant i64[6] {0, 0, 1, 0, 0, 2}
  %2 = constant f32[] {-inf}
  %3 = pad(%0, %1, %2) : f32[2,1,7]
  %4 = max_pool(%3) {kernel = [3]} : f32[2,1,5]
  %5 = pad(%4, %1) : f32[2,1,8]
  %6 = average_pool(%5) {kernel = [3]} : f32[2,1,6]
  return %6 "y"
})",
           R"(graph @"g"(%0: f32[2,1,4]) {
  %1 = max_pool(%0) {kernel = [3], pads_begin = [1], pads_end = [2]} : f32[2,1,5]
  %2 = average_pool(%1) {count_include_pad = 1, kernel = [3], pads_begin = [1], pads_end = [2]} : f32[2,1,6]
  return %2 "y"
})");
}

TEST(Pad, PadsBecomeOne) {
  rewrites("pad", R"(graph @"g"(%0: f32[2,n]) {
  %1 = constant i64[4] {0, 1, 2, 0}
  %2 = pad(%0, %1) : f32[4,n + 1]
  %3 = constant i64[2] {3, 0}
  %4 = constant i64[1] {0}
  %5 = constant f32[] {0.0}
  %6 = pad(%2, %3, %5, %4) : f32[7,n + 1]
  return %6 "y"
})",
           R"(graph @"g"(%0: f32[2,n]) {
  %1 = constant i64[4] {3, 1, 2, 0}
  %2 = constant f32[] {0.0}
  %3 = pad(%0, %1, %2) : f32[7,n + 1]
  return %3 "y"
})");
}

constexpr std::string_view kConv = R"(graph @"g"(%0: f32[1,1,4]) {{
  %1 = constant i64[6] {}
  %2 = constant f32[] {}
  %3 = pad(%0, %1, %2) {} : f32[{}]
  %4 = constant f32[1,1,1] {{1.0}}
  %5 = conv(%3, %4) : f32[{}]
  return %5 "y"
}})";

std::string conv(std::string_view pads, std::string_view value, std::string_view attrs,
                 std::string_view shape) {
  return fmt::format(kConv, pads, value, attrs, shape, shape);
}

TEST(Pad, NotWithOtherValuesOrAxes) {
  stays("pad", conv("{0, 0, 1, 0, 0, 1}", "{1.0}", "", "1,1,6"), "pads with 1");
  stays("pad", conv("{1, 0, 0, 0, 0, 0}", "{0.0}", "", "2,1,4"), "pads batch or channels");
  stays("pad", conv("{0, 0, -1, 0, 0, 0}", "{0.0}", "", "1,1,3"), "crop");
  stays("pad", conv("{0, 0, 1, 0, 0, 0}", "{0.0}", "{mode = \"edge\"}", "1,1,5"),
        "do not pad with a constant");
}

TEST(Pad, NotZeroIntoMaximum) {
  stays("pad", R"(graph @"g"(%0: f32[1,1,4]) {
  %1 = constant i64[6] {0, 0, 1, 0, 0, 1}
  %2 = pad(%0, %1) : f32[1,1,6]
  %3 = max_pool(%2) {kernel = [3]} : f32[1,1,4]
  return %3 "y"
})",
        "may exceed the maximum");
}

TEST(Pad, NotWhereOwnPaddingDoesNotCount) {
  stays("pad", R"(graph @"g"(%0: f32[1,1,4]) {
  %1 = constant i64[6] {0, 0, 1, 0, 0, 1}
  %2 = pad(%0, %1) : f32[1,1,6]
  %3 = average_pool(%2) {kernel = [3], pads_begin = [1], pads_end = [1]} : f32[1,1,6]
  return %3 "y"
})",
        "does not count");
}

}  // namespace
}  // namespace tessera::passes::check
