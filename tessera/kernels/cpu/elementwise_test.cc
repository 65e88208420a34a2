#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

constexpr DType kNumbers[] = {DType::kF32, DType::kF64, DType::kF16,  DType::kBF16,    DType::kI8,
                              DType::kI16, DType::kI32, DType::kI64,  DType::kU8,      DType::kU16,
                              DType::kU32, DType::kU64, DType::kBool, DType::kF8E4M3FN};

// Ten roundoffs of the type relative, and near zero in absolute terms: sums of terms of size 1
// cancel there.
constexpr Tolerance kClose{.rel = 8, .abs = 4};

TEST(Elementwise, BinaryMatchesTheReference) {
  std::mt19937_64 random(1);
  int ran = 0;
  for (const char* name :
       {"add",         "sub", "mul", "div", "min",     "max",    "mod",     "rem",
        "pow",         "and", "or",  "xor", "bit_and", "bit_or", "bit_xor", "shift_left",
        "shift_right", "eq",  "lt",  "le",  "gt",      "ge"})
    for (DType dtype : kNumbers)
      for (int i = 0; i < 3; ++i) {
        const Dims dims = random_dims(random, static_cast<int>(random() % 5));
        const bool shift = std::string_view(name).starts_with("shift"),
                   pow = std::string_view(name) == "pow";
        const bool divides = std::string_view(name) == "div" || std::string_view(name) == "mod" ||
                             std::string_view(name) == "rem";
        Tensor a = random_tensor(dtype, broadcastable(random, dims), random,
                                 {.special = !pow && i == 1,
                                  .wide = i == 2 && !pow,
                                  .positive = pow && is_float(dtype)});
        Tensor b = random_tensor(dtype, broadcastable(random, dims), random,
                                 {.special = !divides && !pow && i == 1,
                                  .wide = i == 2 && !shift && !pow,
                                  .positive = shift || (divides && !is_float(dtype))});
        ran += check({.op = name, .in = {std::move(a), std::move(b)}}, random, kClose);
      }
  EXPECT_GE(ran, 500);
}

TEST(Elementwise, UnaryMatchesTheReference) {
  std::mt19937_64 random(2);
  int ran = 0;
  for (const char* name :
       {"neg",        "abs",  "sign",    "floor",   "ceil",         "round",      "trunc",
        "sqrt",       "exp",  "log",     "sin",     "cos",          "tan",        "asin",
        "acos",       "atan", "sinh",    "cosh",    "tanh",         "asinh",      "acosh",
        "atanh",      "erf",  "not",     "bit_not", "is_nan",       "is_inf",     "relu",
        "leaky_relu", "elu",  "sigmoid", "silu",    "hard_sigmoid", "hard_swish", "gelu",
        "softplus",   "mish"})
    for (DType dtype : kNumbers)
      for (int i = 0; i < 3; ++i) {
        const Dims dims = random_dims(random, static_cast<int>(random() % 4));
        Case c{.op = name,
               .in = {random_tensor(
                   dtype, dims, random,
                   {.scale = i == 0 ? 0.3 : 5.0, .special = i == 1, .wide = i == 2})}};
        if (c.op == "gelu" && i == 1) c.attrs.set("tanh", int64_t{1});
        if ((c.op == "elu" || c.op == "leaky_relu" || c.op == "silu") && i == 1)
          c.attrs.set("alpha", 0.7);
        // The reference loses what 1 + exp(-|x|) rounds away.
        ran += check(c, random, c.op == "mish" ? Tolerance{.rel = 8, .abs = 64} : kClose);
      }
  EXPECT_GE(ran, 500);
}

TEST(Elementwise, SelectMovesAnyType) {
  std::mt19937_64 random(3);
  for (DType dtype :
       {DType::kF32, DType::kI8, DType::kF16, DType::kI64, DType::kC128, DType::kBool, DType::kC64})
    for (int i = 0; i < 8; ++i) {
      const Dims dims = random_dims(random, 3);
      EXPECT_EQ(check({.op = "select",
                       .in = {random_tensor(DType::kBool, broadcastable(random, dims), random),
                              random_tensor(dtype, broadcastable(random, dims), random),
                              random_tensor(dtype, broadcastable(random, dims), random)}},
                      random),
                1);
    }
}

TEST(Elementwise, BroadcastsLongRowsAndManyAxes) {
  std::mt19937_64 random(4);
  const std::pair<Dims, Dims> shapes[] = {
      {{2, 3, 700}, {3, 1}}, {{2, 3, 700}, {700}},    {{3, 1, 4, 1, 5, 1}, {1, 2, 1, 3, 1, 4}},
      {{40000}, {1}},        {{1}, {40000}},          {{2, 64, 7, 7}, {64, 1, 1}},
      {{17, 1}, {1, 1031}},  {{1031, 17}, {1031, 1}}, {{}, {}}};
  for (const auto& [a, b] : shapes)
    for (const char* name : {"add", "mul", "lt"})
      EXPECT_EQ(check({.op = name,
                       .in = {random_tensor(DType::kF32, a, random),
                              random_tensor(DType::kF32, b, random)}},
                      random),
                1);
}

TEST(Elementwise, DivisionByIntegerZeroFails) {
  std::mt19937_64 random(5);
  Case c{.op = "div",
         .in = {random_tensor(DType::kI32, {4}, random), *Tensor::make(DType::kI32, {4})}};
  const op::Problem p = *problem_of(c, {*c.in[0]});
  const auto claims = table().probe(p);
  ASSERT_TRUE(claims[0].supported()) << claims[0].refusal;
  const auto got = run_claim(table(), p, claims[0], c.in, random);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "an integer is divided by zero");
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
