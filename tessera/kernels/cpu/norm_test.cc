#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

constexpr Tolerance kClose{.rel = 16, .abs = 64};

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
