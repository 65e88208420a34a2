// What oneDNN claims is what the reference gives. Skipped where it is not installed.
#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/kernels/onednn/library.h"
#include "tessera/kernels/onednn/table.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::onednn {
namespace {

using namespace cpu::testing;  // NOLINT: a test's vocabulary

class Onednn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library()) GTEST_SKIP() << library().error().message;
  }
  std::mt19937_64 random{1};

  Tensor floats(const Dims& dims, Fill fill = {}) {
    return random_tensor(DType::kF32, dims, random, fill);
  }
};

// For other processors oneDNN has few kernels.
void expect_most([[maybe_unused]] int ran, [[maybe_unused]] int least) {
#if defined(__x86_64__)
  EXPECT_GE(ran, least);
#endif
}

std::string channels_last(const Dims& dims) {
  return std::string(op::channels_last(static_cast<int>(dims.size())));
}

// Sums and products with operands of the result's shape or of one number per column; relu as the
// last.
void add_steps(Case& c, const Dims& result, const Dims& vector, const Placement& placed,
               std::mt19937_64& random) {
  c.arity = c.in.size();
  const int steps = static_cast<int>(size_between(random, 1, 3));
  std::vector<std::string> ops;
  int inputs = static_cast<int>(c.in.size());
  for (int i = 0; i < steps; ++i) {
    ops.push_back(pick<std::string>(random, {"add", "mul"}));
    if (i + 1 == steps && random() % 2) ops.back() = "relu";
    inputs += ops.back() != "relu";
  }
  int next = static_cast<int>(c.in.size());
  for (int i = 0; i < steps; ++i) {
    CaseStep step{ops[static_cast<size_t>(i)], {}, {inputs + i}};
    if (step.op != "relu") {
      const bool full = random() % 2;
      c.in.push_back(random_tensor(DType::kF32, full ? result : vector, random));
      c.placed.resize(c.in.size());
      if (full) c.placed.back() = placed;
      step.in.insert(step.in.begin() + static_cast<int64_t>(random() % 2), next++);
    }
    c.steps.push_back(std::move(step));
  }
}

TEST_F(Onednn, Dot) {
  int ran = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t m = size_between(random, 1, 70), k = size_between(random, 1, 70),
                  n = size_between(random, 1, 70);
    const bool ta = random() % 3 == 0, tb = random() % 2;
    Dims a = ta ? Dims{k, m} : Dims{m, k}, b = tb ? Dims{n, k} : Dims{k, n}, y{m, n};
    if (random() % 2) {
      a.insert(a.begin(), 3);
      y.insert(y.begin(), 3);
      if (random() % 2) b.insert(b.begin(), 3);
    }
    Case c{.op = "dot",
           .attrs = {{"transpose_a", int64_t{ta}}, {"transpose_b", int64_t{tb}}},
           .in = {floats(a), floats(b)},
           .constant = {false, random() % 2 == 0}};
    if (random() % 2) add_steps(c, y, {n}, {}, random);
    ran += check(table(), c, random, {.products = k});
  }
  expect_most(ran, 50);
}

// Large enough to be cut into items.
TEST_F(Onednn, DotInItems) {
  for (const Dims& lead : {Dims{}, Dims{3}}) {
    Dims a = lead, b = lead;
    a.insert(a.end(), {lead.empty() ? 260 : 100, 130}), b.insert(b.end(), {130, 310});
    Case c{.op = "dot", .in = {floats(a), floats(b)}, .constant = {false, lead.empty()}};
    EXPECT_EQ(check(table(), c, random, {.products = 130}), 1);
  }
}

TEST_F(Onednn, Conv) {
  int ran = 0;
  for (int i = 0; i < 80; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 3));
    const int64_t groups = pick<int64_t>(random, {1, 1, 1, 2, 8}),
                  m = pick<int64_t>(random, {1, 3, 8, 16, 20}),
                  per = groups == 8 ? 1 : pick<int64_t>(random, {1, 3, 4, 8, 16});
    Dims x{size_between(random, 1, 2), groups * per}, w{groups * m, per};
    op::Ints strides, dilations, begin, end;
    const int64_t kernel = pick<int64_t>(random, {1, 3, 5});
    for (int a = 0; a < axes; ++a) {
      strides.push_back(size_between(random, 1, 2));
      dilations.push_back(kernel == 3 ? size_between(random, 1, 2) : 1);
      begin.push_back(size_between(random, 0, kernel / 2));
      end.push_back(size_between(random, 0, kernel / 2));
      w.push_back(kernel);
      x.push_back(size_between(random, 9, axes == 3 ? 10 : 23));
    }
    Case c{.op = "conv",
           .attrs = {{"strides", strides},
                     {"dilations", dilations},
                     {"pads_begin", begin},
                     {"pads_end", end},
                     {"groups", groups}}};
    c.in = {floats(x), floats(w)};
    if (random() % 2) c.in.push_back(floats({w[0]}));
    c.constant = {false, true, true};
    const bool last = random() % 2;
    Placement place;
    if (last) place.layout = channels_last(x);
    c.placed = {place};
    c.out_placed = place;
    Dims y{x[0], w[0]};
    for (int a = 0; a < axes; ++a) {
      const auto at = static_cast<size_t>(a);
      y.push_back(
          (x[at + 2] + begin[at] + end[at] - (kernel - 1) * dilations[at] - 1) / strides[at] + 1);
    }
    Dims vector(y.size(), 1);
    vector[1] = y[1];
    if (random() % 2) add_steps(c, y, vector, place, random);
    ran += check(table(), c, random, {.products = w[1] * kernel * kernel * kernel});
  }
  expect_most(ran, 40);
}

