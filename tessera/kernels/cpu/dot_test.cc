#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

Case dot(Tensor a, Tensor b, bool constant) {
  return {.op = "dot", .in = {std::move(a), std::move(b)}, .constant = {false, constant}};
}

TEST(Dot, MatchesTheReferenceOnEdgesOfTiles) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 160; ++i) {
    const int64_t m = pick<int64_t>(random, {0, 1, 2, 5, 6, 11, 12, 13, 25, 48}),
                  n = pick<int64_t>(random, {0, 1, 3, 15, 16, 31, 32, 33, 65, 257, 300});
    const int64_t k = pick<int64_t>(random, {0, 1, 2, 7, 64, 127, 128, 129, 260});
    EXPECT_GE(check(dot(random_tensor(DType::kF32, {m, k}, random),
                        random_tensor(DType::kF32, {k, n}, random), i % 2),
                    random, {.products = std::max<int64_t>(k, 1)}),
              1);
  }
}

TEST(Dot, BroadcastsBatches) {
  std::mt19937_64 random(2);
  const std::pair<Dims, Dims> batches[] = {{{3}, {}},        {{}, {3}},  {{2, 3}, {3}},
                                           {{2, 1}, {1, 3}}, {{1}, {4}}, {{2, 1, 2}, {2, 2, 1}},
                                           {{2, 3}, {1, 1}}, {{0}, {1}}};
  for (const auto& [x, y] : batches)
    for (int i = 0; i < 6; ++i) {
      const int64_t m = pick<int64_t>(random, {1, 7, 13}), n = pick<int64_t>(random, {1, 31, 40}),
                    k = pick<int64_t>(random, {1, 16, 33});
      Dims a = x, b = y;
      a.insert(a.end(), {m, k});
      b.insert(b.end(), {k, n});
      EXPECT_GE(check(dot(random_tensor(DType::kF32, a, random),
                          random_tensor(DType::kF32, b, random), i % 2),
                      random, {.products = k}),
                1);
    }
  EXPECT_GE(check(dot(random_tensor(DType::kF32, {33}, random),
                      random_tensor(DType::kF32, {33, 40}, random), false),
                  random, {.products = 33}),
            1);
  EXPECT_GE(check(dot(random_tensor(DType::kF32, {5, 33}, random),
                      random_tensor(DType::kF32, {33}, random), false),
                  random, {.products = 33}),
            2);
  EXPECT_GE(check(dot(random_tensor(DType::kF32, {33}, random),
                      random_tensor(DType::kF32, {33}, random), true),
                  random, {.products = 33}),
            2);
}

TEST(Dot, PacksTransposedConstants) {
  std::mt19937_64 random(5);
  for (int64_t n : {2, 31, 32, 33, 100})
    for (int64_t k : {1, 15, 16, 17, 130}) {
      Case c = dot(random_tensor(DType::kF32, {7, k}, random),
                   random_tensor(DType::kF32, {n, k}, random), true);
      c.attrs.set("transpose_b", int64_t{1});
      EXPECT_EQ(check(c, random, {.products = k}), 1);
    }
}

TEST(Dot, TakesOtherTypes) {
  std::mt19937_64 random(3);
  using enum DType;
  const std::tuple<DType, DType, DType> types[] = {
      {kF64, kF64, kF64}, {kF16, kF16, kF16}, {kBF16, kBF16, kBF16}, {kI8, kI8, kI32},
      {kU8, kI8, kI32},   {kI8, kU8, kI32},   {kU8, kU8, kI32},      {kI32, kI32, kI32},
      {kI64, kI64, kI64}, {kU32, kU32, kU32}, {kF16, kF16, kF32}};
  for (const auto& [a, b, y] : types)
    for (int i = 0; i < 6; ++i) {
      const int64_t m = pick<int64_t>(random, {1, 3, 9}), n = pick<int64_t>(random, {1, 63, 65}),
                    k = pick<int64_t>(random, {0, 1, 16, 33});
      Case c = dot(random_tensor(a, {2, m, k}, random, {.wide = true}),
                   random_tensor(b, {k, n}, random, {.wide = true}), i % 2);
      if (a != y || b != y) c.attrs.set("accumulate", y);
      EXPECT_GE(check(c, random, {.products = std::max<int64_t>(k, 1)}), 1);
    }
}

TEST(Dot, PropagatesNanAndInf) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 8; ++i)
    check(dot(random_tensor(DType::kF32, {13, 40}, random, {.special = true}),
              random_tensor(DType::kF32, {40, 35}, random), i % 2),
          random, {.rel = 1e30, .products = 0});
}

// Steps as networks have them; value 3 is the product, 2 what the first step reads beside.
struct Chain {
  const char* name;
  std::vector<CaseStep> steps;
  Dims (*operand)(const Dims& y);  // of input 2; null: none, and values are one lower
};

