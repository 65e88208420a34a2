#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

struct Geometry {
  int64_t batch, c, m;
  op::Ints in, strides;
};

Case conv_case(const Geometry& g, DType compute, std::mt19937_64& random) {
  Dims x{g.batch, g.c}, w{g.m, g.c};
  x.insert(x.end(), g.in.begin(), g.in.end());
  w.resize(x.size(), 1);
  Case c{.op = "conv", .attrs = {{"strides", g.strides}, {"compute", compute}}};
  c.in = {random_tensor(DType::kF32, x, random), random_tensor(DType::kF32, w, random)};
  if (random() % 2) c.in.push_back(random_tensor(DType::kF32, {g.m}, random));
  c.constant = {false, true, true};
  const std::string layout(op::channels_last(static_cast<int>(x.size())));
  c.placed = {{layout, pick<int64_t>(random, {0, 0, 1, 16})}};
  c.out_placed = {layout, pick<int64_t>(random, {0, 0, 1, 16})};
  return c;
}

TEST(NarrowConv, MatchesTheReference) {
  std::mt19937_64 random(1);
  for (DType type : {DType::kBF16, DType::kF16})
    for (int i = 0; i < 40; ++i) {
      Geometry g{.batch = size_between(random, 1, 2),
                 .c = pick<int64_t>(random, {1, 3, 16, 33, 64, 385}),
                 .m = pick<int64_t>(random, {2, 15, 16, 17, 48, 65}),
                 .in = {},
                 .strides = {}};
      for (int64_t a = size_between(random, 1, 3); a > 0; --a) {
        g.in.push_back(size_between(random, 1, 9));
        g.strides.push_back(pick<int64_t>(random, {1, 1, 2, 3}));
      }
      Case c = conv_case(g, type, random);
      if (i % 3 == 0) {
        c.arity = c.in.size();
        const int result = static_cast<int>(c.in.size());
        c.steps = {{"relu", {}, {result}}, {"sigmoid", {}, {result + 1}}};
      }
      EXPECT_GE(check(c, random, {.products = g.c + 1}), 2);
    }
}

TEST(NarrowConv, SumsWindows) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    Geometry g{.batch = size_between(random, 1, 2),
               .c = pick<int64_t>(random, {1, 3, 16, 32, 33, 64, 97}),
               .m = pick<int64_t>(random, {2, 15, 16, 17, 32, 33, 48, 65}),
               .in = {},
               .strides = {}};
    op::Ints kernel, dilations, begin, end;
    int64_t taps = 1;
    for (int64_t a = size_between(random, 1, 3); a > 0; --a) {
      kernel.push_back(size_between(random, 1, 3));
      dilations.push_back(pick<int64_t>(random, {1, 1, 2}));
      begin.push_back(size_between(random, 0, 2));
      end.push_back(size_between(random, 0, 2));
      g.in.push_back(size_between(random, 5, a == 1 ? 37 : 7));
      g.strides.push_back(pick<int64_t>(random, {1, 1, 2, 3}));
      taps *= kernel.back();
    }
    Case c = conv_case(g, DType::kBF16, random);
    Dims w{g.m, g.c};
    w.insert(w.end(), kernel.begin(), kernel.end());
    c.in[1] = random_tensor(DType::kF32, w, random);
    if (i % 8 == 4)
      c.in[0] = random_tensor(DType::kF32, c.in[0]->dims(), random, {.special = true});
    // Few channels come row-major, too: then only few kernels take it, or none.
    const bool row_major = i % 2 == 1 && g.c <= 3;
    if (row_major) c.placed = {};
    c.attrs.set("dilations", dilations);
    c.attrs.set("pads_begin", begin);
    c.attrs.set("pads_end", end);
    if (i % 3 == 0) {
      c.arity = c.in.size();
      const int result = static_cast<int>(c.in.size());
      c.steps = {{"relu", {}, {result}}, {"sigmoid", {}, {result + 1}}};
    }
    EXPECT_GE(check(c, random, {.products = g.c * taps + 1}), row_major ? 0 : 2);
  }
}

TEST(NarrowConv, SaysWhyNot) {
  std::mt19937_64 random(2);
  auto why = [&](Case c, Dims y) {
    return table().ask(*problem_of(c, {*Tensor::make(DType::kF32, y)}), "cpu.conv_bf16").refusal;
  };
  const Geometry g{.batch = 1, .c = 4, .m = 6, .in = {5, 5}, .strides = {1, 1}};
  Case padded = conv_case(g, DType::kBF16, random);
  padded.attrs.set("pads_end", op::Ints{1, 0});
  EXPECT_EQ(why(padded, {1, 6, 6, 5}), "the input is padded");
  Case window = conv_case(g, DType::kBF16, random);
  window.in[1] = random_tensor(DType::kF32, {6, 4, 3, 3}, random);
  EXPECT_EQ(why(window, {1, 6, 3, 3}), "the window has 9 pixels, need 1");
  Case plain = conv_case(g, DType::kF32, random);
  EXPECT_EQ(why(plain, {1, 6, 5, 5}), "computes in bf16, which was not asked for");
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