TEST_F(Onednn, ConvInItems) {
  for (const int64_t groups : {1, 32})
    for (const bool last : {false, true}) {
      const Dims x{1, 32, 61, 57}, w{64, 32 / groups, 5, 5};
      Case c{.op = "conv",
             .attrs = {{"strides", op::Ints{2, 1}},
                       {"pads_begin", op::Ints{2, 1}},
                       {"pads_end", op::Ints{1, 2}},
                       {"groups", groups}},
             .in = {floats(x), floats(w)},
             .constant = {false, true}};
      Placement place;
      if (last) place.layout = channels_last(x);
      c.placed = {place};
      c.out_placed = place;
      expect_most(check(table(), c, random, {.products = 800}), 1);
    }
}

TEST_F(Onednn, Pool) {
  int ran = 0;
  for (int i = 0; i < 60; ++i) {
    const int axes = static_cast<int>(size_between(random, 1, 3));
    Dims x{size_between(random, 1, 2), pick<int64_t>(random, {1, 8, 16, 19})};
    op::Ints kernel, strides, begin, end;
    for (int a = 0; a < axes; ++a) {
      kernel.push_back(size_between(random, 1, 4));
      strides.push_back(size_between(random, 1, 3));
      begin.push_back(size_between(random, 0, kernel.back() - 1));
      end.push_back(size_between(random, 0, kernel.back() - 1));
      x.push_back(size_between(random, 5, axes == 3 ? 9 : 40));
    }
    Case c{.op = "average_pool",
           .attrs = {{"kernel", kernel},
                     {"strides", strides},
                     {"pads_begin", begin},
                     {"pads_end", end},
                     {"ceil_mode", size_between(random, 0, 1)},
                     {"count_include_pad", size_between(random, 0, 1)}},
           .in = {floats(x)}};
    Placement place;
    if (random() % 2) place.layout = channels_last(x);
    c.placed = {place};
    c.out_placed = place;
    ran += check(table(), c, random, {});
  }
  expect_most(ran, 20);
}

TEST_F(Onednn, Rows) {
  for (int i = 0; i < 30; ++i) {
    const Dims dims{size_between(random, 1, 9), size_between(random, 1, 40),
                    pick<int64_t>(random, {1, 2, 7, 16, 33, 256, 1000})};
    Case norm{.op = "layer_norm",
              .attrs = {{"epsilon", 1e-3}},
              .in = {floats(dims), floats({dims[2]}), floats({dims[2]})}};
    EXPECT_LE(check(table(), norm, random, {.rel = 64, .abs = 256}), 1);
  }
}

TEST_F(Onednn, KeepsNan) {
  for (const char* op : {"relu", "add", "mul"}) {
    Case c{.op = "dot", .in = {floats({9, 20}, {.special = true}), floats({20, 35})}};
    c.arity = 2;
    c.steps = {{op, {}, {std::string_view(op) == "relu" ? 2 : 3}}};
    if (c.steps[0].op != "relu") {
      c.in.push_back(floats({35}));
      c.steps[0].in.push_back(2);
    }
    EXPECT_EQ(check(table(), c, random, {.rel = 1e30, .products = 0}), 1) << op;
  }
  Case pool{.op = "average_pool",
            .attrs = {{"kernel", op::Ints{2, 2}}},
            .in = {floats({1, 16, 9, 9}, {.special = true})}};
  check(table(), pool, random, {.rel = 1e30, .products = 0});
  Case conv{.op = "conv",
            .attrs = {{"pads_begin", op::Ints{1, 1}}, {"pads_end", op::Ints{1, 1}}},
            .in = {floats({1, 16, 9, 9}, {.special = true}), floats({32, 16, 3, 3})},
            .constant = {false, true}};
  conv.arity = 2;
  conv.steps = {{"relu", {}, {2}}};
  expect_most(check(table(), conv, random, {.rel = 1e30, .products = 0}), 1);
  Case norm{.op = "layer_norm",
            .in = {floats({40, 33}, {.special = true}), floats({33}), floats({33})}};
  EXPECT_EQ(check(table(), norm, random, {.rel = 1e30, .products = 0}), 1);
}

TEST_F(Onednn, KeepsOneThread) {
  const int before = library()->omp_get_max_threads();
  check(table(), {.op = "dot", .in = {floats({8, 16}), floats({16, 8})}}, random, {.products = 16});
  EXPECT_EQ(library()->omp_get_max_threads(), before);
}

TEST(OnednnTable, SaysWhyNot) {
  const Case c{.op = "dot",
               .in = {*Tensor::make(DType::kF64, {2, 2}), *Tensor::make(DType::kF64, {2, 2})}};
  const auto claims = table().probe(*problem_of(c, {*Tensor::make(DType::kF64, {2, 2})}));
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].refusal, "input 0 is f64, need f32");
}

}  // namespace
}  // namespace tessera::kernels::onednn
