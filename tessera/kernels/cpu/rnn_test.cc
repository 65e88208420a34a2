#include <gtest/gtest.h>

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
    const int64_t T = size_between(random, 0, 6), N = size_between(random, 1, 3),
                  I = pick<int64_t>(random, {1, 5, 16, 33}),
                  H = pick<int64_t>(random, {1, 3, 16, 35});
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
    ran += check(c, random, {.rel = 512, .abs = 512});
  }
  EXPECT_EQ(ran, 120);
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
