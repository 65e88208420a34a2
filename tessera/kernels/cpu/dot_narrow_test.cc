#include <gtest/gtest.h>

#include "tessera/base/float.h"
#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

Case dot(Tensor a, Tensor b, DType compute) {
  Case c{.op = "dot", .in = {std::move(a), std::move(b)}, .constant = {false, true}};
  c.attrs.set("compute", compute);
  return c;
}

op::Claim claim_of(const Case& c, std::string_view kernel) {
  const Tensor y = *Tensor::make(DType::kF32, {c.in[0]->dims()[0], c.in[1]->dims()[1]});
  return table().ask(*problem_of(c, {y}), kernel);
}

constexpr DType kTypes[] = {DType::kBF16, DType::kF16};

TEST(NarrowDot, MatchesTheReferenceOnEdgesOfTiles) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 240; ++i) {
    const int64_t m = pick<int64_t>(random, {0, 1, 2, 5, 6, 7, 8, 9, 13, 16, 25, 48, 150}),
                  n = pick<int64_t>(random, {2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 257});
    const int64_t k = pick<int64_t>(random, {1, 2, 3, 7, 31, 32, 33, 64, 127, 383, 384, 385, 777});
    const bool transposed = random() % 2;
    Case c = dot(random_tensor(DType::kF32, {m, k}, random),
                 random_tensor(DType::kF32, transposed ? Dims{n, k} : Dims{k, n}, random),
                 kTypes[i % 2]);
    if (transposed) c.attrs.set("transpose_b", int64_t{1});
    EXPECT_GE(check(c, random, {.products = k}), 2);
  }
}

TEST(NarrowDot, TakesManyProductsOfAFewRows) {
  std::mt19937_64 random(2);
  for (DType type : kTypes)
    for (int64_t m : {1, 3, 8})
      for (int64_t k : {6911, 6913, 9001})
        EXPECT_GE(check(dot(random_tensor(DType::kF32, {m, k}, random),
                            random_tensor(DType::kF32, {k, 40}, random), type),
                        random, {.products = k}),
                  2);
}

TEST(NarrowDot, BroadcastsBatchesAndReadsStrides) {
  std::mt19937_64 random(3);
  for (DType type : kTypes)
    for (int i = 0; i < 12; ++i) {
      const int64_t m = pick<int64_t>(random, {1, 7, 20}), n = pick<int64_t>(random, {2, 31, 40}),
                    k = pick<int64_t>(random, {1, 16, 33});
      Case c = dot(random_tensor(DType::kF32, {2, 3, m, k}, random),
                   random_tensor(DType::kF32, i % 2 ? Dims{3, k, n} : Dims{k, n}, random), type);
      if (i % 3 == 0) c.placed = {{.gap = 3}};
      if (i % 3 == 1) c.out_placed = {.gap = 5};
      EXPECT_GE(check(c, random, {.products = k}), 2);
      Case t = dot(random_tensor(DType::kF32, {k, m}, random),
                   random_tensor(DType::kF32, {k, n}, random), type);
      t.attrs.set("transpose_a", int64_t{1});
      EXPECT_GE(check(t, random, {.products = k}), 2);
    }
}

TEST(NarrowDot, TakesStepsBehindIt) {
  std::mt19937_64 random(4);
  for (DType type : kTypes)
    for (int i = 0; i < 16; ++i) {
      const int64_t m = pick<int64_t>(random, {1, 7, 50}), n = pick<int64_t>(random, {2, 17, 65}),
                    k = pick<int64_t>(random, {1, 33, 400});
      Case c = dot(random_tensor(DType::kF32, {m, k}, random),
                   random_tensor(DType::kF32, {k, n}, random), type);
      c.in.push_back(random_tensor(DType::kF32, i % 2 ? Dims{n} : Dims{m, n}, random));
      c.arity = 2;
      c.steps = {{"add", {}, {3, 2}}, {i % 4 < 2 ? "relu" : "tanh", {}, {4}}};
      EXPECT_GE(check(c, random, {.products = k}), 2);
    }
}

// A row that is not finite stays alone; an odd depth reads nothing beyond.
TEST(NarrowDot, KeepsWhatIsNotFiniteInItsRow) {
  std::mt19937_64 random(5);
  for (DType type : kTypes)
    for (int64_t k : {20, 21, 385}) {
      Tensor a = random_tensor(DType::kF32, {9, k}, random);
      a.set_f64(3 * k + 5, NAN);
      a.set_f64(6 * k + 1, INFINITY);
      a.set_f64(8 * k, -INFINITY);
      EXPECT_GE(
          check(dot(a, random_tensor(DType::kF32, {k, 35}, random), type), random, {.products = k}),
          2);
      Tensor b = random_tensor(DType::kF32, {k, 35}, random);
      b.set_f64(2 * 35 + 3, NAN);
      b.set_f64(7 * 35 + 30, INFINITY);
      EXPECT_GE(
          check(dot(random_tensor(DType::kF32, {9, k}, random), b, type), random, {.products = k}),
          2);
    }
}

// Numbers that the type cannot tell from zero count as zero, or as what they are.
TEST(NarrowDot, MayFlushSubnormals) {
  std::mt19937_64 random(6);
  for (Isa isa : available_isas()) {
    Tensor a = *Tensor::make(DType::kF32, {2, 2}), b = *Tensor::make(DType::kF32, {2, 2});
    for (int64_t i = 0; i < 4; ++i) a.set_f64(i, i < 2 ? 0x1p-130 : 1), b.set_f64(i, 0x1p-140);
    const Case c = dot(a, b, DType::kBF16);
    const op::Problem p = *problem_of(c, {*Tensor::make(DType::kF32, {2, 2})});
    const auto y = run_claim(table(isa), p, table(isa).ask(p, "cpu.gemm_bf16"), {a, b}, random);
    ASSERT_TRUE(y);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_GE((*y)[0].f64(i), 0);
      EXPECT_LE((*y)[0].f64(i), i < 2 ? 0 : 0x1p-139);
    }
  }
}

TEST(NarrowDot, RoundsOnlyWhatIsAllowed) {
  std::mt19937_64 random(7);
  Case c = dot(random_tensor(DType::kF32, {64, 64}, random),
               random_tensor(DType::kF32, {64, 64}, random), DType::kBF16);
  EXPECT_TRUE(claim_of(c, "cpu.gemm_bf16").supported());
  EXPECT_TRUE(claim_of(c, "cpu.gemm").supported());
  EXPECT_EQ(claim_of(c, "cpu.gemm_f16").refusal, "computes in f16, which was not asked for");
  c.attrs = {};
  EXPECT_EQ(claim_of(c, "cpu.gemm_bf16").refusal, "computes in bf16, which was not asked for");
}

TEST(NarrowDot, IsForced) {
  std::mt19937_64 random(8);
  Case c = dot(random_tensor(DType::kF32, {64, 64}, random),
               random_tensor(DType::kF32, {64, 64}, random), DType::kBF16);
  c.attrs.set("compute_forced", int64_t{1});
  const Tensor y = *Tensor::make(DType::kF32, {64, 64});
  auto kernels = [&] {
    std::vector<std::string> names;
    for (const op::Claim& claim : table().probe(*problem_of(c, {y})))
      if (claim.supported()) names.push_back(claim.kernel);
    return names;
  };
  EXPECT_EQ(kernels(), std::vector<std::string>{"cpu.gemm_bf16"});
  // Nothing else to take: what is there stays.
  c.constant = {};
  EXPECT_EQ(kernels(), std::vector<std::string>{"cpu.gemm"});
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
