#include <gtest/gtest.h>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

using op::Attrs;
using op::Floats;
using op::Ints;
using Inputs = std::vector<std::optional<Tensor>>;

Tensor first(const Result<std::vector<Value>>& r) {
  EXPECT_TRUE(r) << (r ? "" : r.error().message);
  return r ? (*r)[0].tensor() : Tensor();
}

// ---- a composite's row and its decomposition agree ----

struct Pair {
  const char* what;
  const char* op;
  std::vector<std::optional<Dims>> inputs;
  Attrs attrs;
};

class Decomposition : public ::testing::TestWithParam<Pair> {};

TEST_P(Decomposition, AgreesWithTheRow) {
  const Pair& p = GetParam();
  Inputs inputs;
  for (const auto& dims : p.inputs)
    inputs.push_back(dims ? std::optional(random(DType::kF32, *dims, inputs.size() + 1, 0.1, 1))
                          : std::nullopt);
  const Tensor direct = first(run_op(p.op, inputs, p.attrs)),
               body = first(run_op(p.op, inputs, p.attrs, 1, true));
  ASSERT_EQ(direct.dims(), body.dims());
  for (int64_t i = 0; i < direct.count(); ++i)
    ASSERT_NEAR(direct.f64(i), body.f64(i), 2e-5) << "at " << i;
}

