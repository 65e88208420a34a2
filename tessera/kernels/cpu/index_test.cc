#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

DType any_type(std::mt19937_64& random) {
  return pick(random, {DType::kF32, DType::kF32, DType::kI8, DType::kF16, DType::kI64, DType::kC128,
                       DType::kBool});
}
DType line_type(std::mt19937_64& random) {
  return pick(random, {DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kI8,
                       DType::kU8});
}

// Indices in [-n, n).
Tensor indices(std::mt19937_64& random, const Dims& dims, int64_t n) {
  Tensor t = *Tensor::make(random() % 2 ? DType::kI64 : DType::kI32, dims);
  for (int64_t i = 0; i < t.count(); ++i)
    t.set_i64(i, n == 0 ? 0 : size_between(random, -n, n - 1));
  return t;
}

TEST(Index, Gather) {
  std::mt19937_64 random(1);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    const int64_t axis = size_between(random, 0, rank - 1);
    const Dims x = random_dims(random, rank);
    ran += check({.op = "gather",
                  .attrs = {{"axis", axis}},
                  .in = {random_tensor(any_type(random), x, random),
                         indices(random, random_dims(random, static_cast<int>(random() % 3), 30),
                                 x[static_cast<size_t>(axis)])}},
                 random);
  }
  EXPECT_GE(ran, 90);
}

TEST(Index, ElementsAndScatter) {
  std::mt19937_64 random(2);
  int ran = 0;
  for (int i = 0; i < 240; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    const int64_t axis = size_between(random, 0, rank - 1);
    const Dims x = random_dims(random, rank);
    Dims at = x;
    for (int64_t& d : at) d = d == 0 ? 0 : size_between(random, 0, d);
    at[static_cast<size_t>(axis)] = size_between(random, 0, 20);
    if (i % 2) {
      ran += check({.op = "gather_elements",
                    .attrs = {{"axis", axis}},
                    .in = {random_tensor(any_type(random), x, random),
                           indices(random, at, x[static_cast<size_t>(axis)])}},
                   random);
      continue;
    }
    const std::string reduction = pick<std::string>(random, {"none", "add", "mul", "max", "min"});
    const DType dtype =
        reduction == "none" ? any_type(random) : pick(random, {DType::kI32, DType::kI64});
    ran += check(
        {.op = "scatter_elements",
         .attrs = {{"axis", axis}, {"reduction", reduction}},
         .in = {random_tensor(dtype, x, random), indices(random, at, x[static_cast<size_t>(axis)]),
                random_tensor(dtype, at, random)}},
        random);
  }
  EXPECT_GE(ran, 180);
}

TEST(Index, Places) {
  std::mt19937_64 random(3);
  int ran = 0;
  for (int i = 0; i < 240; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    const Dims x = random_dims(random, rank);
    const int64_t batch = i % 2 ? size_between(random, 0, rank - 1) : 0,
                  length = size_between(random, 0, rank - batch);
    Dims at(x.begin(), x.begin() + batch), slice(x.begin() + batch + length, x.end());
    at.push_back(size_between(random, 0, 6));
    Dims updates = at;
    at.push_back(length);
    updates.insert(updates.end(), slice.begin(), slice.end());
    int64_t least = 100;
    for (int64_t a = batch; a < batch + length; ++a)
      least = std::min(least, x[static_cast<size_t>(a)]);
    if (i % 2) {
      ran += check({.op = "gather_nd",
                    .attrs = {{"batch_dims", batch}},
                    .in = {random_tensor(any_type(random), x, random), indices(random, at, least)}},
                   random);
      continue;
    }
    const std::string reduction = pick<std::string>(random, {"none", "add", "mul", "max", "min"});
    const DType dtype = reduction == "none" ? any_type(random)
                                            : pick(random, {DType::kI32, DType::kI64, DType::kF32});
    ran += check({.op = "scatter_nd",
                  .attrs = {{"reduction", reduction}},
                  .in = {random_tensor(dtype, x, random), indices(random, at, least),
                         random_tensor(dtype, updates, random)}},
                 random, {.rel = 64});
  }
  EXPECT_GE(ran, 180);
}

TEST(Index, Lines) {
  std::mt19937_64 random(4);
  int ran = 0;
  for (int i = 0; i < 240; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    const int64_t axis = size_between(random, -rank, rank - 1);
    Tensor x = random_tensor(line_type(random), random_dims(random, rank), random,
                             {.special = i % 3 == 0});
    const Dims dims = x.dims();
    const int64_t flag = static_cast<int64_t>(random() % 2),
                  other = static_cast<int64_t>(random() % 2);
    if (i % 3 == 0)
      ran += check({.op = flag ? "argmax" : "argmin",
                    .attrs = {{"axis", axis},
                              {"keepdims", other},
                              {"select_last", static_cast<int64_t>(random() % 2)}},
                    .in = {std::move(x)}},
                   random);
    else if (i % 3 == 1)
      ran += check({.op = "cumulative",
                    .attrs = {{"kind", std::string(i % 2 ? "sum" : "prod")},
                              {"exclusive", flag},
                              {"reverse", other}},
                    .in = {std::move(x), Tensor::of_i64({{axis}}).reshaped({})}},
                   random);
    else
      ran += check(
          {.op = "top_k",
           .attrs = {{"axis", axis}, {"largest", flag}},
           .in = {std::move(x),
                  Tensor::of_i64({{size_between(
                      random, 0, dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)])}})},
           .outputs = 2},
          random);
  }
  EXPECT_GE(ran, 180);
}

TEST(Index, RangeAndFailures) {
  std::mt19937_64 random(5);
  for (DType dtype : {DType::kF32, DType::kI64, DType::kI32, DType::kF64})
    EXPECT_EQ(check({.op = "range",
                     .in = {Tensor::scalar(dtype, int64_t{3}), Tensor::scalar(dtype, int64_t{90}),
                            Tensor::scalar(dtype, int64_t{4})}},
                    random),
              1);
  Case c{.op = "gather",
         .in = {random_tensor(DType::kF32, {5, 2}, random), Tensor::of_i64({{1, 5}})}};
  const op::Problem p = *problem_of(c, {*Tensor::make(DType::kF32, {2, 2})});
  const auto got = run_claim(table(), p, table().probe(p)[0], c.in, random);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "index 5 is outside [-5, 5)");
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
