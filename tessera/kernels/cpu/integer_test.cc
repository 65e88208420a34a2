// Products and convolutions of 8-bit integers. Sums and what is quantised behind them are the
// reference's, bit by bit.
#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

DType byte(std::mt19937_64& random) { return random() % 2 ? DType::kU8 : DType::kI8; }
Tensor bytes(DType dtype, const Dims& dims, std::mt19937_64& random) {
  return random_tensor(dtype, dims, random, {.wide = true});
}

// Adds a conversion, up to two steps in f32 and, mostly, a quantisation. `columns` of the result
// broadcast against `dims` as [columns, 1...].
void add_steps(Case& c, const Dims& dims, const Dims& columns, std::mt19937_64& random) {
  c.arity = c.in.size();
  std::vector<CaseStep> steps{{"convert", {{"to", DType::kF32}}}};
  std::vector<std::vector<int>> operands{{}};
  auto input = [&](Tensor t, Placement at = {}) {
    c.placed.resize(c.in.size());
    c.placed.push_back(std::move(at));
    c.in.push_back(std::move(t));
    return static_cast<int>(c.in.size()) - 1;
  };
  for (int64_t i = size_between(random, 0, 2); i > 0; --i) {
    CaseStep step{
        pick<std::string>(random, {"relu", "mul", "mul", "add", "add", "min", "max", "abs"})};
    const bool two = step.op != "relu" && step.op != "abs";
    operands.emplace_back();
    if (two) {
      const Dims shape = pick<Dims>(random, {{}, columns, dims});
      operands.back() = {input(random_tensor(DType::kF32, shape, random, {.scale = 0.1}),
                               shape == dims ? Placement{c.out_placed.layout} : Placement{})};
    }
    steps.push_back(std::move(step));
  }
  if (random() % 4) {
    const DType to = byte(random);
    steps.push_back({"quantize", {{"to", to}}});
    operands.push_back({input(random_tensor(DType::kF32, {}, random, {.scale = 200}))});
    if (random() % 3) operands.back().push_back(input(bytes(to, {}, random)));
  }
  const int inputs = static_cast<int>(c.in.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].in = {inputs + static_cast<int>(i)};
    for (int v : operands[i]) steps[i].in.push_back(v);
  }
  c.steps = std::move(steps);
}

Case dot_case(const Dims& a, const Dims& b, std::mt19937_64& random) {
  Case c{.op = "dot_integer"};
  const DType x = byte(random), w = byte(random);
  c.in = {bytes(x, a, random), bytes(w, b, random)};
  c.constant = {false, random() % 4 != 0};
  if (random() % 3) {
    c.in.push_back(bytes(x, random() % 2 ? Dims{} : Dims{1}, random));
    if (random() % 2)
      c.in.push_back(bytes(w, random() % 2 && b.size() == 2 ? Dims{b[1]} : Dims{}, random));
  }
  return c;
}

TEST(IntegerDot, MatchesTheReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    auto size = [&] {
      return pick<int64_t>(
          random, {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 97, 131});
    };
    const int64_t m = size(), k = size(), n = size();
    Case c = dot_case({m, k}, {k, n}, random);
    if (random() % 2) add_steps(c, {m, n}, {n}, random);
    EXPECT_EQ(check(c, random), 1);
  }
}

TEST(IntegerDot, Batches) {
  std::mt19937_64 random(2);
  for (const auto& [a, b] : {std::pair<Dims, Dims>{{3, 5, 7}, {7, 9}},
                             {{3, 5, 7}, {3, 7, 9}},
                             {{5, 7}, {3, 7, 9}},
                             {{2, 1, 5, 7}, {1, 3, 7, 18}},
                             {{7}, {7, 9}},
                             {{4, 7}, {7}},
                             {{7}, {7}},
                             {{2, 3, 1, 40}, {40, 33}},
                             {{2, 300, 70}, {70, 20}},
                             {{1, 3000}, {3000, 70}}}) {
    Case c = dot_case(a, b, random);
    c.in.resize(2);
    EXPECT_GE(check(c, random), 1);
    c.in.push_back(bytes(c.in[0]->dtype(), {}, random));
    EXPECT_GE(check(c, random), 1);
  }
}

// Sums beyond 2^31 wrap around, and no pair of products saturates.
TEST(IntegerDot, Extremes) {
  std::mt19937_64 random(3);
  for (DType x : {DType::kU8, DType::kI8})
    for (DType w : {DType::kU8, DType::kI8})
      for (int64_t k : {4, 7, 70000}) {
        Case c{.op = "dot_integer", .constant = {false, true}};
        Tensor a = *Tensor::make(x, {2, k}), b = *Tensor::make(w, {k, 3});
        for (int64_t i = 0; i < a.count(); ++i)
          a.set_i64(i, x == DType::kU8 ? 255 : i < k ? -128 : 127);
        for (int64_t i = 0; i < b.count(); ++i)
          b.set_i64(i, w == DType::kU8 ? 255 : i % 3 == 0 ? -128 : 127);
        c.in = {a, b};
        EXPECT_EQ(check(c, random), 1);
      }
}

