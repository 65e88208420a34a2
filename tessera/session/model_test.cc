#include "tessera/session/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "tessera/ir/text.h"

namespace tessera::session {
namespace {

using op::Tensor;
using op::Value;
using Inputs = std::map<std::string, Value>;

Tensor random_tensor(op::Dims dims, int seed) {
  Tensor t = *Tensor::make(DType::kF32, std::move(dims));
  std::mt19937 engine(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  for (float& v : t.mutable_as<float>()) v = normal(engine);
  return t;
}

std::unique_ptr<Model> load(std::string_view text, LoadOptions options = {},
                            std::vector<Tensor> store = {}) {
  auto graph = ir::parse(text, store);
  EXPECT_TRUE(graph) << graph.error().message;
  auto model = Model::from_graph(*std::move(graph), options);
  EXPECT_TRUE(model) << model.error().message;
  return *std::move(model);
}

// Device and interpreter agree, on every output.
void expect_same(Model& device, Model& reference, const Inputs& inputs) {
  auto a = device.run(inputs), b = reference.run(inputs);
  ASSERT_TRUE(b) << b.error().message;
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_EQ(a->size(), b->size());
  for (size_t i = 0; i < a->size(); ++i) {
    const Tensor &x = (*a)[i].tensor(), &y = (*b)[i].tensor();
    ASSERT_EQ(x.dims(), y.dims()) << "output " << i;
    for (int64_t k = 0; k < x.count(); ++k)
      ASSERT_NEAR(x.f64(k), y.f64(k), 1e-5 * (1 + std::abs(y.f64(k))))
          << "output " << i << ", element " << k;
  }
}

constexpr std::string_view kMlp = R"(graph @"mlp"(%0 "x": f32[n,4]) {
  %1 "w" = constant f32[4,8] @0
  %2 "b" = constant f32[8] @1
  %3 "h" = dot(%0, %1) : f32[n,8] from "matmul"
  %4 = add(%3, %2) : f32[n,8] from "bias"
  %5 = relu(%4) : f32[n,8] from "relu"
  %6 = shape_of(%5) : i64[2]
  return %5 "y", %6 "shape"
}
)";

std::vector<Tensor> mlp_weights() { return {random_tensor({4, 8}, 1), random_tensor({8}, 2)}; }

TEST(Model, RunsOnePlanForAllSizes) {
  auto device = load(kMlp, {}, mlp_weights()),
       reference = load(kMlp, {.device = "reference"}, mlp_weights());
  for (int64_t n : {3, 1, 17, 1, 64, 0, 5})
    expect_same(*device, *reference, {{"x", random_tensor({n, 4}, 3)}});
  // One row is a vector's business: another kernel, another class of shapes.
  EXPECT_LE(device->counters().plans, 2);
  EXPECT_LE(device->counters().kernel_launches, 3);  // fewer where steps are fused
  EXPECT_EQ(device->counters().reference_launches, 0);
}

TEST(Model, SaysWhatIsWrongWithInputs) {
  auto model = load(kMlp, {}, mlp_weights());
  auto message = [&](const Inputs& inputs) {
    auto r = model->run(inputs);
    EXPECT_FALSE(r);
    EXPECT_EQ(r.error().code, Code::kInvalidArgument);
    return r.error().message;
  };
  EXPECT_EQ(message({}), "input 'x' (f32[n,4]) is missing");
  EXPECT_EQ(message({{"x", random_tensor({2, 4}, 1)}, {"z", random_tensor({1}, 1)}}),
            "the model has no input 'z'");
  EXPECT_EQ(message({{"x", random_tensor({2, 5}, 1)}}), "'x': dim 1 is 5, need 4");
  EXPECT_EQ(message({{"x", random_tensor({8}, 1)}}), "'x' has rank 1 (f32[8]), need 2 (f32[n,4])");
  EXPECT_EQ(message({{"x", *Tensor::make(DType::kF64, {2, 4})}}), "'x' has type f64, need f32");
}

TEST(Model, OutputsOutliveTheModelAndInputsMayLieAnywhere) {
  auto model = load(kMlp, {}, mlp_weights());
  auto storage = std::make_shared<std::vector<std::byte>>(4 * 4 * 3 + 1);
  const Tensor aligned = random_tensor({3, 4}, 5);
  std::memcpy(storage->data() + 1, aligned.data(), 48);
  const Tensor odd = Tensor::borrow(DType::kF32, {3, 4}, storage->data() + 1, storage);
  auto a = *model->run({{"x", odd}}), b = *model->run({{"x", aligned}});
  model.reset();
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(a[0].tensor().f64(i), b[0].tensor().f64(i));
  EXPECT_EQ(a[1].tensor().to_i64s(), (std::vector<int64_t>{3, 8}));
}

TEST(Model, ManyThreadsShareOneModel) {
  auto model = load(kMlp, {}, mlp_weights());
  auto reference = load(kMlp, {.device = "reference"}, mlp_weights());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        expect_same(*model, *reference, {{"x", random_tensor({1 + (t * 7 + i) % 9, 4}, t)}});
    });
  threads.clear();
  EXPECT_LE(model->counters().plans, 2);
}

