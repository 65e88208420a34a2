#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

Case random_pool(std::mt19937_64& random, const char* name, DType dtype) {
  const int axes = static_cast<int>(size_between(random, 1, 3));
  Dims x{size_between(random, 1, 2), size_between(random, 1, 3)};
  op::Ints kernel, strides, dilations, begin, end;
  for (int a = 0; a < axes; ++a) {
    kernel.push_back(size_between(random, 1, 4));
    dilations.push_back(pick<int64_t>(random, {1, 1, 2}));
    strides.push_back(size_between(random, 1, 3));
    begin.push_back(size_between(random, 0, kernel.back() - 1));
    end.push_back(size_between(random, 0, kernel.back() - 1));
    x.push_back(
        std::max((kernel.back() - 1) * dilations.back() + 1, size_between(random, 1,
                                                                          axes == 1   ? 600
                                                                          : axes == 2 ? 40
                                                                                      : 9)));
  }
  Case c{.op = name,
         .attrs = {{"kernel", kernel},
                   {"strides", strides},
                   {"dilations", dilations},
                   {"ceil_mode", static_cast<int64_t>(random() % 2)}}};
  if (random() % 4 == 0)
    c.attrs.set("auto_pad", std::string("same_upper"));
  else {
    c.attrs.set("pads_begin", begin);
    c.attrs.set("pads_end", end);
  }
  c.in = {random_tensor(
      dtype, x, random,
      {.special = name == std::string_view("max_pool") && random() % 2 == 0, .wide = true})};
  return c;
}

TEST(Pool, Max) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    Case c =
        random_pool(random, "max_pool",
                    pick(random, {DType::kF32, DType::kF32, DType::kF64, DType::kI8, DType::kU8}));
    c.outputs = 1 + static_cast<int>(random() % 2);
    c.attrs.set("column_major", static_cast<int64_t>(random() % 2));
    EXPECT_EQ(check(c, random), 1);
  }
}

TEST(Pool, Average) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200; ++i) {
    Case c = random_pool(random, "average_pool", pick(random, {DType::kF32, DType::kF64}));
    c.attrs.set("count_include_pad", static_cast<int64_t>(random() % 2));
    EXPECT_EQ(check(c, random, {.rel = 16, .abs = 32}), 1);
  }
}

TEST(Pool, ChannelsLast) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const bool max = random() % 2;
    Case c = random_pool(random, max ? "max_pool" : "average_pool", DType::kF32);
    Dims dims = c.in[0]->dims();
    dims[1] = pick<int64_t>(random, {1, 3, 17, 24, 64, 116});
    for (size_t a = 2; a < dims.size(); ++a) dims[a] = std::min<int64_t>(dims[a], 40);
    c.in[0] = random_tensor(DType::kF32, dims, random, {.special = max && random() % 2 == 0});
    const std::string layout(op::channels_last(static_cast<int>(dims.size())));
    c.placed = {{layout, pick<int64_t>(random, {0, 1, 40})}};
    c.out_placed = {layout, pick<int64_t>(random, {0, 1, 40})};
    if (random() % 2) {
      c.arity = 1;
      c.steps = {{"relu", {}, {1}}};
    }
    if (!max) c.attrs.set("count_include_pad", static_cast<int64_t>(random() % 2));
    EXPECT_EQ(check(c, random, {.rel = 16, .abs = 32}), 1);
  }
}

TEST(Pool, BytesChannelsLast) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100; ++i) {
    const DType dtype = pick(random, {DType::kU8, DType::kI8});
    Case c = random_pool(random, "max_pool", dtype);
    Dims dims = c.in[0]->dims();
    dims[1] = pick<int64_t>(random, {1, 3, 17, 64, 116});
    for (size_t a = 2; a < dims.size(); ++a) dims[a] = std::min<int64_t>(dims[a], 40);
    c.in[0] = random_tensor(dtype, dims, random, {.wide = true});
    const std::string layout(op::channels_last(static_cast<int>(dims.size())));
    c.placed = {{layout, pick<int64_t>(random, {0, 1, 40})}};
    c.out_placed = {layout, pick<int64_t>(random, {0, 1, 40})};
    EXPECT_EQ(check(c, random), 1);
  }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