struct Geometry {
  int64_t batch = 1, groups = 1, c = 1, m = 1;
  op::Ints in = {}, kernel = {}, strides = {}, dilations = {}, begin = {}, end = {};
};

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

Case conv_case(const Geometry& g, std::mt19937_64& random) {
  Dims x{g.batch, g.groups * g.c}, w{g.groups * g.m, g.c}, y{g.batch, w[0]};
  x.insert(x.end(), g.in.begin(), g.in.end());
  w.insert(w.end(), g.kernel.begin(), g.kernel.end());
  for (size_t i = 0; i < g.in.size(); ++i)
    y.push_back((g.in[i] + g.begin[i] + g.end[i] - (g.kernel[i] - 1) * g.dilations[i] - 1) /
                    g.strides[i] +
                1);
  Case c{.op = "conv_integer",
         .attrs = {{"strides", g.strides},
                   {"dilations", g.dilations},
                   {"pads_begin", g.begin},
                   {"pads_end", g.end},
                   {"groups", g.groups}}};
  const DType xt = byte(random), wt = byte(random);
  c.in = {bytes(xt, x, random), bytes(wt, w, random), std::nullopt, std::nullopt, std::nullopt};
  if (random() % 3) c.in[2] = bytes(xt, {}, random);
  if (random() % 3 == 0) c.in[3] = bytes(wt, random() % 2 ? Dims{w[0]} : Dims{}, random);
  if (random() % 2) c.in[4] = random_tensor(DType::kI32, {w[0]}, random);
  c.constant = {false, true, true, true, true};
  const std::string layout(op::channels_last(static_cast<int>(x.size())));
  c.placed = {{layout, pick<int64_t>(random, {0, 0, 1, 16, 40})}};
  c.out_placed = {layout, pick<int64_t>(random, {0, 0, 1, 16, 40})};
  if (random() % 2) {
    Dims columns(y.size() - 1, 1);
    columns[0] = y[1];
    add_steps(c, y, columns, random);
  }
  return c;
}

TEST(IntegerConv, MatchesTheReference) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 3));
    Geometry g = random_geometry(random, axes, axes == 1 ? 70 : axes == 2 ? 20 : 7);
    g.groups = pick<int64_t>(random, {1, 1, 2, 3});
    g.c = pick<int64_t>(random, {2, 3, 17, 24});
    g.m = pick<int64_t>(random, {1, 3, 16, 17, 24, 116});
    EXPECT_EQ(check(conv_case(g, random), random), 1);
  }
}

TEST(IntegerConv, Pointwise) {
  std::mt19937_64 random(5);
  for (const op::Ints& in : {op::Ints{7, 7}, op::Ints{1, 1}, op::Ints{13, 29}, op::Ints{40, 40}})
    for (int64_t channels : {2, 3, 24, 116})
      for (int64_t m : {1, 17, 64, 200}) {
        Geometry g{.batch = 2, .c = channels, .m = m, .in = in, .kernel = {1, 1}};
        g.strides = g.dilations = {1, 1};
        g.begin = g.end = {0, 0};
        if (random() % 2) g.strides = {2, 2};
        EXPECT_EQ(check(conv_case(g, random), random), 1);
      }
}

TEST(IntegerConv, FewChannelsRowMajor) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 60; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 3));
    Geometry g = random_geometry(random, axes, axes == 1 ? 70 : axes == 2 ? 24 : 7);
    g.c = pick<int64_t>(random, {2, 3, 3, 4});
    g.m = pick<int64_t>(random, {16, 17, 64});
    Case c = conv_case(g, random);
    c.placed[0] = {};
    EXPECT_EQ(check(c, random), 1);
  }
}

TEST(IntegerConv, LargeWindows) {
  std::mt19937_64 random(7);
  Geometry g{.c = 700, .m = 20, .in = {9, 40}, .kernel = {3, 3}};
  g.strides = g.dilations = g.begin = g.end = {1, 1};
  EXPECT_EQ(check(conv_case(g, random), random), 1);
  g = {.c = 2, .m = 5, .in = {30, 40}, .kernel = {11, 9}};
  g.strides = g.dilations = {1, 1};
  g.begin = g.end = {5, 4};
  EXPECT_EQ(check(conv_case(g, random), random), 1);
  g = {.c = 20000, .m = 3, .in = {3, 3}, .kernel = {3, 3}};
  g.strides = g.dilations = g.begin = g.end = {1, 1};
  EXPECT_EQ(check(conv_case(g, random), random), 0);  // does not fit
}

TEST(IntegerConv, Depthwise) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 200; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 2));
    Geometry g = random_geometry(random, axes, axes == 1 ? 70 : 24);
    g.groups = pick<int64_t>(random, {2, 3, 17, 24, 32, 64, 116, 200});
    EXPECT_EQ(check(conv_case(g, random), random), 2);
  }
}

TEST(IntegerConv, Empty) {
  std::mt19937_64 random(9);
  Geometry g{.c = 3, .m = 5, .in = {0, 4}, .kernel = {3, 3}};
  g.strides = g.dilations = {1, 1};
  g.begin = g.end = {2, 2};
  check(conv_case(g, random), random);
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
