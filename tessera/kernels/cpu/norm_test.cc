#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

constexpr Tolerance kClose{.rel = 16, .abs = 64};

// Row-major with or without gaps between rows, or channels last.
Placement random_placement(std::mt19937_64& random, int rank) {
  if (random() % 2 && !op::channels_last(rank).empty())
    return {.layout = std::string(op::channels_last(rank))};
  return {.gap = random() % 3 == 0 ? size_between(random, 1, 9) : 0};
}

// Steps behind an f32 result: by a number, by columns, of the whole, and a function.
void add_steps(Case& c, const Dims& dims, int64_t cols, bool channels_last,
               std::mt19937_64& random) {
  c.arity = c.in.size();
  Dims row(dims.size(), 1);
  if (!dims.empty()) row[channels_last ? 1 : dims.size() - 1] = cols;
  const std::optional<Tensor> operands[] = {random_tensor(DType::kF32, {}, random),
                                            random_tensor(DType::kF32, row, random),
                                            random_tensor(DType::kF32, dims, random)};
  for (const auto& t : operands) c.in.push_back(t);
  const int result = static_cast<int>(c.in.size()), first = result - 3;
  c.steps = {{.op = "mul", .in = {result, first}},
             {.op = "add", .in = {first + 1, result + 1}},
             {.op = "sub", .in = {result + 2, first + 2}},
             {.op = "hard_swish", .in = {result + 3}}};
  c.steps.resize(1 + random() % 4);
}

DType random_type(std::mt19937_64& random) { return random() % 4 ? DType::kF32 : DType::kF64; }

TEST(Norm, Softmax) {
  std::mt19937_64 random(1);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    Case c{.op = i % 2 ? "softmax" : "log_softmax",
           .attrs = {{"axis", size_between(random, -rank, rank - 1)}}};
    c.in = {random_tensor(random_type(random), random_dims(random, rank), random,
                          {.scale = i % 3 ? 1.0 : 30.0, .special = i % 5 == 0})};
    ran += check(c, random, {.rel = 16, .abs = i % 2 ? 4.0 : 512.0});
  }
  EXPECT_GE(ran, 90);
}

TEST(Norm, SoftmaxOfPlacedOperandsAndSteps) {
  std::mt19937_64 random(5);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 2, 4));
    const Dims dims = random_dims(random, rank);
    const int64_t axis = size_between(random, 0, rank - 1);
    Case c{.op = i % 3 ? "softmax" : "log_softmax", .attrs = {{"axis", axis}}};
    c.in = {random_tensor(DType::kF32, dims, random, {.special = i % 7 == 0})};
    c.placed = {random_placement(random, rank)};
    c.out_placed = random_placement(random, rank);
    if (i % 2) {
      c.out_placed.gap = 0;
      const bool last = !c.out_placed.layout.empty();
      add_steps(c, dims, dims[last ? 1 : dims.size() - 1], last, random);
      c.placed.resize(3);
      c.placed.push_back(c.out_placed);
    }
    ran += check(c, random, {.rel = 32, .abs = 512});
  }
  EXPECT_GE(ran, 40);
}

TEST(Norm, LayersOfPlacedOperandsAndSteps) {
  std::mt19937_64 random(6);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 2, 4));
    const Dims dims = random_dims(random, rank);
    const bool rms = i % 3 == 0;
    Case c{.op = rms ? "rms_norm" : "layer_norm", .attrs = {{"axis", int64_t{-1}}}};
    c.in = {random_tensor(DType::kF32, dims, random),
            random_tensor(DType::kF32, {dims.back()}, random)};
    if (!rms) c.in.push_back(random_tensor(DType::kF32, {dims.back()}, random));
    c.placed = {{.gap = random() % 2 ? size_between(random, 1, 9) : 0}};
    if (i % 2)
      add_steps(c, dims, dims.back(), false, random);
    else
      c.out_placed.gap = random() % 2 ? size_between(random, 1, 9) : 0;
    ran += check(c, random, {.rel = 64, .abs = 1024});
  }
  EXPECT_GE(ran, 100);
}

