#include <gtest/gtest.h>

#include <numeric>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

DType any_type(std::mt19937_64& random) {
  return pick(random, {DType::kF32, DType::kF32, DType::kI8, DType::kF16, DType::kI64, DType::kC128,
                       DType::kBool});
}

TEST(Move, Transpose) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 0, 6));
    op::Ints perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    EXPECT_EQ(
        check({.op = "transpose",
               .attrs = {{"perm", perm}},
               .in = {random_tensor(any_type(random), random_dims(random, rank, 8000), random)}},
              random),
        1);
  }
  for (const Dims& dims : {Dims{1, 200, 300}, Dims{2, 3, 401, 67}})
    EXPECT_EQ(
        check({.op = "transpose",
               .attrs = {{"perm", dims.size() == 3 ? op::Ints{0, 2, 1} : op::Ints{0, 2, 3, 1}}},
               .in = {random_tensor(DType::kF32, dims, random)}},
              random),
        1);
}

TEST(Move, SameOrder) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 30; ++i) {
    Tensor x = random_tensor(any_type(random), random_dims(random, 3, 30000), random);
    const int64_t count = x.count();
    EXPECT_EQ(check({.op = "identity", .in = {x}}, random), 1);
    EXPECT_EQ(check({.op = "reshape",
                     .attrs = {{"zero_is_zero", int64_t{1}}},
                     .in = {x, Tensor::of_i64({{1, count}})}},
                    random),
              1);
    EXPECT_EQ(check({.op = "unsqueeze", .in = {x, Tensor::of_i64({{0, 3}})}}, random), 1);
    EXPECT_EQ(check({.op = "shape_of", .in = {x}}, random), 1);
  }
}

TEST(Move, BroadcastAndTile) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    const Dims dims = random_dims(random, static_cast<int>(size_between(random, 0, 4)), 8000);
    EXPECT_EQ(check({.op = "broadcast_to",
                     .in = {random_tensor(any_type(random), broadcastable(random, dims), random),
                            Tensor::of_i64(dims)}},
                    random),
              1);
    op::Ints repeats;
    for (size_t a = 0; a < dims.size(); ++a) repeats.push_back(size_between(random, 0, 3));
    const Dims small = random_dims(random, static_cast<int>(dims.size()), 500);
    EXPECT_EQ(
        check({.op = "tile",
               .in = {random_tensor(any_type(random), small, random), Tensor::of_i64(repeats)}},
              random),
        1);
  }
}

TEST(Move, Slice) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 5));
    op::Ints starts, ends, axes, steps;
    for (int a = 0; a < rank; ++a) {
      if (random() % 3 == 0) continue;
      starts.push_back(random() % 8 ? size_between(random, -12, 12)
                                    : pick<int64_t>(random, {INT64_MIN, INT64_MAX}));
      ends.push_back(random() % 8 ? size_between(random, -12, 40)
                                  : pick<int64_t>(random, {INT64_MIN, INT64_MAX}));
      axes.push_back(random() % 2 ? a : a - rank);
      steps.push_back(pick<int64_t>(random, {1, 1, 2, 3, -1, -2, 100, -100}));
    }
    check({.op = "slice",
           .in = {random_tensor(any_type(random), random_dims(random, rank), random),
                  Tensor::of_i64(starts), Tensor::of_i64(ends), Tensor::of_i64(axes),
                  Tensor::of_i64(steps)}},
          random);
  }
}

TEST(Move, Concat) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    const int64_t axis = size_between(random, 0, rank - 1);
    const DType dtype = any_type(random);
    Case c{.op = "concat", .attrs = {{"axis", random() % 2 ? axis : axis - rank}}};
    Dims dims = random_dims(random, rank);
    for (int k = 0; k < i % 4 + 1; ++k) {
      dims[static_cast<size_t>(axis)] = size_between(random, 0, 9);
      c.in.push_back(random_tensor(dtype, dims, random));
    }
    EXPECT_EQ(check(c, random), 1);
  }
}

TEST(Move, Pad) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    const DType dtype = any_type(random);
    op::Ints pads;
    for (int k = 0; k < 2 * rank; ++k) pads.push_back(pick<int64_t>(random, {0, 0, 1, 2, 5, -1}));
    Case c{.op = "pad",
           .attrs = {{"mode", pick<std::string>(
                                  random, {"constant", "constant", "reflect", "edge", "wrap"})}}};
    c.in = {random_tensor(dtype, random_dims(random, rank, 2000), random), Tensor::of_i64(pads),
            std::nullopt};
    if (random() % 2) c.in[2] = random_tensor(dtype, {}, random);
    check(c, random);
  }
}

TEST(Move, Convert) {
  std::mt19937_64 random(7);
  using enum DType;
  for (DType from :
       {kF32, kF16, kBF16, kF64, kI8, kU8, kI32, kI64, kU64, kBool, kI4, kF8E4M3FN, kC64})
    for (DType to :
         {kF32, kF16, kBF16, kF64, kI8, kU8, kI32, kI64, kU64, kBool, kI4, kF8E5M2, kC64})
      EXPECT_GE(check({.op = "convert",
                       .attrs = {{"to", to}},
                       .in = {random_tensor(from, {pick<int64_t>(random, {0, 1, 77, 33001})},
                                            random, {.scale = 40, .special = !is_complex(from)})}},
                      random),
                1);
}

// Between any two of the layouts, packed or with gaps.
TEST(Move, Relayout) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 150; ++i) {
    const int rank = static_cast<int>(size_between(random, 3, 5));
    const auto placement = [&] {
      return Placement{random() % 2 ? std::string(op::channels_last(rank)) : "",
                       random() % 2 ? 0 : size_between(random, 1, 9)};
    };
    Dims dims;
    for (int64_t a = 0, left = 20000; a < rank; ++a) {
      dims.push_back(std::min(left, pick<int64_t>(random, {1, 2, 3, 16, 17, 33})));
      left = std::max<int64_t>(1, left / dims.back());
    }
    EXPECT_EQ(check({.op = "relayout",
                     .in = {random_tensor(any_type(random), dims, random)},
                     .placed = {placement()},
                     .out_placed = placement()},
                    random),
              1);
  }
}

TEST(Move, ConcatAndSliceInAnyLayout) {
  std::mt19937_64 random(9);
  const std::string last(op::channels_last(4));
  for (int i = 0; i < 100; ++i) {
    const auto placement = [&] {
      return Placement{random() % 3 ? last : "", random() % 2 ? 0 : size_between(random, 1, 9)};
    };
    Case c{.op = "concat", .attrs = {{"axis", int64_t{1}}}};
    const int64_t h = pick<int64_t>(random, {1, 2, 7}), w = pick<int64_t>(random, {1, 5, 8});
    for (int k = 0; k < i % 3 + 1; ++k) {
      c.in.push_back(random_tensor(DType::kF32, {2, size_between(random, 1, 20), h, w}, random));
      c.placed.push_back(placement());
    }
    c.out_placed = placement();
    EXPECT_EQ(check(c, random), 1);
    const op::Ints starts{3}, ends{11}, axes{1}, steps{pick<int64_t>(random, {1, 2, 3})};
    EXPECT_EQ(
        check({.op = "slice",
               .in = {random_tensor(DType::kF32, {2, 12, h, w}, random), Tensor::of_i64(starts),
                      Tensor::of_i64(ends), Tensor::of_i64(axes), Tensor::of_i64(steps)},
               .placed = {placement()},
               .out_placed = placement()},
              random),
        1);
  }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
