#include <gtest/gtest.h>

#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

TEST(Softmax, Spelled) {
  rewrites("softmax", R"(graph @"g"(%0: f32[n,3,m]) {
  %1 = constant i64[1] {-2}
  %2 = reduce(%0, %1) {keepdims = 1, kind = "max"} : f32[n,1,m]
  %3 = sub(%0, %2) : f32[n,3,m]
  %4 = exp(%3) : f32[n,3,m]
  %5 = constant i64[1] {1}
  %6 = reduce(%4, %5) {keepdims = 1, kind = "sum"} : f32[n,1,m]
  %7 = div(%4, %6) : f32[n,3,m]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[n,3,m]) {
  %1 = softmax(%0) {axis = 1} : f32[n,3,m]
  return %1 "y"
})");
}

TEST(Softmax, LogSpelled) {
  rewrites("softmax", R"(graph @"g"(%0: f32[n,3]) {
  %1 = constant i64[1] {1}
  %2 = reduce(%0, %1) {kind = "max"} : f32[n,1]
  %3 = sub(%0, %2) : f32[n,3]
  %4 = exp(%3) : f32[n,3]
  %5 = reduce(%4, %1) {kind = "sum"} : f32[n,1]
  %6 = log(%5) : f32[n,1]
  %7 = sub(%3, %6) : f32[n,3]
  return %7 "y"
})",
           R"(graph @"g"(%0: f32[n,3]) {
  %1 = log_softmax(%0) {axis = 1} : f32[n,3]
  return %1 "y"
})");
}

TEST(Softmax, NotOverOtherAxesNorWithoutShift) {
  constexpr std::string_view kText = R"(graph @"g"(%0: f32[2,3]) {{
  %1 = constant i64[1] {{{}}}
  %2 = reduce(%0, %1) {{kind = "max"}} : f32[{}]
  %3 = sub(%0, %2) : f32[2,3]
  %4 = exp(%{}) : f32[2,3]
  %5 = constant i64[1] {{1}}
  %6 = reduce(%4, %5) {{kind = "sum"}} : f32[2,1]
  %7 = div(%4, %6) : f32[2,3]
  return %7 "y", %3 "z"
}})";
  stays("softmax", fmt::format(kText, 0, "1,3", 3));
  stays("softmax", fmt::format(kText, 1, "2,1", 0));
}

}  // namespace
}  // namespace tessera::passes::check
