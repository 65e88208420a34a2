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
            2);
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
  EXPECT_EQ(table().probe(p)[1].refusal, "input 1 is strided, need packed");
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
