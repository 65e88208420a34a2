// Whole models on simulated chips: within the error of their type of what the reference computes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tessera/ir/text.h"
#include "tessera/session/model.h"

namespace tessera::session {
namespace {

using op::Tensor;

Tensor random_tensor(DType type, op::Dims dims, int seed, double scale) {
  Tensor t = *Tensor::make(type, std::move(dims));
  std::mt19937 engine(static_cast<unsigned>(seed));
  std::normal_distribution<double> normal(0, scale);
  for (int64_t i = 0; i < t.count(); ++i) t.set_f64(i, normal(engine));
  return t;
}

struct Case {
  std::string_view text;  // T stands for the type
  std::vector<op::Dims> weights;
  op::Dims input;
};

std::string typed(std::string_view text, std::string_view type) {
  std::string out;
  for (char c : text)
    if (c == 'T')
      out += type;
    else
      out += c;
  return out;
}

// Runs a model of the type on the chip and on the interpreter; the counters of the chip's run.
Counters compare(const Case& c, DType type, const std::string& chip) {
  const auto load = [&](const std::string& device) {
    std::vector<Tensor> store;
    for (size_t i = 0; i < c.weights.size(); ++i)
      store.push_back(random_tensor(type, c.weights[i], static_cast<int>(i) + 1,
                                    1 / std::sqrt(static_cast<double>(c.weights[i][0]))));
    auto graph = ir::parse(typed(c.text, name_of(type)), store);
    EXPECT_TRUE(graph) << graph.error().message;
    auto model = Model::from_graph(*std::move(graph), {.device = device});
    EXPECT_TRUE(model) << model.error().message;
    return *std::move(model);
  };
  const auto simulated = load("sim:" + chip), reference = load("reference");
  const std::map<std::string, op::Value> inputs = {
      {"x", op::Value(random_tensor(type, c.input, 99, 1))}};
  const auto got = simulated->run(inputs), want = reference->run(inputs);
  EXPECT_TRUE(got) << got.error().message;
  EXPECT_TRUE(want);
  if (!got || !want) return {};
  const Tensor &x = (*got)[0].tensor(), &y = (*want)[0].tensor();
  // Some roundings of the type on the way.
  const double u = type == DType::kF16 ? 0x1p-11 : 0x1p-8;
  double worst = 0;
  for (int64_t k = 0; k < y.count(); ++k)
    worst = std::max(worst, std::abs(x.f64(k) - y.f64(k)) / (1 + std::abs(y.f64(k))));
  EXPECT_LE(worst, 16 * u) << chip;
  EXPECT_TRUE(std::isfinite(worst));
  return simulated->counters();
}

const Case kMlp = {R"(graph @"mlp"(%0 "x": T[5,64]) {
  %1 "w" = constant T[64,48] @0
  %2 "b" = constant T[48] @1
  %3 = dot(%0, %1) : T[5,48]
  %4 = add(%3, %2) : T[5,48]
  %5 = relu(%4) : T[5,48]
  %6 "v" = constant T[48,10] @2
  %7 = dot(%5, %6) : T[5,10]
  %8 = softmax(%7) : T[5,10]
  return %8 "y"
}
)",
                   {{64, 48}, {48}, {48, 10}},
                   {5, 64}};

// A line of convolutions as of ResNet, down to a class.
const Case kCnn = {R"(graph @"cnn"(%0 "x": T[1,3,17,17]) {
  %1 "w" = constant T[16,3,3,3] @0
  %2 "b" = constant T[16] @1
  %3 = conv(%0, %1, %2) {pads_begin = [1,1], pads_end = [1,1], strides = [2,2]} : T[1,16,9,9]
  %4 = relu(%3) : T[1,16,9,9]
  %5 = max_pool(%4) {kernel = [3,3], pads_begin = [1,1], pads_end = [1,1], strides = [2,2]} : T[1,16,5,5]
  %6 "v" = constant T[16,16,3,3] @2
  %7 = conv(%5, %6) {pads_begin = [1,1], pads_end = [1,1]} : T[1,16,5,5]
  %8 = add(%7, %5) : T[1,16,5,5]
  %9 = relu(%8) : T[1,16,5,5]
  %10 "d" = constant T[16,1,3,3] @3
  %11 = conv(%9, %10) {groups = 16, pads_begin = [1,1], pads_end = [1,1]} : T[1,16,5,5]
  %12 = global_average_pool(%11) : T[1,16,1,1]
  return %12 "y"
}
)",
                   {{16, 3, 3, 3}, {16}, {16, 16, 3, 3}, {16, 1, 3, 3}},
                   {1, 3, 17, 17}};

// A layer of a transformer: attention and what follows it.
const Case kTransformer = {R"(graph @"layer"(%0 "x": T[2,24,64]) {
  %1 "g" = constant T[64] @0
  %2 "h" = constant T[64] @1
  %3 = layer_norm(%0, %1, %2) {axis = -1} : T[2,24,64]
  %4 "wq" = constant T[64,64] @2
  %5 "wk" = constant T[64,64] @3
  %6 "wv" = constant T[64,64] @4
  %7 = dot(%3, %4) : T[2,24,64]
  %8 = dot(%3, %5) : T[2,24,64]
  %9 = dot(%3, %6) : T[2,24,64]
  %10 = dot(%7, %8) {transpose_b = 1} : T[2,24,24]
  %11 = softmax(%10) : T[2,24,24]
  %12 = dot(%11, %9) : T[2,24,64]
  %13 = add(%12, %0) : T[2,24,64]
  %14 "w1" = constant T[64,256] @5
  %15 = dot(%13, %14) : T[2,24,256]
  %16 = gelu(%15) : T[2,24,256]
  %17 "w2" = constant T[256,64] @6
  %18 = dot(%16, %17) : T[2,24,64]
  %19 = add(%18, %13) : T[2,24,64]
  return %19 "y"
}
)",
                           {{64}, {64}, {64, 64}, {64, 64}, {64, 64}, {64, 256}, {256, 64}},
                           {2, 24, 64}};

class Simulated : public ::testing::TestWithParam<std::pair<const char*, DType>> {
 protected:
  Counters compare(const Case& c) {
    return session::compare(c, GetParam().second, GetParam().first);
  }
};

TEST_P(Simulated, Mlp) {
  const Counters c = compare(kMlp);
  EXPECT_EQ(c.reference_launches, 0);
  ASSERT_TRUE(c.simulated);
  EXPECT_GT(c.simulated->value, 0);
  EXPECT_LT(c.simulated->value, 1e-3);
}

TEST_P(Simulated, Cnn) { EXPECT_EQ(compare(kCnn).reference_launches, 0); }

// Scores of attention are taken in f32, which not every matrix unit multiplies.
TEST_P(Simulated, Transformer) {
  const bool multiplies_f32 = std::string_view(GetParam().first) == "ascend910b2";
  EXPECT_LE(compare(kTransformer).reference_launches, multiplies_f32 ? 0 : 1);
}

INSTANTIATE_TEST_SUITE_P(Chips, Simulated,
                         ::testing::Values(std::pair("ascend910b2", DType::kF16),
                                           std::pair("ascend310p3", DType::kF16),
                                           std::pair("tpu_v5e", DType::kBF16),
                                           std::pair("h100_sxm", DType::kF16)),
                         [](const auto& i) { return std::string(i.param.first); });

}  // namespace
}  // namespace tessera::session
