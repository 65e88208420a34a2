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
                         Sizes{1, 6, 2, 3, 700, 33, 17}, Sizes{1, 1, 1, 4, 1, 256, 256}}) {
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
    for (const Dims& dims :
         {Dims{z.S, z.T}, Dims{z.B, 1, 1, z.T}, Dims{1, z.H, z.S, z.T}, Dims{z.T}}) {
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
  c.in.push_back(random_tensor(DType::kF32, {5}, random));
  EXPECT_EQ(refusal(c), "the mask is 5, need 8 columns");
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
