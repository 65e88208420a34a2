// A decoding step with past keys and values, as language models are exported: its sizes grow by one
// with every token, and planning must not happen again for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "tessera/ir/text.h"
#include "tessera/session/model.h"

namespace tessera::session {
namespace {

using op::Tensor;
using op::Value;

// p: past length; heads 2, head size 8, width 16, vocabulary 32. The past is (keys and values,
// batch, heads, p, size).
constexpr std::string_view kStep = R"(graph @"step"(%0 "ids": i64[1,1], %1 "past": f32[2,1,2,p,8]) {
  %2 "words" = constant f32[32,16] @0
  %3 "places" = constant f32[128,16] @1
  %4 "w_qkv" = constant f32[16,48] @2
  %5 "w_out" = constant f32[16,16] @3
  %6 = gather(%2, %0) {axis = 0} : f32[1,1,16]
  %7 = shape_of(%1) : i64[5]
  %8 = constant i64[1] {3}
  %9 = constant i64[1] {4}
  %10 = constant i64[1] {0}
  %11 = slice(%7, %8, %9, %10) : i64[1]
  %12 = gather(%3, %11) {axis = 0} : f32[1,16]
  %13 = add(%6, %12) : f32[1,1,16]
  %14 = dot(%13, %4) : f32[1,1,48]
  %15 = constant i64[1] {16}
  %16 = constant i64[1] {32}
  %17 = constant i64[1] {48}
  %18 = constant i64[1] {2}
  %19 = slice(%14, %10, %15, %18) : f32[1,1,16]
  %20 = slice(%14, %15, %16, %18) : f32[1,1,16]
  %21 = slice(%14, %16, %17, %18) : f32[1,1,16]
  %22 = constant i64[4] {1, 1, 2, 8}
  %23 = reshape(%19, %22) : f32[1,1,2,8]
  %24 = reshape(%20, %22) : f32[1,1,2,8]
  %25 = reshape(%21, %22) : f32[1,1,2,8]
  %26 = transpose(%23) {perm = [0, 2, 1, 3]} : f32[1,2,1,8]
  %27 = transpose(%24) {perm = [0, 2, 1, 3]} : f32[1,2,1,8]
  %28 = transpose(%25) {perm = [0, 2, 1, 3]} : f32[1,2,1,8]
  %29 = constant i64[] {0}
  %30 = constant i64[] {1}
  %31 = gather(%1, %29) {axis = 0} : f32[1,2,p,8]
  %32 = gather(%1, %30) {axis = 0} : f32[1,2,p,8]
  %33 "keys" = concat(%31, %27) {axis = 2} : f32[1,2,p + 1,8]
  %34 "values" = concat(%32, %28) {axis = 2} : f32[1,2,p + 1,8]
  %35 = dot(%26, %33) {transpose_b = 1} : f32[1,2,1,p + 1]
  %36 "attention" = softmax(%35) {axis = 3} : f32[1,2,1,p + 1]
  %37 = dot(%36, %34) : f32[1,2,1,8]
  %38 = transpose(%37) {perm = [0, 2, 1, 3]} : f32[1,1,2,8]
  %39 = constant i64[3] {1, 1, 16}
  %40 = reshape(%38, %39) : f32[1,1,16]
  %41 = dot(%40, %5) : f32[1,1,16]
  %42 = add(%13, %41) : f32[1,1,16]
  %43 = dot(%42, %2) {transpose_b = 1} : f32[1,1,32]
  %44 = unsqueeze(%33, %10) : f32[1,1,2,p + 1,8]
  %45 = unsqueeze(%34, %10) : f32[1,1,2,p + 1,8]
  %46 = concat(%44, %45) {axis = 0} : f32[2,1,2,p + 1,8]
  return %43 "logits", %46 "present"
}
)";

Tensor random_tensor(op::Dims dims, unsigned seed) {
  Tensor t = *Tensor::make(DType::kF32, std::move(dims));
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 0.3F);
  for (float& v : t.mutable_as<float>()) v = normal(engine);
  return t;
}