// x grows by a row of ones on each trip.
constexpr std::string_view kGrow = R"(graph @"grow"(%0 "x": f32[n,2], %1 "trips": i64[]) {
  %2 = constant bool[] {1}
  %3, %4 = loop(%1, %2, %0) {carried = 1} : f32[_0,2], f32[_1] {
    graph @"body"(%0: i64[], %1: bool[], %2: f32[_2,2]) {
      %3 = constant f32[1,2] {1.0, 1.0}
      %4 = concat(%2, %3) {axis = 0} : f32[_2 + 1,2]
      %5 = constant i64[2] {0, 1}
      %6 = reduce(%4, %5) {keepdims = 0, kind = "sum"} : f32[]
      return %1 "go", %4 "x", %6 "sum"
    }
  }
  return %3 "y", %4 "sums"
}
)";

TEST(Model, LoopWhoseValueGrowsPlansOnce) {
  auto device = load(kGrow), reference = load(kGrow, {.device = "reference"});
  for (int64_t trips : {0, 1, 5, 40})
    expect_same(*device, *reference,
                {{"x", random_tensor({3, 2}, 1)}, {"trips", Tensor::scalar(DType::kI64, trips)}});
  EXPECT_LE(device->counters().plans, 2);
}

TEST(Model, LimitsStopLoopsThatNeverEnd) {
  for (const char* place : {"cpu", "reference"}) {
    auto model = load(kGrow, {.device = place});
    const Inputs forever{{"x", random_tensor({3, 2}, 1)},
                         {"trips", Tensor::scalar(DType::kI64, INT64_MAX)}};
    RunOptions options;
    options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    auto late = model->run(forever, options);
    ASSERT_FALSE(late) << place;
    EXPECT_EQ(late.error().code, Code::kDeadlineExceeded) << place << ": " << late.error().message;
    auto small = load(kGrow, {.device = place, .memory_limit = Bytes(1 << 16)});
    auto full = small->run(forever);
    ASSERT_FALSE(full) << place;
    EXPECT_EQ(full.error().code, Code::kResourceExhausted) << place << ": " << full.error().message;
    // A run that failed leaves nothing behind.
    EXPECT_TRUE(model->run(
        {{"x", random_tensor({3, 2}, 1)}, {"trips", Tensor::scalar(DType::kI64, int64_t{2})}}))
        << place;
  }
}

constexpr std::string_view kBranch = R"(graph @"branch"(%0 "c": bool[], %1 "x": f32[n,2]) {
  %2 = exp(%1) : f32[n,2]
  %3, %4 = if(%0, %1, %2) : f32[_0,2], f32[*] {
    graph @"then"(%0: f32[n,2], %1: f32[n,2]) {
      return %0 "a", %1 "b"
    }
    graph @"else"(%0: f32[n,2], %1: f32[n,2]) {
      %2 = add(%0, %1) : f32[n,2]
      %3 = constant i64[1] {-1}
      %4 = reshape(%2, %3) : f32[2*n]
      return %2 "a", %4 "b"
    }
  }
  %5 = neg(%2) : f32[n,2]
  %6 = neg(%3) : f32[_0,2]
  return %5 "y", %6 "z", %3 "a", %4 "b"
}
)";

TEST(Model, BranchesMayPassValuesThroughAndDifferInRank) {
  auto device = load(kBranch), reference = load(kBranch, {.device = "reference"});
  for (int64_t c : {0, 1, 1, 0})
    for (int64_t n : {1, 4, 0})
      expect_same(*device, *reference,
                  {{"c", Tensor::scalar(DType::kBool, c)}, {"x", random_tensor({n, 2}, 7)}});
}

