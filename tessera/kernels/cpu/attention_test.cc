#include <gtest/gtest.h>

#include <limits>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

struct Sizes {
  int64_t B, H, K, S, T, E, F;
};

Case attention(const Sizes& z, std::mt19937_64& random, op::Attrs attrs = {}) {
  Case c{.op = "attention", .attrs = std::move(attrs)};
  c.in = {random_tensor(DType::kF32, {z.B, z.H, z.S, z.E}, random),
          random_tensor(DType::kF32, {z.B, z.K, z.T, z.E}, random),
          random_tensor(DType::kF32, {z.B, z.K, z.T, z.F}, random)};
  return c;
}

Tensor bools(const Dims& dims, std::mt19937_64& random, int one_in) {
  Tensor t = *Tensor::make(DType::kBool, dims);
  for (int64_t i = 0; i < t.count(); ++i)
    t.set_i64(i, random() % static_cast<uint64_t>(one_in) != 0);
  return t;
}

// Softmax weights are at most 1: an error of some hundred roundoffs of the values' magnitude.
constexpr Tolerance kClose{.rel = 400, .abs = 400};

TEST(Attention, AllSizes) {
  std::mt19937_64 random(1);
  for (const Sizes& z : {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{2, 3, 3, 5, 7, 16, 16},
                         Sizes{1, 12, 12, 49, 49, 32, 32}, Sizes{1, 4, 2, 50, 193, 64, 64},
                         Sizes{1, 2, 1, 97, 400, 80, 48}, Sizes{2, 4, 4, 1, 65, 64, 64},
                         Sizes{1, 6, 2, 3, 700, 33, 17}, Sizes{1, 1, 1, 4, 1, 256, 256},
                         Sizes{1, 16, 2, 4, 131, 20, 64}, Sizes{1, 40, 1, 1, 70, 128, 96},
                         Sizes{1, 2, 2, 145, 145, 64, 64}, Sizes{1, 1, 1, 73, 385, 24, 250}}) {
    EXPECT_EQ(check(attention(z, random), random, kClose), 1);
    op::Attrs attrs;
    attrs.set("causal", int64_t{1});
    attrs.set("scale", 0.3);
    EXPECT_EQ(check(attention(z, random, attrs), random, kClose), 1);
    attrs.set("softcap", 2.5);
    EXPECT_EQ(check(attention(z, random, attrs), random, kClose), 1);
  }
}

TEST(Attention, Masks) {
  std::mt19937_64 random(2);
  for (const Sizes& z : {Sizes{2, 4, 2, 9, 33, 16, 16}, Sizes{1, 2, 2, 1, 300, 64, 64},
                         Sizes{2, 2, 1, 60, 250, 8, 24}})
    for (const Dims& dims : {Dims{z.S, z.T}, Dims{z.B, 1, 1, z.T}, Dims{1, z.H, z.S, z.T},
                             Dims{z.T}, Dims{z.S, z.T - 3}, Dims{}, Dims{z.H, z.S, 1}}) {
      Case c = attention(z, random);
      // Some rows see nothing at all.
      c.in.push_back(bools(dims, random, 2));
      EXPECT_EQ(check(c, random, kClose), 1);
      c.in[3] = random_tensor(DType::kF32, dims, random);
      EXPECT_EQ(check(c, random, kClose), 1);
      for (int64_t i = 0; i < c.in[3]->count(); i += 3)
        c.in[3]->set_f64(i, -std::numeric_limits<double>::infinity());
      EXPECT_EQ(check(c, random, kClose), 1);
    }
}

// A window of keys around each query: most blocks of keys are hidden from most queries.
TEST(Attention, Windows) {
  std::mt19937_64 random(8);
  const Sizes z{1, 2, 1, 500, 500, 16, 16};
  Case c = attention(z, random);
  c.in.push_back(*Tensor::make(DType::kBool, {z.S, z.T}));
  Tensor added = *Tensor::make(DType::kF32, {z.S, z.T});
  for (int64_t s = 0; s < z.S; ++s)
    for (int64_t t = 0; t < z.T; ++t) {
      const bool seen = t <= s && t > s - 30;
      c.in[3]->set_i64(s * z.T + t, seen);
      added.set_f64(s * z.T + t, seen ? 0.5 : -std::numeric_limits<double>::infinity());
    }
  EXPECT_EQ(check(c, random, kClose), 1);
  c.in[3] = added;
  EXPECT_EQ(check(c, random, kClose), 1);
}

