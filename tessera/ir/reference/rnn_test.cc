#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

struct Case {
  std::string op, direction;
  int64_t T, N, I, H;
  bool bias = true, lengths = false, initial = false, peepholes = false, flag = false;
  double clip = 0;
  op::Strings activations = {};
};

struct Node {
  std::vector<std::optional<Tensor>> inputs;
  op::Attrs attrs;
  int outputs;
};

Node node_of(const Case& c, DType type = DType::kF64) {
  const int64_t G = c.op == "rnn"   ? 1
                    : c.op == "gru" ? 3
                                    : 4,
                D = c.direction == "bidirectional" ? 2 : 1;
  op::Strings names = c.activations;
  if (names.empty())
    names = c.op == "rnn"   ? op::Strings{"tanh"}
            : c.op == "gru" ? op::Strings{"sigmoid", "tanh"}
                            : op::Strings{"sigmoid", "tanh", "tanh"};
  const op::Strings again = D == 2 && c.activations.empty() ? names : op::Strings{};
  names.insert(names.end(), again.begin(), again.end());
  const size_t count = names.size();
  Node n;
  n.attrs = {{"direction", c.direction},
             {"activations", names},
             {"alpha", op::Floats(count, 0.3)},
             {"beta", op::Floats(count, 0.6)}};
  if (c.clip > 0) n.attrs.set("clip", c.clip);
  if (c.flag) n.attrs.set(c.op == "gru" ? "linear_before_reset" : "input_forget", int64_t{1});
  n.inputs = {random(type, {c.T, c.N, c.I}, 1), random(type, {D, G * c.H, c.I}, 2),
              random(type, {D, G * c.H, c.H}, 3)};
  n.inputs.resize(G == 4 ? 8 : 6);
  if (c.bias) n.inputs[3] = random(type, {D, 2 * G * c.H}, 4);
  if (c.lengths) {
    Tensor lengths = *Tensor::make(DType::kI32, {c.N});
    for (int64_t i = 0; i < c.N; ++i) lengths.set_i64(i, std::max<int64_t>(0, c.T - i));
    n.inputs[4] = lengths;
  }
  if (c.initial) n.inputs[5] = random(type, {D, c.N, c.H}, 5);
  if (c.initial && G == 4) n.inputs[6] = random(type, {D, c.N, c.H}, 6);
  if (c.peepholes) n.inputs[7] = random(type, {D, 3 * c.H}, 7);
  n.outputs = G == 4 ? 3 : 2;
  return n;
}

TEST(Recurrent, DecompositionHasTheValuesOfTheLoops) {
  const Case cases[] = {
      {.op = "rnn", .direction = "forward", .T = 3, .N = 2, .I = 4, .H = 5},
      {.op = "rnn",
       .direction = "bidirectional",
       .T = 3,
       .N = 4,
       .I = 1,
       .H = 2,
       .lengths = true,
       .initial = true,
       .clip = 0.25},
      {.op = "rnn",
       .direction = "reverse",
       .T = 1,
       .N = 1,
       .I = 1,
       .H = 1,
       .bias = false,
       .activations = {"thresholded_relu"}},
      {.op = "rnn",
       .direction = "bidirectional",
       .T = 2,
       .N = 1,
       .I = 3,
       .H = 2,
       .activations = {"softsign", "scaled_tanh"}},
      {.op = "gru",
       .direction = "forward",
       .T = 4,
       .N = 2,
       .I = 3,
       .H = 2,
       .initial = true,
       .flag = true},
      {.op = "gru",
       .direction = "reverse",
       .T = 4,
       .N = 6,
       .I = 3,
       .H = 2,
       .lengths = true,
       .initial = true},
      {.op = "gru",
       .direction = "bidirectional",
       .T = 2,
       .N = 2,
       .I = 3,
       .H = 2,
       .bias = false,
       .activations = {"hard_sigmoid", "elu", "affine", "leaky_relu"}},
      {.op = "lstm", .direction = "forward", .T = 3, .N = 2, .I = 4, .H = 3, .peepholes = true},
      {.op = "lstm",
       .direction = "bidirectional",
       .T = 3,
       .N = 3,
       .I = 2,
       .H = 3,
       .lengths = true,
       .initial = true,
       .peepholes = true,
       .clip = 0.5},
      {.op = "lstm",
       .direction = "reverse",
       .T = 2,
       .N = 1,
       .I = 2,
       .H = 1,
       .flag = true,
       .activations = {"relu", "softplus", "tanh"}},
      {.op = "lstm", .direction = "forward", .T = 0, .N = 2, .I = 2, .H = 3, .initial = true},
      {.op = "lstm", .direction = "forward", .T = 2, .N = 0, .I = 2, .H = 3},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {} T={} N={}", c.op, c.direction, c.T, c.N));
    const Node n = node_of(c);
    auto loops = run_op(c.op, n.inputs, n.attrs, n.outputs),
         graph = run_op(c.op, n.inputs, n.attrs, n.outputs, true);
    ASSERT_TRUE(loops) << loops.error().message;
    ASSERT_TRUE(graph) << graph.error().message;
    for (size_t i = 0; i < loops->size(); ++i) {
      const Tensor &a = (*loops)[i].tensor(), &b = (*graph)[i].tensor();
      ASSERT_EQ(a.dims(), b.dims());
      for (int64_t k = 0; k < a.count(); ++k)
        ASSERT_NEAR(a.f64(k), b.f64(k), 1e-12) << "output " << i << " at " << k;
    }
  }
}

TEST(Recurrent, HasTheValueWorkedOutByHand) {
  // h1 = tanh(2 * 0.5) , h2 = tanh(2 * -1 + 3 * h1)
  const op::Attrs attrs{
      {"activations", op::Strings{"tanh"}}, {"alpha", op::Floats{0}}, {"beta", op::Floats{0}}};
  auto y = run_op("rnn", {f32({2, 1, 1}, {0.5, -1}), f32({1, 1, 1}, {2}), f32({1, 1, 1}, {3})},
                  attrs, 2);
  ASSERT_TRUE(y) << y.error().message;
  const double h1 = std::tanh(1), h2 = std::tanh(-2 + 3 * h1);
  EXPECT_NEAR((*y)[0].tensor().f64(0), h1, 1e-6);
  EXPECT_NEAR((*y)[1].tensor().f64(0), h2, 1e-6);
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  Node n = node_of(
      {.op = "lstm", .direction = "forward", .T = 2, .N = 2, .I = 2, .H = 2, .lengths = true});
  n.inputs[4]->set_i64(1, 3);
  EXPECT_FALSE(run_op("lstm", n.inputs, n.attrs, 3));
  n.inputs[4].reset();
  n.inputs[3] = random(DType::kF64, {1, 7}, 1);
  EXPECT_FALSE(run_op("lstm", n.inputs, n.attrs, 3));
  n.inputs[3].reset();
  n.attrs.set("activations", op::Strings{"tanh", "tanh", "cosh"});
  EXPECT_FALSE(run_op("lstm", n.inputs, n.attrs, 3));
}

}  // namespace
}  // namespace tessera::ir::reference
