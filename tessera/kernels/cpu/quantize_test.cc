#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

// x with scales and zero points for all, along an axis, or in blocks.
Case quantize_case(std::mt19937_64& random, DType to) {
  const int rank = static_cast<int>(size_between(random, 0, 4));
  Dims dims = random_dims(random, rank, 5000), scales;
  Case c{.op = "quantize", .attrs = {{"to", to}}};
  if (rank > 0 && random() % 4) {
    const int64_t axis = rank == 1 ? 0 : size_between(random, 0, rank - 1);
    c.attrs.set("axis", random() % 2 ? axis : axis - rank);
    const int64_t block = random() % 2 ? pick<int64_t>(random, {1, 2, 3, 16, 64}) : 0;
    c.attrs.set("block", block);
    scales = {dims[static_cast<size_t>(axis)]};
    if (block > 0) {
      scales = dims;
      int64_t& size = scales[static_cast<size_t>(axis)];
      size = (size + block - 1) / block;
    }
  }
  c.in = {random_tensor(DType::kF32, dims, random, {.scale = 100, .special = true}),
          random_tensor(DType::kF32, scales, random, {.special = random() % 8 == 0}), std::nullopt};
  if (random() % 3) c.in[2] = random_tensor(to, scales, random, {.wide = true});
  return c;
}

TEST(Quantize, MatchesTheReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    const DType to = pick<DType>(random, {DType::kU8, DType::kI8, DType::kU16, DType::kI16});
    EXPECT_GE(check(quantize_case(random, to), random), 1);
  }
}

TEST(Quantize, BackMatchesTheReference) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 400; ++i) {
    const DType from =
        pick<DType>(random, {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32});
    Case c = quantize_case(random, from);
    c.op = "dequantize";
    c.attrs.set("to", DType::kF32);
    c.in[0] = random_tensor(from, c.in[0]->dims(), random, {.wide = true});
    EXPECT_GE(check(c, random), 1);
  }
}

TEST(Quantize, TiesGoToEvenAndBoundsHold) {
  std::mt19937_64 random(3);
  op::Tensor x = *op::Tensor::make(DType::kF32, {1201});
  for (int64_t i = 0; i < x.count(); ++i) x.set_f64(i, static_cast<double>(i - 600) / 2);
  for (DType to : {DType::kU8, DType::kI8})
    for (double scale : {1.0, 0.5, 3.0, 1e-30, 1e30})
      for (int64_t zero : {0, 1, 100, 127}) {
        op::Tensor z = *op::Tensor::make(to, {});
        z.set_i64(0, zero);
        EXPECT_GE(check({.op = "quantize",
                         .attrs = {{"to", to}},
                         .in = {x, op::Tensor::scalar(DType::kF32, scale), z}},
                        random),
                  1);
      }
}

TEST(Quantize, KeepsLayouts) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 40; ++i) {
    Case c{.op = "quantize", .attrs = {{"to", DType::kU8}}};
    const Dims dims{size_between(random, 1, 2), size_between(random, 1, 40),
                    size_between(random, 1, 9), size_between(random, 1, 9)};
    const Dims scales = random() % 2 ? Dims{} : Dims{dims[1]};
    c.in = {random_tensor(DType::kF32, dims, random, {.scale = 100}),
            random_tensor(DType::kF32, scales, random),
            random_tensor(DType::kU8, scales, random, {.wide = true})};
    const std::string layout(op::channels_last(4));
    c.placed = {{layout}};
    c.out_placed = {layout};
    EXPECT_GE(check(c, random), 1);
  }
}

TEST(Quantize, Refuses) {
  std::mt19937_64 random(5);
  Case c{.op = "quantize", .attrs = {{"to", DType::kI4}}};
  c.in = {random_tensor(DType::kF32, {4}, random), random_tensor(DType::kF32, {}, random)};
  EXPECT_EQ(check(c, random), 0);
  c.attrs = {{"to", DType::kI8}, {"precision", DType::kF16}};
  EXPECT_EQ(check(c, random), 0);
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
