#include "tessera/passes/precision.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/text.h"

namespace tessera::passes {
namespace {

constexpr std::string_view kText = R"(graph @"g"(%0 "x": f32[4,4], %1 "h": f16[4,4]) {
  %2 = dot(%0, %0) {transpose_b = 1} : f32[4,4]
  %3 = softmax(%2) {axis = 1} : f32[4,4]
  %4 = dot(%1, %1) : f16[4,4]
  return %3 "y", %4 "z"
}
)";

TEST(Precision, MarksProductsOfF32) {
  auto graph = ir::parse(kText, {});
  ASSERT_TRUE(graph) << graph.error().message;
  ir::Graph bf16 = *graph, f32 = *graph;
  EXPECT_EQ(precision(f32, {DType::kF32, false}), 0);
  EXPECT_EQ(ir::print(f32), kText);
  EXPECT_EQ(precision(bf16, {DType::kBF16, true}), 1);
  EXPECT_TRUE(ir::verify(bf16));
  EXPECT_EQ(bf16.nodes[0].attrs.dtype("compute"), DType::kBF16);
  EXPECT_EQ(bf16.nodes[0].attrs.i("compute_forced"), 1);
  EXPECT_FALSE(bf16.nodes[1].attrs.has("compute"));
  EXPECT_FALSE(bf16.nodes[2].attrs.has("compute"));
}

TEST(Precision, MarksAttentionWhateverItsMask) {
  auto graph = ir::parse(R"(graph @"g"(%0 "x": f32[1,2,8,4], %1 "m": bool[8,8]) {
  %2 = attention(%0, %0, %0, %1) : f32[1,2,8,4]
  return %2 "y"
}
)",
                         {});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(precision(*graph, {DType::kBF16, false}), 1);
  EXPECT_EQ(graph->nodes[0].attrs.dtype("compute"), DType::kBF16);
}

TEST(Precision, LeavesWeightsThatF16CannotHold) {
  for (const auto& [weight, marked] : {std::pair{65504.0, 1}, {1e5, 0}, {-7e4, 0}, {INFINITY, 1}}) {
    ir::Graph graph("g");
    op::Type type;
    type.shape = op::Shape{op::Expr(2), op::Expr(2)};
    op::Tensor w = *op::Tensor::make(DType::kF32, {2, 2});
    for (int64_t i = 0; i < 4; ++i) w.set_f64(i, i == 2 ? weight : 1);
    const ir::ValueId x = graph.add_input("x", type), c = graph.add_constant(w);
    ASSERT_TRUE(graph.add(*op::find("dot"), {x, c}, {}));
    ir::Graph other = graph;
    EXPECT_EQ(precision(graph, {DType::kF16, false}), marked) << weight;
    EXPECT_EQ(precision(other, {DType::kBF16, false}), 1);
  }
}

TEST(Precision, HasNames) {
  EXPECT_EQ(precision_from_name("bf16")->type, DType::kBF16);
  EXPECT_FALSE(precision_from_name("bf16")->forced);
  EXPECT_TRUE(precision_from_name("f16!")->forced);
  EXPECT_EQ(precision_from_name("f32")->type, DType::kF32);
  for (const char* name : {"", "!", "i8", "bf16!!", "f64"})
    EXPECT_EQ(precision_from_name(name).error().code, Code::kInvalidArgument) << name;
}

}  // namespace
}  // namespace tessera::passes
