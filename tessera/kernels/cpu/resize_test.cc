#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

TEST(Resize, MatchesTheReference) {
  std::mt19937_64 random(1);
  int ran = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string mode = pick<std::string>(random, {"nearest", "linear", "cubic"});
    const DType dtype = mode == "nearest"
                            ? pick(random, {DType::kF32, DType::kU8, DType::kF16, DType::kI64})
                            : DType::kF32;
    Dims x{size_between(random, 1, 2), size_between(random, 1, 3), size_between(random, 1, 20),
           size_between(random, 1, 30)};
    Dims y = x;
    const bool channels_last = i % 4 == 0;
    for (size_t a : channels_last ? std::vector<size_t>{1, 2} : std::vector<size_t>{2, 3})
      y[a] = size_between(random, 1, 50);
    Case c{.op = "resize",
           .attrs = {{"mode", mode},
                     {"coordinates",
                      pick<std::string>(random, {"half_pixel", "asymmetric", "align_corners",
                                                 "pytorch_half_pixel"})}}};
    if (mode == "nearest")
      c.attrs.set("nearest", pick<std::string>(random, {"round_prefer_floor", "floor", "ceil"}));
    c.in = {random_tensor(dtype, x, random), std::nullopt, std::nullopt, Tensor::of_i64(y)};
    ran += check(c, random, {.rel = 16, .abs = 32});
  }
  EXPECT_EQ(ran, 200);
}

TEST(Resize, ByScales) {
  std::mt19937_64 random(2);
  for (double scale : {2.0, 0.5, 1.7})
    for (const char* mode : {"nearest", "linear"}) {
      Case c{.op = "resize",
             .attrs = {{"mode", std::string(mode)}, {"scales", op::Floats{1, 1, scale, scale}}}};
      c.in = {random_tensor(DType::kF32, {1, 2, 17, 12}, random)};
      EXPECT_EQ(check(c, random, {.rel = 16, .abs = 32}), 1);
    }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
