#include <gtest/gtest.h>

#include "tessera/kernels/cpu/testing.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu::testing {
namespace {

// A group under construction: values are numbered once all inputs are there.
class Group {
 public:
  Group(std::mt19937_64& random, Case first) : random_(random), c_(std::move(first)) {
    c_.arity = c_.in.size();
    c_.constant.resize(c_.in.size());
    c_.placed.resize(c_.in.size());
  }

  // `last` reads what was made before it, and `operands`.
  void step(std::string op, op::Attrs attrs, std::vector<Tensor> operands, bool constant = false,
            Placement at = {}) {
    CaseStep s{std::move(op), std::move(attrs), {kBefore}};
    for (Tensor& t : operands) {
      s.in.push_back(static_cast<int>(c_.in.size()));
      c_.in.push_back(std::move(t));
      c_.constant.push_back(constant);
      c_.placed.push_back(at);
    }
    if (s.in.size() == 2 && s.op != "conv" && s.op != "dot" && random_() % 2)
      std::swap(s.in[0], s.in[1]);
    c_.steps.push_back(std::move(s));
  }

  // A function of the result so far, whose sizes are `y`: its operand is one number, one per
  // channel (axis `channels`), or of the same sizes.
  void function(const Dims& y, size_t channels, const std::string& layout) {
    const auto op = pick<std::string>(
        random_, {"relu", "hard_swish", "silu", "add", "add", "mul", "mul", "max", "min"});
    if (op == "relu" || op == "hard_swish" || op == "silu") return step(op, {}, {});
    Dims dims = y;
    const auto kind = random_() % 3;
    if (kind < 2)
      for (size_t a = 0; a < dims.size(); ++a)
        if (kind == 0 || a != channels) dims[a] = 1;
    step(op, {}, {random_tensor(DType::kF32, dims, random_)}, false,
         {kind == 2 ? layout : std::string(), 0, {}});
  }

  Case done() {
    for (size_t k = 0; k < c_.steps.size(); ++k)
      for (int& v : c_.steps[k].in)
        if (v == kBefore) v = static_cast<int>(c_.in.size() + k);
    return std::move(c_);
  }

 private:
  static constexpr int kBefore = 1 << 20;
  std::mt19937_64& random_;
  Case c_;
};

struct Image {
  int64_t n, c, h, w;
  Dims dims() const { return {n, c, h, w}; }
};

void pointwise(Group& g, Image& y, int64_t m, std::mt19937_64& random) {
  std::vector<Tensor> operands{random_tensor(DType::kF32, {m, y.c, 1, 1}, random, {.scale = 0.2})};
  if (random() % 2) operands.push_back(random_tensor(DType::kF32, {m}, random));
  g.step("conv", {}, std::move(operands), true);
  y.c = m;
}

Placement channels_last(std::mt19937_64& random) {
  return {std::string(op::channels_last(4)), pick<int64_t>(random, {0, 0, 1, 16, 40}), {}};
}

TEST(FedProduct, BehindDepthwise) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    Image y{size_between(random, 1, 2), 0, size_between(random, 1, 20),
            size_between(random, 1, 30)};
    const int64_t kernel = pick<int64_t>(random, {1, 3, 3, 5, 7}), pad = kernel / 2,
                  narrow = pick<int64_t>(random, {1, 1, 1, 2, 4}),
                  groups = pick<int64_t>(random, {2, 3, 17, 24, 116}),
                  stride = pick<int64_t>(random, {1, 1, 2});
    y.c = narrow * groups;
    const Placement at = channels_last(random);
    Case c{.op = "conv",
           .attrs = {{"strides", op::Ints{stride, stride}},
                     {"pads_begin", op::Ints{pad, pad}},
                     {"pads_end", op::Ints{pad, pad}},
                     {"groups", groups}}};
    c.in = {random_tensor(DType::kF32, y.dims(), random),
            random_tensor(DType::kF32, {y.c, narrow, kernel, kernel}, random, {.scale = 0.5})};
    if (random() % 2) c.in.push_back(random_tensor(DType::kF32, {y.c}, random));
    c.constant = {false, true, true};
    c.placed = {at};
    c.out_placed = channels_last(random);
    y.h = (y.h + 2 * pad - kernel) / stride + 1;
    y.w = (y.w + 2 * pad - kernel) / stride + 1;
    Group g(random, std::move(c));
    const int64_t products = kernel * kernel * narrow + y.c;
    for (auto k = random() % 3; k > 0; --k) g.function(y.dims(), 1, at.layout);
    pointwise(g, y, pick<int64_t>(random, {1, 3, 16, 17, 24, 116}), random);
    for (auto k = random() % 3; k > 0; --k) g.function(y.dims(), 1, at.layout);
    EXPECT_EQ(check(g.done(), random, {.rel = 32, .products = products}), 1);
  }
}