Dims per_column(const Dims& y) { return {y.back()}; }
Dims per_row(const Dims& y) {
  Dims d = y;
  d.back() = 1;
  return d;
}
Dims single(const Dims&) { return {1, 1}; }
Dims same(const Dims& y) { return y; }

CaseStep step(const char* op, std::vector<int> in) { return {op, {}, std::move(in)}; }

const Chain kChains[] = {
    {"bias relu", {step("add", {3, 2}), step("relu", {4})}, per_column},
    {"bias gelu", {step("add", {2, 3}), step("gelu", {4})}, per_column},
    {"bias silu", {step("add", {3, 2}), step("silu", {4})}, per_column},
    {"residual", {step("add", {2, 3})}, same},
    {"scaled residual", {step("mul", {3, 2}), step("hard_swish", {4})}, same},
    {"distance", {step("sub", {2, 3}), step("abs", {4})}, same},
    {"rows", {step("mul", {3, 2}), step("leaky_relu", {4})}, per_row},
    {"clip", {step("max", {3, 2}), step("tanh", {4})}, single},
    {"from scalar", {step("sub", {2, 3}), step("sigmoid", {4})}, single},
    {"bound", {step("min", {3, 2})}, per_column},
    {"plain", {step("relu", {2}), step("hard_sigmoid", {3}), step("neg", {4})}, nullptr},
};

Case with_steps(Case c, const Chain& chain, const Dims& y, std::mt19937_64& random) {
  c.arity = 2;
  c.steps = chain.steps;
  if (chain.operand) c.in.push_back(random_tensor(DType::kF32, chain.operand(y), random));
  return c;
}

TEST(Dot, TakesStepsBehindIt) {
  std::mt19937_64 random(6);
  for (const Chain& chain : kChains)
    for (int i = 0; i < 24; ++i) {
      const int64_t m = pick<int64_t>(random, {1, 2, 5, 7, 13, 50}),
                    n = pick<int64_t>(random, {1, 2, 15, 16, 17, 40, 63, 65, 130}),
                    k = pick<int64_t>(random, {0, 1, 16, 33, 400});
      const bool batched = random() % 3 == 0, transposed = random() % 2;
      Dims a{m, k}, b = transposed ? Dims{n, k} : Dims{k, n}, y{m, n};
      if (batched) a.insert(a.begin(), 3), y.insert(y.begin(), 3);
      if (batched && random() % 2) b.insert(b.begin(), 3);
      Case c = dot(random_tensor(DType::kF32, a, random), random_tensor(DType::kF32, b, random),
                   random() % 2);
      if (transposed) c.attrs.set("transpose_b", int64_t{1});
      SCOPED_TRACE(chain.name);
      EXPECT_GE(check(with_steps(std::move(c), chain, y, random), random,
                      {.products = std::max<int64_t>(k, 1)}),
                1);
    }
}

TEST(Dot, RefusesOtherSteps) {
  std::mt19937_64 random(7);
  auto why = [&](const Chain& chain, Dims a, Dims b, Dims y) {
    const Case c = with_steps(
        dot(random_tensor(DType::kF32, a, random), random_tensor(DType::kF32, b, random), false),
        chain, y, random);
    const op::Problem p = *problem_of(c, {random_tensor(DType::kF32, y, random)});
    return table().probe(p)[1].refusal;
  };
  const Chain twice{"", {step("mul", {2, 2})}, nullptr};
  EXPECT_EQ(why(twice, {3, 4}, {4, 5}, {3, 5}), "step 0 does not read the result before it once");
  const Chain broadcast{"", {step("add", {3, 2})}, [](const Dims& y) { return Dims{y[1], y[2]}; }};
  EXPECT_EQ(why(broadcast, {2, 3, 4}, {4, 5}, {2, 3, 5}),
            "step 0 reads 3x5, which is neither uniform along rows and columns of 2x3x5 nor a "
            "matrix like it");
  EXPECT_EQ(why(kChains[0], {3, 4}, {4}, {3}), "takes no steps behind a product with a vector");
  Chain many{"", {}, nullptr};
  for (int i = 0; i < 9; ++i) many.steps.push_back(step("neg", {2 + i}));
  EXPECT_EQ(why(many, {3, 4}, {4, 5}, {3, 5}), "9 steps, need at most 8");
}

