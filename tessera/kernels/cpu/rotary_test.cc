#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

// A product of two sums of f32, rounded twice.
constexpr Tolerance kClose{.rel = 8, .abs = 16};

Case rotary(const Dims& x, Dims table, int64_t dim, bool interleaved, std::mt19937_64& random) {
  table.push_back((dim > 0 ? dim : x[3]) / 2);
  Case c{.op = "rotary"};
  c.attrs.set("dim", dim);
  c.attrs.set("interleaved", int64_t{interleaved});
  c.in = {random_tensor(DType::kF32, x, random), random_tensor(DType::kF32, table, random),
          random_tensor(DType::kF32, table, random)};
  return c;
}

TEST(Rotary, AllSizes) {
  std::mt19937_64 random(1);
  for (const Dims& x : {Dims{1, 1, 1, 2}, Dims{2, 3, 5, 64}, Dims{1, 4, 7, 46}, Dims{3, 2, 97, 34},
                        Dims{2, 2, 0, 8}, Dims{1, 16, 31, 128}, Dims{2, 1, 200, 256}})
    for (bool interleaved : {false, true})
      for (int64_t dim : {int64_t{0}, x[3], std::min<int64_t>(2, x[3]), x[3] / 4 * 2}) {
        EXPECT_EQ(check(rotary(x, {x[0], x[2]}, dim, interleaved, random), random, kClose), 1);
        EXPECT_EQ(check(rotary(x, {1, x[2]}, dim, interleaved, random), random, kClose), 1);
      }
}

// Heads that lie between the steps, as projections leave them.
TEST(Rotary, Strided) {
  std::mt19937_64 random(2);
  Case c = rotary({2, 3, 5, 32}, {1, 5}, 0, false, random);
  c.placed = {Placement{.strides = {5 * 3 * 32, 32, 3 * 32, 1}}};
  EXPECT_EQ(check(c, random, kClose), 1);
  c.out_placed = {.strides = {5 * 3 * 40, 40, 3 * 40, 1}};
  EXPECT_EQ(check(c, random, kClose), 1);
  c.placed = {Placement{.strides = {5 * 3 * 32, 1, 3, 15}}};
  EXPECT_EQ(check(c, random, kClose), 0);
}

TEST(Rotary, Refusals) {
  std::mt19937_64 random(3);
  Case c = rotary({1, 2, 3, 4}, {3}, 0, false, random);
  c.in.push_back(*Tensor::make(DType::kI64, {1, 3}));
  EXPECT_EQ(check(c, random, kClose), 0);  // positions
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