// "_10" sorts before "_9": all of them must be bound.
TEST(Model, BindsManySizesAtOnce) {
  constexpr std::string_view kText = R"(graph @"g"(%0 "x": f32[6], %1 "shape": i64[3]) {
  %2 = reshape(%0, %1) : f32[_9,_10,_11]
  %3 = exp(%2) : f32[_9,_10,_11]
  return %3 "y"
}
)";
  auto device = load(kText), reference = load(kText, {.device = "reference"});
  const int64_t shape[] = {1, 3, 2};
  expect_same(*device, *reference,
              {{"x", random_tensor({6}, 1)}, {"shape", Tensor::of_i64(shape)}});
}

constexpr std::string_view kScan = R"(graph @"scan"(%0 "s": f32[2], %1 "x": f32[3,t]) {
  %2, %3 = scan(%0, %1, %0) {input_axes = [1], input_reverse = [1], output_axes = [1], output_reverse = [0], scanned = 1, states = 1} : f32[2], f32[2,t] {
    graph @"body"(%0: f32[2], %1: f32[3], %2: f32[2]) {
      %3 = constant i64[0] {}
      %4 = reduce(%1) {keepdims = 0, kind = "sum"} : f32[]
      %5 = add(%0, %4) : f32[2]
      %6 = mul(%5, %2) : f32[2]
      return %5 "s", %6 "y"
    }
  }
  return %2 "last", %3 "all"
}
)";

// Where a part of a concat lies depends on a size that is found out after the part was computed.
constexpr std::string_view kLate = R"(graph @"late"(%0 "x": f32[m], %1 "limit": i64[]) {
  %2 = relu(%0) : f32[m]
  %3 = constant i64[] {0}
  %4 = constant i64[] {1}
  %5 = constant i64[2] {-1, 1}
  %6 = range(%3, %1, %4) : i64[_late]
  %7 = convert(%6) {to = dtype f32} : f32[_late]
  %8 = add(%2, %7) : f32[broadcast(m, _late)]
  %9 = reshape(%2, %5) {zero_is_zero = 0} : f32[m,1]
  %10 = reshape(%8, %5) {zero_is_zero = 0} : f32[broadcast(m, _late),1]
  %11 = concat(%10, %9) {axis = 1} : f32[broadcast(m, _late),2]
  return %11 "y"
}
)";

TEST(Model, PartsOfAConcatMayBeComputedBeforeItsSizeIsKnown) {
  auto device = load(kLate), reference = load(kLate, {.device = "reference"});
  for (double n : {5.0, 1.0})
    expect_same(*device, *reference,
                {{"x", random_tensor({5}, 2)}, {"limit", Tensor::scalar(DType::kI64, n)}});
}

TEST(Model, ScansAlongAnyAxisInEitherDirection) {
  auto device = load(kScan), reference = load(kScan, {.device = "reference"});
  for (int64_t t : {1, 5, 0})
    expect_same(*device, *reference,
                {{"s", random_tensor({2}, 1)}, {"x", random_tensor({3, t}, 2)}});
}

// Two blocks live at a time share the slab; the output is a block of its own.
TEST(Model, PeakStaysNearLive) {
  std::string text = "graph @\"chain\"(%0 \"x\": f32[1000]) {\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("  %{} = exp(%{}) : f32[1000]\n", i + 1, i);
  text += "  return %30 \"y\"\n}\n";
  auto model = load(text);
  ASSERT_TRUE(model->run({{"x", random_tensor({1000}, 1)}}));
  const MemoryUse use = model->memory();
  EXPECT_EQ(use.live, Bytes(8000));
  EXPECT_LE(use.peak, Bytes(3 * 4032));
}

TEST(Model, ObservesNamedValues) {
  for (const char* place : {"cpu", "reference"}) {
    auto model = load(kMlp, {.device = place, .fuse = false}, mlp_weights());
    std::map<std::string, op::Dims> seen;
    RunOptions options;
    options.observe = [&](const std::string& name, const Value& v) {
      seen[name] = v.tensor().dims();
    };
    ASSERT_TRUE(model->run({{"x", random_tensor({3, 4}, 1)}}, options));
    EXPECT_EQ(seen["h"], (op::Dims{3, 8})) << place;
  }
}

}  // namespace
}  // namespace tessera::session
