#include <gtest/gtest.h>

#include <limits>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

TEST(Rnn, MatchesTheReference) {
  std::mt19937_64 random(1);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const std::string op = pick<std::string>(random, {"rnn", "gru", "lstm"}),
                      direction =
                          pick<std::string>(random, {"forward", "reverse", "bidirectional"});
    const int64_t G = op == "rnn"   ? 1
                      : op == "gru" ? 3
                                    : 4,
                  D = direction == "bidirectional" ? 2 : 1,
                  functions = op == "rnn"   ? 1
                              : op == "gru" ? 2
                                            : 3;
    const int64_t T = size_between(random, 0, 6),
                  N = pick<int64_t>(random, {1, 1, 2, 3, 7, 12, 13, 27}),
                  I = pick<int64_t>(random, {1, 5, 16, 33}),
                  H = pick<int64_t>(random, {1, 3, 15, 16, 17, 35, 64});
    op::Strings names;
    for (int64_t k = 0; k < functions * D; ++k)
      names.push_back(i % 2 ? (k % functions == 0 && op != "rnn" ? "sigmoid" : "tanh")
                            : pick<std::string>(random, {"elu", "hard_sigmoid", "leaky_relu",
                                                         "relu", "scaled_tanh", "sigmoid",
                                                         "softplus", "softsign", "tanh"}));
    Case c{.op = op,
           .attrs = {{"direction", direction},
                     {"activations", names},
                     {"alpha", op::Floats(names.size(), 0.3)},
                     {"beta", op::Floats(names.size(), 0.4)}}};
    if (i % 3 == 0) c.attrs.set("clip", 0.7);
    if (op != "rnn" && random() % 2)
      c.attrs.set(op == "gru" ? "linear_before_reset" : "input_forget", int64_t{1});
    auto maybe = [&](const Dims& dims) {
      return random() % 2 ? std::optional(random_tensor(DType::kF32, dims, random, {.scale = 0.5}))
                          : std::nullopt;
    };
    auto weights = [&](const Dims& dims) {
      return random_tensor(DType::kF32, dims, random, {.scale = 0.3});
    };
    c.in = {weights({T, N, I}),    weights({D, G * H, I}), weights({D, G * H, H}),
            maybe({D, 2 * G * H}), std::nullopt,           maybe({D, N, H})};
    if (op == "lstm") {
      c.in.push_back(maybe({D, N, H}));
      c.in.push_back(maybe({D, 3 * H}));
    }
    if (random() % 2) {
      c.in[4] = *Tensor::make(DType::kI32, {N});
      for (int64_t n = 0; n < N; ++n) c.in[4]->set_i64(n, size_between(random, 0, T));
    }
    c.outputs = op == "lstm" ? 3 : 2;
    c.constant = {false, random() % 2 == 0, random() % 2 == 0};
    ran += check(c, random, {.rel = 512, .abs = 512});
  }
  EXPECT_EQ(ran, 120);
}

Case lstm(int64_t T, int64_t N, int64_t I, int64_t H, std::mt19937_64& random) {
  Case c{.op = "lstm",
         .attrs = {{"direction", "forward"},
                   {"activations", op::Strings{"sigmoid", "tanh", "tanh"}},
                   {"alpha", op::Floats(3, 0.0)},
                   {"beta", op::Floats(3, 0.0)}}};
  c.in = {random_tensor(DType::kF32, {T, N, I}, random),
          random_tensor(DType::kF32, {1, 4 * H, I}, random, {.scale = 0.3}),
          random_tensor(DType::kF32, {1, 4 * H, H}, random, {.scale = 0.3})};
  c.constant = {false, true, true};
  c.outputs = 3;
  return c;
}

// More rows of inputs than a work item has, and states of several panels.
TEST(Rnn, LongSequences) {
  std::mt19937_64 random(2);
  EXPECT_EQ(check(lstm(210, 1, 40, 48, random), random, {.rel = 4096, .abs = 4096}), 1);
  EXPECT_EQ(check(lstm(19, 25, 70, 33, random), random, {.rel = 4096, .abs = 4096}), 1);
}

// What is not a number in one sequence stays there.
TEST(Rnn, NotANumber) {
  std::mt19937_64 random(3);
  Case c = lstm(4, 5, 8, 20, random);
  c.in[0]->set_f64((2 * 5 + 3) * 8, std::numeric_limits<double>::quiet_NaN());
  c.in[0]->set_f64((1 * 5 + 1) * 8, std::numeric_limits<double>::infinity());
  EXPECT_EQ(check(c, random, {.rel = 512, .abs = 512}), 1);
}

TEST(Rnn, SaysWhatItRefuses) {
  std::mt19937_64 random(4);
  Case c = lstm(2, 1, 3, 4, random);
  c.in[0] = random_tensor(DType::kF64, {2, 1, 3}, random);
  std::vector<Tensor> out{random_tensor(DType::kF32, {2, 1, 1, 4}, random),
                          random_tensor(DType::kF32, {1, 1, 4}, random),
                          random_tensor(DType::kF32, {1, 1, 4}, random)};
  auto p = problem_of(c, out);
  ASSERT_TRUE(p);
  EXPECT_EQ(table().probe(*p)[0].refusal, "input 0 is f64, need f32");
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