TEST(Norm, ChannelsLast) {
  std::mt19937_64 random(7);
  int ran = 0;
  for (int i = 0; i < 80; ++i) {
    const int64_t channels = pick<int64_t>(random, {1, 3, 16, 64, 517});
    Dims dims{size_between(random, 0, 2), channels, 3, pick<int64_t>(random, {1, 5, 17})};
    dims.resize(static_cast<size_t>(size_between(random, 3, 4)));
    const Placement last{.layout = std::string(op::channels_last(static_cast<int>(dims.size())))};
    auto vector = [&] { return random_tensor(DType::kF32, {channels}, random); };
    Case c{.op = i % 2 ? "batch_norm" : "lrn", .in = {random_tensor(DType::kF32, dims, random)}};
    c.placed = {last};
    c.out_placed = last;
    if (c.op == "lrn") {
      c.attrs = {{"size", size_between(random, 1, 6)},
                 {"alpha", 0.5},
                 {"beta", pick(random, {0.5, 0.75, 1.0, 0.6})},
                 {"bias", 1.5}};
    } else {
      for (int k = 0; k < 3; ++k) c.in.push_back(vector());
      c.in.push_back(random_tensor(DType::kF32, {channels}, random, {.positive = true}));
      c.attrs.set("epsilon", 0.01);
      if (random() % 2) {
        c.placed[0].gap = size_between(random, 0, 9);
        add_steps(c, dims, channels, true, random);
        c.placed.resize(c.in.size());
        c.placed.back() = last;
      }
    }
    ran += check(c, random, {.rel = 64, .abs = 512});
  }
  EXPECT_GE(ran, 80);
}

TEST(Norm, LayerAndRms) {
  std::mt19937_64 random(2);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const int rank = static_cast<int>(size_between(random, 1, 4));
    const bool rms = i % 3 == 0;
    Dims x = random_dims(random, rank);
    const int64_t axis = size_between(random, 0, rank - 1);
    const Dims tail(x.begin() + axis, x.end());
    const DType dtype = random_type(random);
    Case c{.op = rms ? "rms_norm" : "layer_norm",
           .attrs = {{"axis", random() % 2 ? axis : axis - rank}, {"epsilon", 1e-3}}};
    if (dtype == DType::kF64) c.attrs.set("stash", dtype);
    c.in = {random_tensor(dtype, x, random, {.scale = 3}), std::nullopt};
    if (rms || random() % 4) c.in[1] = random_tensor(dtype, tail, random);
    if (!rms && random() % 3) c.in.push_back(random_tensor(dtype, tail, random));
    if (!rms) c.outputs = static_cast<int>(size_between(random, 1, 3));
    ran += check(c, random, {.rel = 16, .abs = 512});
  }
  EXPECT_GE(ran, 90);
}

TEST(Norm, ByChannel) {
  std::mt19937_64 random(3);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const DType dtype = random_type(random);
    const int64_t groups = pick<int64_t>(random, {1, 2, 3}),
                  channels = groups * pick<int64_t>(random, {1, 2, 5});
    Dims x{size_between(random, 0, 2), channels};
    for (int a = 0; a < i % 3; ++a) x.push_back(pick<int64_t>(random, {1, 3, 17, 40}));
    auto vector = [&] { return random_tensor(dtype, {channels}, random); };
    Case c{.op = pick(random, {"batch_norm", "instance_norm", "group_norm"}),
           .in = {random_tensor(dtype, x, random), vector(), vector()}};
    if (c.op == "batch_norm") {
      c.in.push_back(vector());
      c.in.push_back(random_tensor(dtype, {channels}, random, {.positive = true}));
    }
    if (c.op == "group_norm") {
      c.attrs.set("groups", groups);
      if (dtype == DType::kF64) c.attrs.set("stash", dtype);
    }
    c.attrs.set("epsilon", 0.01);
    ran += check(c, random, {.rel = 16, .abs = 512});
  }
  EXPECT_GE(ran, 100);
}

TEST(Norm, Lrn) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 30; ++i) {
    Case c{.op = "lrn",
           .attrs = {{"size", size_between(random, 1, 6)},
                     {"alpha", 0.5},
                     {"beta", i % 2 ? 0.75 : 0.5},
                     {"bias", 1.5}}};
    c.in = {random_tensor(DType::kF32,
                          {size_between(random, 0, 2), pick<int64_t>(random, {1, 3, 9}),
                           pick<int64_t>(random, {1, 5, 257}), 3},
                          random)};
    EXPECT_EQ(check(c, random, kClose), 1);
  }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
