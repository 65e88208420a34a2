#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

struct Geometry {
  int axes;
  int64_t groups, c, m;  // channels of a group
};

// A random convolution whose kernel fits; `most` bounds the spatial sizes.
Case random_conv(std::mt19937_64& random, const Geometry& g, int64_t most) {
  Dims x{size_between(random, 1, 2), g.groups * g.c}, w{g.groups * g.m, g.c};
  op::Ints strides, dilations, begin, end;
  for (int a = 0; a < g.axes; ++a) {
    const int64_t kernel = pick<int64_t>(random, {1, 1, 2, 3, 3, 5}),
                  dilation = pick<int64_t>(random, {1, 1, 1, 2, 3});
    strides.push_back(pick<int64_t>(random, {1, 1, 2, 3}));
    dilations.push_back(dilation);
    begin.push_back(size_between(random, 0, 2));
    end.push_back(size_between(random, 0, 2));
    w.push_back(kernel);
    x.push_back(std::max(size_between(random, 1, most), (kernel - 1) * dilation + 1));
  }
  Case c{.op = "conv",
         .attrs = {{"strides", strides}, {"dilations", dilations}, {"groups", g.groups}}};
  if (random() % 4 == 0)
    c.attrs.set("auto_pad", std::string(random() % 2 ? "same_upper" : "same_lower"));
  else {
    c.attrs.set("pads_begin", begin);
    c.attrs.set("pads_end", end);
  }
  c.in = {random_tensor(DType::kF32, x, random), random_tensor(DType::kF32, w, random)};
  if (random() % 2) c.in.push_back(random_tensor(DType::kF32, {w[0]}, random));
  c.constant = {false, random() % 2 == 0, true};
  return c;
}

int64_t products(const Case& c) {
  return c.in[1]->count() / std::max<int64_t>(c.in[1]->dim(0), 1) + 1;
}

TEST(Conv, MatchesTheReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const Geometry g{static_cast<int>(size_between(random, 1, 3)),
                     pick<int64_t>(random, {1, 1, 2, 3}), pick<int64_t>(random, {1, 2, 5, 33}),
                     pick<int64_t>(random, {1, 4, 12, 13, 26})};
    const Case c = random_conv(random, g, g.axes == 1 ? 70 : g.axes == 2 ? 20 : 7);
    EXPECT_GE(check(c, random, {.products = products(c)}), 1);
  }
}

TEST(Conv, Pointwise) {
  std::mt19937_64 random(2);
  for (const Dims& x :
       {Dims{2, 129, 7, 7}, Dims{1, 16, 1, 1}, Dims{1, 5, 33, 33}, Dims{1, 3, 17, 31}})
    for (int64_t m : {1, 12, 37, 400}) {
      Case c{.op = "conv",
             .in = {random_tensor(DType::kF32, x, random),
                    random_tensor(DType::kF32, {m, x[1], 1, 1}, random)},
             .constant = {false, m != 37}};
      EXPECT_GE(check(c, random, {.products = x[1]}), 1);
    }
}

TEST(Conv, Depthwise) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 150; ++i) {
    const Geometry g{static_cast<int>(size_between(random, 1, 2)),
                     pick<int64_t>(random, {1, 3, 17}), 1, pick<int64_t>(random, {1, 1, 2})};
    const Case c = random_conv(random, g, g.axes == 1 ? 300 : 70);
    EXPECT_EQ(check(c, random, {.products = products(c)}), 2);
  }
  // Planes of several bands.
  for (int64_t stride : {1, 2}) {
    Case c{.op = "conv",
           .attrs = {{"strides", op::Ints{stride, stride}},
                     {"pads_begin", op::Ints{1, 1}},
                     {"pads_end", op::Ints{1, 1}},
                     {"groups", int64_t{2}}}};
    c.in = {random_tensor(DType::kF32, {1, 2, 131, 200}, random),
            random_tensor(DType::kF32, {2, 1, 3, 3}, random)};
    EXPECT_EQ(check(c, random, {.products = 9}), 2);
  }
}

TEST(Conv, EmptyAndPropagating) {
  std::mt19937_64 random(4);
  for (const Dims& x : {Dims{0, 3, 4, 4}, Dims{1, 3, 0, 4}}) {
    Case c{.op = "conv", .attrs = {{"pads_begin", op::Ints{1, 1}}, {"pads_end", op::Ints{2, 1}}}};
    c.in = {random_tensor(DType::kF32, x, random), random_tensor(DType::kF32, {5, 3, 3, 3}, random),
            random_tensor(DType::kF32, {5}, random)};
    check(c, random, {.products = 27});
  }
  Case nan = random_conv(random, {2, 1, 3, 4}, 20);
  nan.in[0] = random_tensor(DType::kF32, nan.in[0]->dims(), random, {.special = true});
  check(nan, random, {.rel = 1e30});
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
