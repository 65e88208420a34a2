#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

// A convolution on channels-last operands, `gap` elements between pixels.
struct Geometry {
  int64_t batch = 1, groups = 1, c = 1, m = 1;  // channels of a group
  op::Ints in = {}, kernel = {}, strides = {}, dilations = {}, begin = {}, end = {};
};

Case conv_case(const Geometry& g, std::mt19937_64& random, Fill fill = {}) {
  Dims x{g.batch, g.groups * g.c}, w{g.groups * g.m, g.c};
  x.insert(x.end(), g.in.begin(), g.in.end());
  w.insert(w.end(), g.kernel.begin(), g.kernel.end());
  Case c{.op = "conv",
         .attrs = {{"strides", g.strides},
                   {"dilations", g.dilations},
                   {"pads_begin", g.begin},
                   {"pads_end", g.end},
                   {"groups", g.groups}}};
  c.in = {random_tensor(DType::kF32, x, random, fill), random_tensor(DType::kF32, w, random)};
  if (random() % 2) c.in.push_back(random_tensor(DType::kF32, {w[0]}, random));
  c.constant = {false, true, true};
  const std::string layout(op::channels_last(static_cast<int>(x.size())));
  c.placed = {{layout, pick<int64_t>(random, {0, 0, 1, 16, 40})}};
  c.out_placed = {layout, pick<int64_t>(random, {0, 0, 1, 16, 40})};
  return c;
}

Geometry random_geometry(std::mt19937_64& random, int axes, int64_t most) {
  Geometry g;
  g.batch = size_between(random, 1, 2);
  for (int a = 0; a < axes; ++a) {
    g.kernel.push_back(pick<int64_t>(random, {1, 1, 2, 3, 3, 5}));
    g.dilations.push_back(pick<int64_t>(random, {1, 1, 1, 2, 3}));
    g.strides.push_back(pick<int64_t>(random, {1, 1, 2, 3}));
    g.begin.push_back(size_between(random, 0, 2));
    g.end.push_back(size_between(random, 0, 2));
    g.in.push_back(
        std::max(size_between(random, 1, most), (g.kernel.back() - 1) * g.dilations.back() + 1));
  }
  return g;
}

int64_t products(const Case& c) {
  return c.in[1]->count() / std::max<int64_t>(c.in[1]->dim(0), 1) + 1;
}

// Adds up to three steps behind the convolution: activations, sums and products with operands of
// all kinds.
void add_steps(Case& c, std::mt19937_64& random) {
  c.arity = c.in.size();
  Dims y{c.in[0]->dim(0), c.in[1]->dim(0)};
  for (int a = 2; a < c.in[0]->rank(); ++a) {
    const auto i = static_cast<size_t>(a - 2);
    const int64_t reach = (c.in[1]->dim(a) - 1) * c.attrs.ints("dilations")[i] + 1;
    y.push_back(
        (c.in[0]->dim(a) + c.attrs.ints("pads_begin")[i] + c.attrs.ints("pads_end")[i] - reach) /
            c.attrs.ints("strides")[i] +
        1);
  }
  std::vector<CaseStep> steps;
  const size_t count = static_cast<size_t>(size_between(random, 1, 3));
  std::vector<int> operands;
  for (size_t i = 0; i < count; ++i) {
    CaseStep step{pick<std::string>(
        random, {"relu", "hard_swish", "silu", "sigmoid", "add", "add", "mul", "min", "max"})};
    const bool two = step.op == "add" || step.op == "mul" || step.op == "min" || step.op == "max";
    operands.push_back(two ? static_cast<int>(c.in.size()) : -1);
    if (two) {
      Dims dims = pick<Dims>(random, {{}, y, {y[1]}});
      if (dims.size() == 1) dims.insert(dims.end(), y.size() - 2, 1);
      Placement at;
      if (dims == y) at = {c.out_placed.layout, 0};
      c.placed.resize(c.in.size());
      c.placed.push_back(at);
      c.in.push_back(random_tensor(DType::kF32, dims, random));
    }
    steps.push_back(std::move(step));
  }
  const int inputs = static_cast<int>(c.in.size());
  for (size_t i = 0; i < count; ++i) {
    const int before = inputs + static_cast<int>(i);
    steps[i].in = {before};
    if (operands[i] >= 0) steps[i].in.insert(steps[i].in.begin() + (random() % 2), operands[i]);
  }
  c.steps = std::move(steps);
}

TEST(ConvLast, MatchesTheReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 3));
    Geometry g = random_geometry(random, axes, axes == 1 ? 70 : axes == 2 ? 20 : 7);
    g.groups = pick<int64_t>(random, {1, 1, 2, 3});
    g.c = pick<int64_t>(random, {1, 3, 17, 24});
    g.m = pick<int64_t>(random, {1, 3, 16, 17, 24, 116});
    Case c = conv_case(g, random);
    if (random() % 2) add_steps(c, random);
    EXPECT_GE(check(c, random, {.products = products(c)}), 1);
  }
}