const Ints k2{2, 2}, k3{3, 3};
INSTANTIATE_TEST_SUITE_P(
    Table, Decomposition,
    ::testing::Values(
        Pair{"1d", "conv", {Dims{2, 3, 7}, Dims{4, 3, 3}, Dims{4}}, {}},
        Pair{"strides_pads",
             "conv",
             {Dims{1, 2, 7, 5}, Dims{3, 2, 3, 2}},
             {{"strides", Ints{2, 1}}, {"pads_begin", Ints{1, 0}}, {"pads_end", Ints{2, 1}}}},
        Pair{"groups_dilations",
             "conv",
             {Dims{2, 4, 8, 8}, Dims{6, 2, 3, 3}, Dims{6}},
             {{"groups", int64_t{2}}, {"dilations", k2}}},
        Pair{"depthwise_same",
             "conv",
             {Dims{1, 3, 6, 5}, Dims{3, 1, 3, 3}},
             {{"groups", int64_t{3}}, {"strides", k2}, {"auto_pad", std::string("same_lower")}}},
        Pair{"3d", "conv", {Dims{1, 2, 4, 5, 6}, Dims{2, 2, 2, 3, 1}, Dims{2}}, {}},
        Pair{"1d",
             "conv_transpose",
             {Dims{2, 3, 5}, Dims{3, 2, 3}, Dims{2}},
             {{"strides", Ints{2}}}},
        Pair{"groups_extra",
             "conv_transpose",
             {Dims{1, 4, 3, 4}, Dims{4, 3, 3, 2}, Dims{6}},
             {{"groups", int64_t{2}},
              {"strides", k2},
              {"output_padding", Ints{1, 1}},
              {"pads_begin", Ints{1, 0}},
              {"pads_end", Ints{0, 1}},
              {"dilations", Ints{1, 3}}}},
        Pair{"output_shape",
             "conv_transpose",
             {Dims{1, 1, 3, 3}, Dims{1, 2, 3, 3}},
             {{"strides", Ints{3, 2}},
              {"output_shape", Ints{10, 8}},
              {"auto_pad", std::string("same_upper")}}},
        Pair{"cropped",
             "conv_transpose",
             {Dims{1, 1, 4}, Dims{1, 1, 5}},
             {{"pads_begin", Ints{3}}, {"pads_end", Ints{4}}}},
        Pair{"max",
             "max_pool",
             {Dims{2, 3, 7, 6}},
             {{"kernel", k3},
              {"strides", k2},
              {"ceil_mode", int64_t{1}},
              {"pads_begin", Ints{1, 0}}}},
        Pair{"average",
             "average_pool",
             {Dims{1, 2, 7, 7}},
             {{"kernel", k3},
              {"strides", k2},
              {"pads_begin", Ints{1, 1}},
              {"pads_end", Ints{1, 1}}}},
        Pair{"average_padded_ceil",
             "average_pool",
             {Dims{1, 2, 6, 7}},
             {{"kernel", k3},
              {"strides", k2},
              {"pads_begin", Ints{1, 1}},
              {"pads_end", Ints{1, 1}},
              {"ceil_mode", int64_t{1}},
              {"count_include_pad", int64_t{1}}}},
        Pair{
            "average_dilated",
            "average_pool",
            {Dims{1, 1, 9}},
            {{"kernel", Ints{3}}, {"dilations", Ints{2}}, {"auto_pad", std::string("same_upper")}}},
        Pair{"lp", "lp_pool", {Dims{1, 2, 5, 5}}, {{"kernel", k2}, {"p", 3.0}}},
        Pair{"global", "global_average_pool", {Dims{2, 3, 4, 5}}, {}},
        Pair{"batch",
             "batch_norm",
             {Dims{2, 3, 4, 5}, Dims{3}, Dims{3}, Dims{3}, Dims{3}},
             {{"epsilon", 1e-3}}},
        Pair{"batch_rank2", "batch_norm", {Dims{4, 3}, Dims{3}, Dims{3}, Dims{3}, Dims{3}}, {}},
        Pair{
            "instance", "instance_norm", {Dims{2, 3, 4, 5}, Dims{3}, Dims{3}}, {{"epsilon", 1e-3}}},
        Pair{"even",
             "lrn",
             {Dims{2, 5, 3, 2}},
             {{"size", int64_t{4}}, {"alpha", 0.5}, {"beta", 0.75}, {"bias", 2.0}}},
        Pair{"wider_than_channels", "lrn", {Dims{1, 2, 3}}, {{"size", int64_t{9}}}},
        Pair{"nearest",
             "resize",
             {Dims{1, 2, 3, 5}},
             {{"scales", Floats{1, 1, 2, 0.6}}, {"mode", std::string("nearest")}}},
        Pair{"linear",
             "resize",
             {Dims{1, 2, 3, 5}},
             {{"sizes", Ints{7, 2}}, {"axes", Ints{2, 3}}, {"mode", std::string("linear")}}},
        Pair{"cubic_antialias",
             "resize",
             {Dims{1, 1, 8, 9}},
             {{"sizes", Ints{3, 4}},
              {"axes", Ints{-2, -1}},
              {"mode", std::string("cubic")},
              {"antialias", int64_t{1}}}},
        Pair{"crop",
             "resize",
             {Dims{4, 4}},
             {{"sizes", Ints{3, 3}},
              {"mode", std::string("linear")},
              {"coordinates", std::string("tf_crop_and_resize")},
              {"roi", Floats{0.4, 0.6, 1.2, 0.9}},
              {"extrapolation", 10.0}}}),
    [](const auto& p) { return std::string(p.param.op) + "_" + p.param.what; });

// ---- values worked out by hand ----

TEST(Conv, SumsProductsOfTapsAndAddsTheBias) {
  // 1 2 3 with one 0 before: windows (0 1) (1 2) (2 3), weights 10 1, bias 100.
  const Tensor y =
      first(run_op("conv", {f32({1, 1, 3}, {1, 2, 3}), f32({1, 1, 2}, {10, 1}), f32({1}, {100})},
                   {{"pads_begin", Ints{1}}}));
  EXPECT_EQ(y.dims(), (Dims{1, 1, 3}));
  EXPECT_EQ(values_of(y), (std::vector<double>{101, 112, 123}));
}

TEST(Conv, IsExactInIntegers) {
  const Tensor y = first(run_op("conv", {tensor(DType::kI32, {1, 1, 2}, {30000, -7}),
                                         tensor(DType::kI32, {1, 1, 2}, {70000, 3})}));
  EXPECT_EQ(y.i64(0), 2099999979);
}

TEST(Conv, TakesEmptyBatchesAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(first(run_op("conv", {f32({0, 1, 3}, {}), f32({1, 1, 2}, {1, 1})})).dims(),
            (Dims{0, 1, 2}));
  EXPECT_FALSE(run_op("conv", {f32({1, 1, 3}, {}), f32({1, 1, 5}, {})}));
  EXPECT_FALSE(run_op("conv", {f32({1, 3, 3}, {}), f32({1, 2, 1}, {})}));
  EXPECT_FALSE(run_op("conv", {f32({1, 2, 3}, {}), f32({3, 1, 1}, {})}, {{"groups", int64_t{2}}}));
  EXPECT_FALSE(run_op("conv", {f32({1, 1, 3}, {}), f32({1, 1, 1}, {})}, {{"strides", Ints{0}}}));
  EXPECT_FALSE(run_op("conv", {f32({1, 1, 3}, {}), f32({1, 1, 1}, {})}, {{"strides", Ints{1, 1}}}));
  EXPECT_FALSE(run_op("conv", {f32({1, 1, 3}, {}), f32({1, 1, 1}, {}), f32({2}, {})}));
}

TEST(ConvTranspose, SpreadsEachElement) {
  const Tensor y =
      first(run_op("conv_transpose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, 10, 100})},
                   {{"strides", Ints{2}}}));
  EXPECT_EQ(values_of(y), (std::vector<double>{1, 10, 102, 20, 200}));
}

// <window(x), y> == <x, fold(y)>: fold is window's adjoint.
TEST(Fold, IsTheAdjointOfWindow) {
  const Attrs attrs{{"kernel", Ints{3, 2}},
                    {"strides", Ints{2, 1}},
                    {"dilations", Ints{1, 2}},
                    {"pads_begin", Ints{1, 0}},
                    {"pads_end", Ints{1, 2}}};
  const Tensor x = random(DType::kF64, {2, 5, 4}, 1);
  const Tensor windows = first(run_op("window", {x}, attrs));  // (2, o, p, 3, 2)
  ASSERT_EQ(windows.dims(), (Dims{2, 3, 4, 3, 2}));
  const Tensor y = random(DType::kF64, {2, 6, 12}, 2);  // (2, taps, windows)
  const Tensor folded = first(run_op("fold", {y, i64({2}, {5, 4})}, attrs));
  ASSERT_EQ(folded.dims(), x.dims());
  double left = 0, right = 0;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t o = 0; o < 12; ++o)
      for (int64_t k = 0; k < 6; ++k)
        left += windows.f64((n * 12 + o) * 6 + k) * y.f64((n * 6 + k) * 12 + o);
  for (int64_t i = 0; i < x.count(); ++i) right += x.f64(i) * folded.f64(i);
  EXPECT_NEAR(left, right, 1e-12);
  EXPECT_FALSE(run_op("fold", {y, i64({2}, {7, 4})}, {{"kernel", Ints{3, 2}}}));
}

TEST(Window, FillsPaddingOfAnyType) {
  const Tensor y =
      first(run_op("window", {tensor(DType::kU4, {3}, {1, 2, 3}), tensor(DType::kU4, {}, {9})},
                   {{"kernel", Ints{2}}, {"pads_end", Ints{1}}}));
  EXPECT_EQ(values_of(y), (std::vector<double>{1, 2, 2, 3, 3, 9}));
}

TEST(MaxPool, TellsWhereTheFirstMaximumLies) {
  const Tensor x = f32({1, 1, 2, 3}, {1, 5, 5, 4, 3, 9});
  auto y = run_op("max_pool", {x}, {{"kernel", Ints{2, 2}}}, 2);
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(values_of((*y)[0].tensor()), (std::vector<double>{5, 9}));
  EXPECT_EQ((*y)[1].tensor().to_i64s(), (std::vector<int64_t>{1, 5}));
  y = run_op("max_pool", {x}, {{"kernel", Ints{2, 2}}, {"column_major", int64_t{1}}}, 2);
  EXPECT_EQ((*y)[1].tensor().to_i64s(), (std::vector<int64_t>{2, 5}));
}

