#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

TEST(ConvTranspose, MatchesTheReference) {
  std::mt19937_64 random(1);
  int ran = 0;
  for (int i = 0; i < 200; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 3));
    const int64_t groups = pick<int64_t>(random, {1, 1, 2, 3}),
                  c = pick<int64_t>(random, {1, 2, 5, 130}), m = pick<int64_t>(random, {1, 3, 7});
    Dims x{size_between(random, 1, 2), groups * c}, w{groups * c, m};
    op::Ints strides, dilations, begin, end, extra;
    for (int a = 0; a < axes; ++a) {
      w.push_back(size_between(random, 1, 3));
      x.push_back(size_between(random, 1, axes == 1 ? 300 : axes == 2 ? 18 : 5));
      strides.push_back(size_between(random, 1, 3));
      dilations.push_back(pick<int64_t>(random, {1, 1, 2}));
      begin.push_back(size_between(random, 0, 1));
      end.push_back(size_between(random, 0, 1));
      extra.push_back(size_between(random, 0, strides.back() - 1));
    }
    Case k{.op = "conv_transpose",
           .attrs = {{"strides", strides},
                     {"dilations", dilations},
                     {"pads_begin", begin},
                     {"pads_end", end},
                     {"groups", groups},
                     {"output_padding", extra}}};
    k.in = {random_tensor(DType::kF32, x, random), random_tensor(DType::kF32, w, random)};
    if (random() % 2) k.in.push_back(random_tensor(DType::kF32, {groups * m}, random));
    k.constant = {false, random() % 2 == 0};
    ran += check(k, random, {.products = c * 27});
  }
  EXPECT_GE(ran, 180);
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