TEST(Attention, NothingVisibleAndNotANumber) {
  std::mt19937_64 random(3);
  for (const Sizes& z : {Sizes{1, 1, 1, 6, 200, 16, 16}, Sizes{1, 1, 1, 2, 600, 16, 16}}) {
    Case c = attention(z, random);
    c.in.push_back(bools({z.S, z.T}, random, 1000));
    for (int64_t t = 0; t < z.T; ++t) c.in[3]->set_i64(t, 0);            // row 0 sees nothing
    for (int64_t t = 0; t < z.T - 1; ++t) c.in[3]->set_i64(z.T + t, 0);  // row 1 the last key
    EXPECT_EQ(check(c, random, kClose), 1);
    c.in[0]->set_f64(z.E + 1, std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(check(c, random, kClose), 1);
  }
}

// Heads as a model has them, (b, s, h, e), seen as (b, h, s, e).
TEST(Attention, StridedOperands) {
  std::mt19937_64 random(4);
  const Sizes z{2, 4, 4, 37, 37, 16, 16};
  Case c = attention(z, random);
  const Dims strides{z.S * z.H * z.E * 3, z.E, z.H * z.E * 3, 1};
  c.placed = {{"", 0, strides}, {"", 0, strides}, {"", 0, strides}};
  c.out_placed = {"", 0, {z.S * z.H * z.E, z.E, z.H * z.E, 1}};
  EXPECT_EQ(check(c, random, kClose), 1);
}

// Keys and values with their past are results, too, or made on the way.
TEST(Attention, PastAndLengths) {
  std::mt19937_64 random(6);
  for (const Sizes& z :
       {Sizes{2, 4, 2, 1, 1, 16, 16}, Sizes{1, 2, 1, 3, 5, 64, 48}, Sizes{1, 80, 2, 1, 2, 24, 17},
        Sizes{2, 3, 3, 70, 70, 32, 32}, Sizes{1, 2, 2, 9, 4, 8, 8}})
    for (int i = 0; i < 12; ++i) {
      const int64_t past = pick<int64_t>(random, {0, 1, 33, 250});
      Case c = attention(z, random);
      if (i % 2) c.attrs.set("causal", int64_t{1});
      const bool with_past = i % 3 != 0;
      const int64_t keys = z.T + (with_past ? past : 0);
      c.in.resize(6);
      if (with_past) {
        c.in[4] = random_tensor(DType::kF32, {z.B, z.K, past, z.E}, random);
        c.in[5] = random_tensor(DType::kF32, {z.B, z.K, past, z.F}, random);
      }
      if (i % 4 == 1) c.in[3] = random_tensor(DType::kF32, {z.S, keys}, random);
      if (i % 4 == 2) c.in[3] = bools({1, z.H, 1, size_between(random, 1, keys)}, random, 4);
      if (i % 2 == 0) {
        const DType type = i % 4 ? DType::kI64 : DType::kI32;
        c.in.push_back(*Tensor::make(type, {z.B}));
        for (int64_t b = 0; b < z.B; ++b) c.in[6]->set_i64(b, size_between(random, 0, keys + 2));
      }
      c.outputs = i % 5 == 0 ? 1 : 3;
      EXPECT_EQ(check(c, random, kClose), 1);
    }
}

// A cache whose tensors lie one behind the other, and results that are parts of a larger one.
TEST(Attention, StridedPast) {
  std::mt19937_64 random(7);
  for (int64_t S : {1, 3, 40}) {
    const Sizes z{2, 4, 2, S, S, 16, 16};
    Case c = attention(z, random);
    c.in.resize(6);
    c.in[4] = random_tensor(DType::kF32, {z.B, z.K, 77, z.E}, random);
    c.in[5] = random_tensor(DType::kF32, {z.B, z.K, 77, z.F}, random);
    c.attrs.set("causal", int64_t{1});
    c.outputs = 3;
    const Dims heads{S * z.H * z.E, z.E, z.H * z.E, 1}, few{S * z.K * z.E, z.E, z.K * z.E, 1},
        rows{5000, 2500, 19, 1};
    c.placed = {{"", 0, heads}, {"", 0, few}, {"", 0, few}, {}, {"", 0, rows}, {"", 0, rows}};
    EXPECT_EQ(check(c, random, kClose), 1);
  }
}

// So many keys that they are cut into runs.
TEST(Attention, LongPast) {
  std::mt19937_64 random(9);
  Case c = attention({1, 3, 1, 2, 2, 100, 70}, random);
  c.in.resize(7);
  c.in[3] = bools({2, 3001}, random, 3);
  for (int64_t t = 0; t < 3001; ++t) c.in[3]->set_i64(t, t > 2900);  // whole runs see nothing
  c.in[4] = random_tensor(DType::kF32, {1, 1, 2999, 100}, random);
  c.in[5] = random_tensor(DType::kF32, {1, 1, 2999, 70}, random);
  c.outputs = 3;
  EXPECT_EQ(check(c, random, kClose), 1);
  c.in[6] = *Tensor::make(DType::kI64, {1});
  c.in[6]->set_i64(0, 2000);  // row 0 sees nothing at all
  EXPECT_EQ(check(c, random, kClose), 1);
}

TEST(Attention, SaysWhatItRefuses) {
  std::mt19937_64 random(5);
  auto refusal = [](const Case& c) {
    std::vector<Tensor> out{*c.in[0]};
    auto p = problem_of(c, out);
    EXPECT_TRUE(p);
    return table().probe(*p)[0].refusal;
  };
  EXPECT_EQ(refusal(attention({1, 1, 1, 2, 2, 300, 4}, random)),
            "head sizes 300 and 4, need 1 to 256");
  Case c = attention({1, 1, 1, 2, 8, 4, 4}, random);
  c.in.push_back(random_tensor(DType::kF32, {9}, random));
  EXPECT_EQ(refusal(c), "the mask is [9], need rank 4 or less and at most 8 columns");
}

// Products of bf16: with inputs of magnitude 1, scores are off by 2^-8 of sums of E products, and
// so are weights; sums of weighted values by some 2^-8 more.
TEST(Attention, RoundsToBf16WhereThatIsAllowed) {
  std::mt19937_64 random(9);
  for (const Sizes& z : {Sizes{2, 3, 3, 5, 7, 16, 16}, Sizes{1, 12, 12, 49, 49, 32, 32},
                         Sizes{1, 4, 2, 50, 193, 64, 64}, Sizes{1, 2, 1, 97, 400, 80, 48},
                         Sizes{1, 2, 2, 145, 145, 64, 64}, Sizes{1, 1, 1, 73, 385, 24, 250},
                         Sizes{1, 2, 2, 17, 33, 65, 1}, Sizes{1, 1, 1, 64, 128, 256, 256}})
    for (int i = 0; i < 4; ++i) {
      op::Attrs attrs;
      attrs.set("compute", DType::kBF16);
      attrs.set("compute_forced", int64_t{1});
      if (i % 2) attrs.set("causal", int64_t{1});
      Case c = attention(z, random, attrs);
      for (size_t input : {0, 1})
        c.in[input] = random_tensor(DType::kF32, c.in[input]->dims(), random, {.scale = 0.5});
      if (i == 2) c.in.push_back(bools({z.S, z.T}, random, 5));
      if (i == 3) c.in.push_back(random_tensor(DType::kF32, {z.T}, random));
      // In units of the roundoff of f32.
      const Tolerance rounded{.rel = 0x1p18, .abs = 0x1p18};
      EXPECT_EQ(check(c, random, rounded), 1);
    }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