std::unique_ptr<Model> load(const std::string& device) {
  auto graph = ir::parse(kStep, {random_tensor({32, 16}, 1), random_tensor({128, 16}, 2),
                                 random_tensor({16, 48}, 3), random_tensor({16, 16}, 4)});
  EXPECT_TRUE(graph) << graph.error().message;
  auto model = Model::from_graph(*std::move(graph), {.device = device});
  EXPECT_TRUE(model) << model.error().message;
  return *std::move(model);
}

TEST(Past, SixtyFourLengthsPlanAtMostThreeTimes) {
  auto device = load("cpu"), reference = load("reference");
  Value past = random_tensor({2, 1, 2, 1, 8}, 5);
  for (int64_t length = 1; length <= 64; ++length) {
    Tensor ids = *Tensor::make(DType::kI64, {1, 1});
    ids.set_i64(0, length % 32);
    const std::map<std::string, Value> inputs{{"ids", ids}, {"past", past}};
    auto ours = device->run(inputs), theirs = reference->run(inputs);
    ASSERT_TRUE(theirs) << theirs.error().message;
    ASSERT_TRUE(ours) << "length " << length << ": " << ours.error().message;
    for (size_t i = 0; i < 2; ++i) {
      const Tensor &x = (*ours)[i].tensor(), &y = (*theirs)[i].tensor();
      ASSERT_EQ(x.dims(), y.dims());
      for (int64_t k = 0; k < x.count(); ++k)
        ASSERT_NEAR(x.f64(k), y.f64(k), 1e-5)
            << "length " << length << ", output " << i << ", element " << k;
    }
    past = (*ours)[1];  // the next step reads what this one wrote
  }
  EXPECT_LE(device->counters().plans, 3);
  EXPECT_EQ(past.tensor().dims(), (op::Dims{2, 1, 2, 65, 8}));
  // The attention writes the new cache where it belongs: nothing is copied beside.
  for (const plan::Instruction& i : device->plan()->main.body) {
    const std::string_view op = i.op ? i.op->name : "";
    EXPECT_TRUE(op != "concat" && op != "relayout") << op;
  }
}

// The same of an exported model: inputs input_ids (1, 1) and past (layers, 2, 1, heads, length,
// size), outputs logits and past with one more. tools/models.py --all names one.
TEST(Past, SixtyFourLengthsOfAnExportedModelPlanAtMostThreeTimes) {
  const char* path = std::getenv("TESSERA_PAST_MODEL");
  if (!path) GTEST_SKIP() << "TESSERA_PAST_MODEL names no model";
  auto model = Model::load(path);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_EQ((*model)->inputs().size(), 2u);
  ASSERT_TRUE((*model)->inputs()[1].type.ranked());
  op::Dims dims;
  for (const op::Expr& d : *(*model)->inputs()[1].type.shape)
    dims.push_back(d.constant().value_or(1));
  Value past = random_tensor(dims, 5);
  std::vector<double> bind_us;  // per 1,000 instructions
  for (int64_t length = 1; length <= 64; ++length) {
    Tensor ids = *Tensor::make(DType::kI64, {1, 1});
    ids.set_i64(0, length);
    auto outputs =
        (*model)->run({{(*model)->inputs()[0].name, ids}, {(*model)->inputs()[1].name, past}});
    ASSERT_TRUE(outputs) << "length " << length << ": " << outputs.error().message;
    past = (*outputs)[1];
    ++dims[4];
    ASSERT_EQ(past.tensor().dims(), dims);
    const Counters counters = (*model)->counters();
    bind_us.push_back(counters.bind.value * 1e9 / static_cast<double>(counters.kernel_launches));
  }
  std::sort(bind_us.begin(), bind_us.end());
  RecordProperty("bind_us_per_1000", fmt::format("{:.1f}", bind_us[bind_us.size() / 2]));
  EXPECT_LE((*model)->counters().plans, 3);
  EXPECT_EQ((*model)->counters().reference_launches, 0);
}

}  // namespace
}  // namespace tessera::session