TEST(FedProduct, BehindFunctions) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200; ++i) {
    Image y{size_between(random, 1, 2), pick<int64_t>(random, {1, 3, 16, 17, 24, 116, 300}),
            size_between(random, 1, 20), size_between(random, 1, 30)};
    const Placement at = channels_last(random);
    Case c{.op = pick<std::string>(random, {"mul", "add", "relu", "silu"})};
    c.in = {random_tensor(DType::kF32, y.dims(), random)};
    c.placed = {at};
    if (c.op == "mul" || c.op == "add") {
      // As in squeeze and excitation.
      c.in.push_back(random_tensor(DType::kF32, {1, y.c, 1, 1}, random));
      c.placed.emplace_back();
      if (random() % 2) std::swap(c.in[0], c.in[1]), std::swap(c.placed[0], c.placed[1]);
    }
    c.out_placed = channels_last(random);
    const int64_t products = y.c;
    Group g(random, std::move(c));
    for (auto k = random() % 3; k > 0; --k) g.function(y.dims(), 1, at.layout);
    pointwise(g, y, pick<int64_t>(random, {1, 3, 16, 17, 24, 116}), random);
    for (auto k = random() % 3; k > 0; --k) g.function(y.dims(), 1, at.layout);
    EXPECT_EQ(check(g.done(), random, {.rel = 32, .products = products}), 1);
  }
}

TEST(FedProduct, BehindFunctionsOfRows) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    Dims y{size_between(random, 1, 3), size_between(random, 1, 40),
           pick<int64_t>(random, {1, 5, 16, 33, 256, 300})};
    const int64_t K = y[2], N = pick<int64_t>(random, {2, 5, 16, 33, 100});
    Case c{.op = pick<std::string>(random, {"mul", "add", "tanh", "gelu"})};
    c.in = {random_tensor(DType::kF32, y, random)};
    c.placed = {{"", pick<int64_t>(random, {0, 0, 3}), {}}};
    if (c.op == "mul" || c.op == "add") {
      c.in.push_back(random_tensor(DType::kF32, random() % 2 ? y : Dims{K}, random));
      c.placed.emplace_back();
    }
    const bool turned = random() % 2;
    Group g(random, std::move(c));
    for (auto k = random() % 3; k > 0; --k) g.function(y, 2, "");
    g.step("dot", {{"transpose_b", int64_t{turned}}},
           {random_tensor(DType::kF32, turned ? Dims{N, K} : Dims{K, N}, random, {.scale = 0.2})},
           true);
    y[2] = N;
    for (auto k = random() % 3; k > 0; --k) g.function(y, 2, "");
    EXPECT_EQ(check(g.done(), random, {.rel = 32, .products = K}), 1);
  }
}

// What is not finite stays where it was.
TEST(FedProduct, Propagates) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20; ++i) {
    Image y{1, 24, 9, 11};
    Case c{.op = "conv",
           .attrs = {{"pads_begin", op::Ints{1, 1}}, {"pads_end", op::Ints{1, 1}}, {"groups", 24}}};
    c.in = {random_tensor(DType::kF32, y.dims(), random, {.special = true}),
            random_tensor(DType::kF32, {24, 1, 3, 3}, random)};
    c.constant = {false, true};
    c.placed = {channels_last(random)};
    c.out_placed = channels_last(random);
    Group g(random, std::move(c));
    g.step("relu", {}, {});
    pointwise(g, y, 17, random);
    EXPECT_EQ(check(g.done(), random, {.rel = 1e30}), 1);
  }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