// Blocks of all three axes, whatever the instruction set makes of them.
TEST(Dot, CrossesBlocks) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 4; ++i) {
    const int64_t m = 241, n = pick<int64_t>(random, {127, 129}), k = i < 2 ? 385 : 257;
    Case c = dot(random_tensor(DType::kF32, {m, k}, random),
                 random_tensor(DType::kF32, i % 2 ? Dims{n, k} : Dims{k, n}, random), i < 2);
    if (i % 2) c.attrs.set("transpose_b", int64_t{1});
    EXPECT_GE(check(with_steps(std::move(c), kChains[i % 2 ? 0 : 3], {m, n}, random), random,
                    {.products = k}),
              1);
  }
}

// Heads of a joint projection, (batch, token, which, head, channel), read as (batch, head, token,
// channel), and results written where the next projection wants them.
TEST(Dot, ReadsAndWritesHeads) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 40; ++i) {
    const int64_t B = size_between(random, 1, 2), S = pick<int64_t>(random, {1, 3, 17, 50, 140}),
                  T = pick<int64_t>(random, {1, 4, 5, 33, 140}), H = size_between(random, 1, 3),
                  D = pick<int64_t>(random, {1, 8, 16, 30, 64});
    auto heads = [&](int64_t tokens, int64_t parts) {
      return Dims{tokens * parts * H * D, D, parts * H * D, 1};
    };
    Case scores = dot(random_tensor(DType::kF32, {B, H, S, D}, random),
                      random_tensor(DType::kF32, {B, H, T, D}, random), false);
    scores.attrs.set("transpose_b", int64_t{1});
    scores.placed = {{.strides = heads(S, 3)}, {.strides = heads(T, 3)}};
    EXPECT_GE(check(scores, random, {.products = D}), 1);
    Case context = dot(random_tensor(DType::kF32, {B, H, S, T}, random),
                       random_tensor(DType::kF32, {B, H, T, D}, random), false);
    context.placed = {{}, {.strides = heads(T, 3)}};
    context.out_placed = {.strides = heads(S, 1)};
    EXPECT_GE(check(context, random, {.products = T}), 1);
  }
}

TEST(Dot, TakesAnyStrides) {
  std::mt19937_64 random(10);
  for (int i = 0; i < 60; ++i) {
    const int64_t m = pick<int64_t>(random, {1, 2, 7, 30}), n = pick<int64_t>(random, {1, 5, 48}),
                  k = pick<int64_t>(random, {1, 9, 300});
    auto strides = [&](int64_t rows, int64_t cols) {
      const int64_t step = size_between(random, 1, 2);
      return random() % 2 ? Dims{cols * step + 1, step} : Dims{step, rows * step + 3};
    };
    Case c = dot(random_tensor(DType::kF32, {m, k}, random),
                 random_tensor(DType::kF32, {k, n}, random), false);
    c.placed = {{.strides = strides(m, k)}, {.strides = strides(k, n)}, {.gap = 3}};
    c.out_placed = {.gap = size_between(random, 0, 5)};
    EXPECT_GE(check(i % 2 ? with_steps(std::move(c), kChains[3], {m, n}, random) : std::move(c),
                    random, {.products = k}),
              1);
    Case t = dot(random_tensor(DType::kF32, {k, m}, random),
                 random_tensor(DType::kF32, {k, n}, random), i % 3 == 0);
    t.attrs.set("transpose_a", int64_t{1});
    EXPECT_GE(check(t, random, {.products = k}), 1);
  }
}

// A row that is not finite stays alone, and steps hand NaN on.
TEST(Dot, KeepsNanThroughSteps) {
  std::mt19937_64 random(11);
  for (const Chain& chain : kChains)
    for (bool constant : {false, true}) {
      Tensor a = random_tensor(DType::kF32, {9, 20}, random);
      a.set_f64(3 * 20 + 5, NAN);
      a.set_f64(6 * 20 + 1, INFINITY);
      Case c = dot(a, random_tensor(DType::kF32, {20, 35}, random), constant);
      SCOPED_TRACE(chain.name);
      check(with_steps(std::move(c), chain, {9, 35}, random), random, {.products = 20});
    }
}

TEST(Dot, SaysWhyNot) {
  op::Problem p;
  p.op = op::find("dot");
  op::Operand a, b;
  a.dims = {4, 4};
  b.dims = {4, 4};
  b.dtype = DType::kF64;
  p.in = {a, b};
  p.out = {a};
  for (const op::Claim& c : table().probe(p)) EXPECT_FALSE(c.supported());
  EXPECT_EQ(table().probe(p)[1].refusal, "input 1 is f64, need f32");
  p.in[1].dtype = DType::kF32;
  p.in[1].strides = {1, 4};
  EXPECT_TRUE(table().probe(p)[1].supported());
  EXPECT_EQ(table().probe(p)[2].refusal, "input 1 is strided, need packed");
  p.in[1].layout = "n m";
  EXPECT_EQ(table().probe(p)[1].refusal, "an operand has layout 'n m', need row-major");
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