TEST(MaxPool, PutsNaNFirstAndKeepsWhatPaddingAloneYieldsLowest) {
  EXPECT_TRUE(std::isnan(
      first(run_op("max_pool", {f32({1, 1, 2}, {NAN, 7})}, {{"kernel", Ints{2}}})).f64(0)));
  const Attrs wide{{"kernel", Ints{1}}, {"pads_begin", Ints{1}}};
  EXPECT_EQ(values_of(first(run_op("max_pool", {tensor(DType::kI8, {1, 1, 1}, {3})}, wide))),
            (std::vector<double>{-128, 3}));
  EXPECT_EQ(first(run_op("max_pool", {f32({1, 1, 1}, {3})}, wide)).f64(0), -INFINITY);
}

TEST(AveragePool, CountsOrLeavesOutPadding) {
  const Tensor x = f32({1, 1, 3}, {3, 6, 9});
  Attrs attrs{
      {"kernel", Ints{3}}, {"strides", Ints{2}}, {"pads_begin", Ints{1}}, {"pads_end", Ints{1}}};
  EXPECT_EQ(values_of(first(run_op("average_pool", {x}, attrs))), (std::vector<double>{4.5, 7.5}));
  attrs.set("count_include_pad", int64_t{1});
  EXPECT_EQ(values_of(first(run_op("average_pool", {x}, attrs))), (std::vector<double>{3, 5}));
}

TEST(MaxUnpool, InvertsMaxPool) {
  const Tensor y = first(run_op("max_unpool", {f32({1, 1, 2}, {7, 8}), i64({1, 1, 2}, {1, 2})},
                                {{"kernel", Ints{2}}, {"strides", Ints{2}}}));
  EXPECT_EQ(values_of(y), (std::vector<double>{0, 7, 8, 0}));
  EXPECT_FALSE(run_op("max_unpool", {f32({1, 1, 2}, {7, 8}), i64({1, 1, 2}, {1, 4})},
                      {{"kernel", Ints{2}}, {"strides", Ints{2}}}));
}

// ---- symbolic sizes ----

TEST(SymbolicSizes, FlowThroughConvolutionAndPooling) {
  Graph graph;
  const op::Expr n = op::Expr::symbol("n"), h = op::Expr::symbol("h"), w = op::Expr::symbol("w");
  const ValueId x =
      graph.add_input("x", op::Type::tensor(DType::kF32, {n, 3, op::Expr(32) * h, w}));
  Builder b(graph);
  const ValueId y =
      b.op("conv", {x, b.constant(f32({8, 3, 3, 3}, {}))},
           {{"strides", Ints{2, 2}}, {"pads_begin", Ints{1, 1}}, {"pads_end", Ints{1, 1}}});
  const ValueId z = b.op(
      "max_pool", {y},
      {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"auto_pad", std::string("same_upper")}});
  const ValueId up = b.op("resize", {z}, {{"scales", Floats{1, 1, 4, 4}}});
  ASSERT_TRUE(b.ok()) << b.status().error().message;
  EXPECT_EQ(b.type(y).dim(2).str(), "16*h");
  EXPECT_EQ(b.type(z).dim(2).str(), "8*h");
  EXPECT_EQ(b.type(up).dim(2).str(), "32*h");
  EXPECT_EQ(*b.type(y).dim(3).eval({{"w", 9}}), 5);
  EXPECT_EQ(*b.type(z).dim(3).eval({{"w", 9}}), 3);
  // The decompositions need no more than the weights' sizes.
  for (const Node& node : graph.nodes) {
    if (node.op->name == "resize") continue;
    std::vector<op::Type> types;
    for (ValueId id : node.inputs) types.push_back(graph.type(id));
    auto body = decompose(node, types);
    ASSERT_TRUE(body) << body.error().message;
    EXPECT_EQ(body->type(body->outputs[0]).rank(), 4);
  }
}

}  // namespace
}  // namespace tessera::ir::reference
