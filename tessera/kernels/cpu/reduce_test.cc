#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

TEST(Reduce, AnyAxesKindsAndTypes) {
  std::mt19937_64 random(1);
  int ran = 0;
  for (int i = 0; i < 900; ++i) {
    const DType dtype =
        pick(random, {DType::kF32, DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32,
                      DType::kI64, DType::kI8, DType::kU8, DType::kU64, DType::kBool});
    const std::string kind = pick(random, {"sum", "prod", "max", "min", "and", "or"});
    const int rank = static_cast<int>(size_between(random, 0, 5));
    Tensor x = random_tensor(dtype, random_dims(random, rank, kind == "prod" ? 300 : 20000), random,
                             {.special = i % 5 == 0, .wide = i % 7 == 0});
    op::Ints axes;
    for (int a = 0; a < rank; ++a)
      if (random() % 2) axes.push_back(random() % 2 ? a : a - rank);
    Case c{.op = "reduce",
           .attrs = {{"kind", kind}, {"keepdims", static_cast<int64_t>(random() % 2)}}};
    const int64_t count = std::max<int64_t>(x.count(), 1);
    c.in = {std::move(x)};
    if (!axes.empty()) c.in.push_back(Tensor::of_i64(axes));
    if (random() % 3 == 0) c.placed = {{std::string(op::channels_last(rank))}};
    if (random() % 3 == 0 && c.attrs.i("keepdims") != 0)
      c.out_placed = {std::string(op::channels_last(rank))};
    // A product's error grows with its length, not with the sum of its factors.
    ran += check(c, random,
                 kind == "sum" ? Tolerance{.products = count}
                               : Tolerance{.rel = 2.0 * static_cast<double>(count), .abs = 0});
  }
  EXPECT_GE(ran, 500);
}

TEST(Reduce, LongRowsAndColumns) {
  std::mt19937_64 random(2);
  for (const Dims& dims : {Dims{3, 70001}, Dims{70001, 3}, Dims{5, 600, 7}, Dims{1, 100000}})
    for (int64_t axis = 0; axis < std::ssize(dims); ++axis)
      EXPECT_EQ(check({.op = "reduce",
                       .attrs = {{"kind", std::string("sum")}},
                       .in = {random_tensor(DType::kF32, dims, random, {.positive = true}),
                              Tensor::of_i64({{axis}})}},
                      random, {.products = dims[static_cast<size_t>(axis)]}),
                1);
}

TEST(Reduce, RefusesUnknownAxes) {
  Case c{.op = "reduce",
         .attrs = {{"kind", std::string("sum")}},
         .in = {*Tensor::make(DType::kF32, {2, 2}), Tensor::of_i64({{1}})},
         .values_known = false};
  const auto claims = table().probe(*problem_of(c, {*Tensor::make(DType::kF32, {2, 1})}));
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].refusal, "axes are not known");
}

TEST(Reduce, GlobalPooling) {
  std::mt19937_64 random(3);
  for (const char* name : {"global_average_pool", "global_max_pool"})
    for (const Dims& dims : {Dims{2, 3, 7, 7}, Dims{1, 5, 1, 1}, Dims{2, 4}, Dims{1, 2, 3, 4, 5},
                             Dims{2, 0, 3, 3}, Dims{1, 1, 513}})
      EXPECT_EQ(check({.op = name, .in = {random_tensor(DType::kF32, dims, random)}}, random,
                      {.products = 16}),
                1)
          << op::to_string(dims);
  for (const char* name : {"global_average_pool", "global_max_pool"})
    for (const Dims& dims : {Dims{2, 3, 7, 7}, Dims{1, 116, 14, 14}, Dims{2, 17, 97}}) {
      Case c{.op = name, .in = {random_tensor(DType::kF32, dims, random)}};
      c.placed = {{std::string(op::channels_last(static_cast<int>(dims.size())))}};
      EXPECT_EQ(check(c, random, {.products = 196}), 1) << op::to_string(dims);
    }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
