// RNN, GRU and LSTM.
#include <algorithm>

#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

// ONNX's activation functions (names compare without case), ours, and the defaults of what they
// take.
struct Function {
  std::string_view onnx, name;
  bool takes_alpha, takes_beta;
  double alpha, beta;
};
constexpr Function kFunctions[] = {
    {"affine", "affine", true, true, 1, 0},
    {"elu", "elu", true, false, 1, 0},
    {"hardsigmoid", "hard_sigmoid", true, true, 0.2f, 0.5},
    {"leakyrelu", "leaky_relu", true, false, 0.01f, 0},
    {"relu", "relu", false, false, 0, 0},
    {"scaledtanh", "scaled_tanh", true, true, 1, 1},
    {"sigmoid", "sigmoid", false, false, 0, 0},
    {"softplus", "softplus", false, false, 0, 0},
    {"softsign", "softsign", false, false, 0, 0},
    {"tanh", "tanh", false, false, 0, 0},
    {"thresholdedrelu", "thresholded_relu", true, false, 1, 0},
};

// The activations with their alphas and betas, which functions that take one consume in turn.
Status set_activations(NodeContext& c, op::Strings names, op::Attrs& attrs) {
  const op::Floats alphas = c.floats("activation_alpha"), betas = c.floats("activation_beta");
  op::Floats alpha, beta;
  size_t next_alpha = 0, next_beta = 0;
  for (std::string& name : names) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
    auto f = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                          [&](auto& row) { return row.onnx == lower; });
    if (f == std::end(kFunctions)) return c.fail("unknown activation '{}'", name);
    alpha.push_back(f->takes_alpha && next_alpha < alphas.size() ? alphas[next_alpha++] : f->alpha);
    beta.push_back(f->takes_beta && next_beta < betas.size() ? betas[next_beta++] : f->beta);
    name = std::string(f->name);
  }
  attrs.set("activations", std::move(names));
  attrs.set("alpha", std::move(alpha));
  attrs.set("beta", std::move(beta));
  return {};
}

// With layout 1 the batch comes first in x, the states and the outputs. `defaults`: activations of
// one direction.
Status recurrent(NodeContext& c, std::string_view op, const op::Strings& defaults,
                 std::string_view flag, size_t outputs) {
  ir::Builder& b = c.b;
  if (c.input_count() < 3) return c.fail("has {} inputs, need at least 3", c.input_count());
  op::Attrs attrs;
  const std::string direction = c.s("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return c.fail("direction is '{}', need 'forward', 'reverse' or 'bidirectional'", direction);
  attrs.set("direction", direction);
  op::Strings names = c.strings("activations", defaults);
  const size_t needed = defaults.size() * (direction == "bidirectional" ? 2 : 1);
  if (!c.has_attr("activations") && names.size() < needed)
    names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() > needed) names.resize(needed);
  TRY(set_activations(c, std::move(names), attrs));
  if (c.has_attr("clip")) attrs.set("clip", c.f("clip", 0));
  if (!flag.empty() && c.i(flag, 0)) attrs.set(flag, int64_t{1});

  std::vector<ValueId> inputs = c.inputs;
  const bool batch_first = c.i("layout", 0) != 0;
  if (batch_first)
    for (size_t i : {size_t{0}, size_t{5}, size_t{6}})
      if (c.has(i)) inputs[i] = b.transpose(inputs[i], {1, 0, 2});
  std::vector<ValueId> results =
      b.ops(op, std::move(inputs), std::move(attrs), static_cast<int>(outputs));
  if (batch_first) {
    results[0] = b.transpose(results[0], {2, 0, 1, 3});
    for (size_t i = 1; i < results.size(); ++i) results[i] = b.transpose(results[i], {1, 0, 2});
  }
  for (size_t i = 0; i < results.size(); ++i) c.out(i, results[i]);
  return {};
}

Status rnn(NodeContext& c) { return recurrent(c, "rnn", {"Tanh"}, "", 2); }
Status gru(NodeContext& c) {
  return recurrent(c, "gru", {"Sigmoid", "Tanh"}, "linear_before_reset", 2);
}
Status lstm(NodeContext& c) {
  return recurrent(c, "lstm", {"Sigmoid", "Tanh", "Tanh"}, "input_forget", 3);
}

constexpr Converter kRows[] = {{"", "RNN", rnn}, {"", "GRU", gru}, {"", "LSTM", lstm}};

}  // namespace

std::span<const Converter> rnn_converters() { return kRows; }

}  // namespace tessera::import::onnx
