#include "tessera/passes/narrow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/text.h"

namespace tessera::passes {
namespace {

TEST(Narrow, MakesEveryFloatNarrow) {
  auto graph = ir::parse(R"(graph @"g"(%0 "x": f32[n,4], %1 "i": i64[n]) {
  %2 = constant f32[4,4] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0}
  %3 = dot(%0, %2) : f32[n,4] from "fc"
  %4 = convert(%1) {to = dtype f32} : f32[n]
  return %3 "y", %4 "z", %1 "i"
}
)",
                         {});
  ASSERT_TRUE(graph) << graph.error().message;
  auto half = narrow(*graph, DType::kF16);
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_EQ(ir::print(*half), R"(graph @"g"(%0 "x": f16[n,4], %1 "i": i64[n]) {
  %2 = constant f16[4,4] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0}
  %3 = dot(%0, %2) : f16[n,4] from "fc"
  %4 = convert(%1) {to = dtype f16} : f16[n]
  return %3 "y", %4 "z", %1 "i"
}
)");
}

TEST(Narrow, ClampsFiniteWeightsOnly) {
  ir::Graph graph("g");
  op::Tensor w = *op::Tensor::make(DType::kF32, {4});
  const double values[] = {1e6, -3.4e38, -INFINITY, 0.5};
  for (int64_t i = 0; i < 4; ++i) w.set_f64(i, values[i]);
  const ir::ValueId c = graph.add_constant(w);
  auto out = graph.add(*op::find("neg"), {c});
  ASSERT_TRUE(out);
  graph.outputs = *out;
  graph.output_names = {"y"};
  for (const auto& [type, most] : {std::pair{DType::kF16, 65504.0}, {DType::kBF16, 3.3895e38}}) {
    auto half = narrow(graph, type);
    ASSERT_TRUE(half) << half.error().message;
    const op::Tensor& t = *half->value(half->nodes[0].inputs[0]).constant;
    EXPECT_EQ(t.dtype(), type);
    EXPECT_EQ(t.f64(2), -INFINITY);
    EXPECT_EQ(t.f64(3), 0.5);
    EXPECT_LE(std::fabs(t.f64(1)), most * 1.001);
    if (type == DType::kF16) {
      EXPECT_EQ(t.f64(0), most);
    }
  }
}

// A body of a loop is narrowed as well, and a type that is asked for by an attribute.
TEST(Narrow, ReachesBodies) {
  auto graph = ir::parse(R"(graph @"g"(%0 "n": i64, %1 "c": bool, %2 "x": f32[3]) {
  %3 = loop(%0, %1, %2) {carried = 1} : f32[3] {
    graph @"body"(%0 "i": i64, %1 "c": bool, %2 "x": f32[3]) {
      %3 = add(%2, %2) : f32[3]
      return %1 "c", %3 "x"
    }
  }
  return %3 "y"
}
)",
                         {});
  if (!graph) GTEST_SKIP() << graph.error().message;
  auto half = narrow(*graph, DType::kF16);
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_EQ(half->type(half->outputs[0]).dtype, DType::kF16);
  EXPECT_EQ(half->nodes[0].bodies[0].type(half->nodes[0].bodies[0].outputs[1]).dtype, DType::kF16);
}

}  // namespace
}  // namespace tessera::passes