TEST(ConvLast, Pointwise) {
  std::mt19937_64 random(2);
  for (const op::Ints& in : {op::Ints{7, 7}, op::Ints{1, 1}, op::Ints{13, 29}})
    for (int64_t channels : {1, 3, 24, 116})
      for (int64_t m : {1, 17, 64, 400}) {
        Geometry g{.batch = 2, .c = channels, .m = m, .in = in, .kernel = {1, 1}};
        g.strides = g.dilations = {1, 1};
        g.begin = g.end = {0, 0};
        if (random() % 2) g.strides = {2, 2};
        Case c = conv_case(g, random);
        if (random() % 2) add_steps(c, random);
        EXPECT_GE(check(c, random, {.products = products(c)}), 1);
      }
}

TEST(ConvLast, Depthwise) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 2));
    Geometry g = random_geometry(random, axes, axes == 1 ? 70 : 30);
    g.groups = pick<int64_t>(random, {1, 3, 17, 24, 116});
    if (random() % 2) g.dilations.assign(g.dilations.size(), 1);
    if (random() % 8 == 0) g.kernel.back() = 7, g.in.back() = std::max<int64_t>(g.in.back(), 19);
    Case c = conv_case(g, random);
    if (random() % 2) add_steps(c, random);
    const bool few = g.groups == 1 && g.dilations.back() == 1;
    EXPECT_EQ(check(c, random, {.products = products(c)}), 2 + few);
  }
}

TEST(ConvLast, NarrowGroups) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 200; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 2));
    Geometry g = random_geometry(random, axes, axes == 1 ? 70 : 20);
    g.c = g.m = pick<int64_t>(random, {2, 4, 8});
    g.groups = pick<int64_t>(random, {2, 3, 13});
    if (random() % 2) g.dilations.assign(g.dilations.size(), 1);
    Case c = conv_case(g, random);
    if (random() % 2) add_steps(c, random);
    EXPECT_EQ(check(c, random, {.products = products(c)}), 2);
  }
}

TEST(ConvLast, FewChannels) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 300; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 2));
    Geometry g = random_geometry(random, axes, axes == 1 ? 70 : 30);
    g.c = pick<int64_t>(random, {1, 2, 3, 3, 4, 7});
    g.m = pick<int64_t>(random, {1, 17, 24, 64});
    if (random() % 2) g.dilations.assign(g.dilations.size(), 1);
    if (random() % 8 == 0) g.begin.assign(g.begin.size(), -1);
    Case c = conv_case(g, random);
    const bool row_major = random() % 2;
    if (row_major) c.placed[0] = {};
    if (random() % 2) add_steps(c, random);
    const bool apart = g.dilations.back() > 1, depthwise = !row_major && g.c == 1 && g.m == 1;
    EXPECT_EQ(check(c, random, {.products = products(c)}), !apart + !row_major + depthwise);
    EXPECT_EQ(check(c, random, {.products = products(c)}), !apart + !row_major + depthwise);
  }
}

TEST(ConvLast, Winograd) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 120; ++i) {
    Geometry g = random_geometry(random, 2, 24);
    g.c = pick<int64_t>(random, {16, 17, 24, 116});
    g.m = pick<int64_t>(random, {16, 17, 64, 116});
    g.groups = pick<int64_t>(random, {1, 1, 2});
    g.kernel = random() % 3 == 0 ? op::Ints{5, 5} : op::Ints{3, 3};
    g.strides = g.dilations = {1, 1};
    for (int64_t& size : g.in) size = std::max(size, g.kernel[0]);
    Case c = conv_case(g, random);
    if (random() % 2) add_steps(c, random);
    EXPECT_EQ(check(c, random, {.products = products(c)}), 2);
  }
}

TEST(ConvLast, ManyTapsAndChannels) {
  std::mt19937_64 random(3);
  Geometry g{.c = 520, .m = 40, .in = {9, 8}, .kernel = {3, 3}};
  g.strides = g.dilations = g.begin = g.end = {1, 1};
  Case wide = conv_case(g, random);
  EXPECT_GE(check(wide, random, {.products = products(wide)}), 1);
  g = {.c = 2, .m = 5, .in = {30, 40}, .kernel = {11, 9}};
  g.strides = g.dilations = {1, 1};
  g.begin = g.end = {5, 4};
  Case taps = conv_case(g, random);
  add_steps(taps, random);
  EXPECT_GE(check(taps, random, {.products = products(taps)}), 1);
}

TEST(ConvLast, EmptyAndPropagating) {
  std::mt19937_64 random(4);
  Geometry g{.c = 3, .m = 5, .in = {0, 4}, .kernel = {3, 3}};
  g.strides = g.dilations = {1, 1};
  g.begin = g.end = {2, 2};
  check(conv_case(g, random), random, {.products = 27});
  for (int i = 0; i < 20; ++i) {
    g = random_geometry(random, 2, 20);
    g.c = pick<int64_t>(random, {1, 17});
    g.m = 18;
    check(conv_case(g, random, {.special = true}), random, {.rel = 1e30});
  }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
