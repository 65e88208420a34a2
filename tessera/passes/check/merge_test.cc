// Products of one value become one: golden texts, and the same numbers.
#include "tessera/passes/merge.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tessera/passes/check/golden.h"

namespace tessera::passes::check {
namespace {

// Each launch costs 2, and a product also 1 for every 16 columns that it begins.
std::optional<Picoseconds> price(const op::Problem& p) {
  const op::Dims& y = p.out[0].dims;
  const int64_t columns = p.op->name == "conv" ? y[1] : p.op->name == "dot" ? y.back() : 0;
  return Picoseconds(2000 + (columns + 15) / 16 * 1000);
}

MergeReport merge_all(ir::Graph& graph) {
  const MergeReport report = merge(
      graph, {}, [](const op::Problem&) { return std::string(); }, price);
  const auto ok = ir::verify(graph);
  EXPECT_TRUE(ok) << ok.error().message << "\n" << ir::print(graph);
  return report;
}

void merges(std::string_view before, std::string_view after) {
  const ir::Graph graph = *ir::parse(before, {});
  ir::Graph merged = graph;
  EXPECT_FALSE(merge_all(merged).fired.empty());
  EXPECT_EQ(normal(ir::print(merged)), normal(after));
  expect_same(graph, merged, kRounding);
}

void stays_apart(std::string_view text, const std::vector<op::Tensor>& store = {}) {
  auto graph = ir::parse(text, store);
  ASSERT_TRUE(graph) << graph.error().message;
  const std::string before = ir::print(*graph);
  EXPECT_TRUE(merge_all(*graph).fired.empty());
  EXPECT_EQ(ir::print(*graph), before);
}

TEST(Merge, JoinsWeightsAndWhatFollows) {
  merges(R"(graph @"g"(%0 "x": f32[s,2]) {
  %1 = constant f32[2,1] {1.0, 2.0}
  %2 = constant f32[2,2] {3.0, 4.0, 5.0, 6.0}
  %3 = constant f32[1] {7.0}
  %4 = constant f32[2] {8.0, 9.0}
  %5 = dot(%0, %1) : f32[s,1]
  %6 = add(%5, %3) : f32[s,1]
  %7 = dot(%0, %2) : f32[s,2]
  %8 = add(%7, %4) : f32[s,2]
  %9 = relu(%6) : f32[s,1]
  %10 = softmax(%9) : f32[s,1]
  %11 = softmax(%8) : f32[s,2]
  return %10 "a", %11 "b"
})",
         R"(graph @"g"(%0 "x": f32[s,2]) {
  %1 = constant f32[2,3] {1.0, 3.0, 4.0, 2.0, 5.0, 6.0}
  %2 = dot(%0, %1) : f32[s,3]
  %3 = constant f32[3] {7.0, 8.0, 9.0}
  %4 = add(%2, %3) : f32[s,3]
  %5 = constant i64[1] {0}
  %6 = constant i64[1] {1}
  %7 = constant i64[1] {1}
  %8 = slice(%4, %5, %6, %7) : f32[s,1]
  %9 = constant i64[1] {1}
  %10 = constant i64[1] {3}
  %11 = constant i64[1] {1}
  %12 = slice(%4, %9, %10, %11) : f32[s,2]
  %13 = relu(%8) : f32[s,1]
  %14 = softmax(%13) : f32[s,1]
  %15 = softmax(%12) : f32[s,2]
  return %14 "a", %15 "b"
})");
}

TEST(Merge, JoinsPointwiseConvolutions) {
  merges(R"(graph @"g"(%0 "x": f32[1,2,3,3]) {
  %1 = constant f32[1,2,1,1] {1.0, 2.0}
  %2 = constant f32[2,2,1,1] {3.0, 4.0, 5.0, 6.0}
  %3 = constant f32[2] {8.0, 9.0}
  %4 = conv(%0, %1) : f32[1,1,3,3]
  %5 = relu(%4) : f32[1,1,3,3]
  %6 = conv(%0, %2, %3) : f32[1,2,3,3]
  %7 = relu(%6) : f32[1,2,3,3]
  %8 = global_average_pool(%5) : f32[1,1,1,1]
  %9 = global_average_pool(%7) : f32[1,2,1,1]
  return %8 "a", %9 "b"
})",
         R"(graph @"g"(%0 "x": f32[1,2,3,3]) {
  %1 = constant f32[3,2,1,1] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  %2 = constant f32[3] {0.0, 8.0, 9.0}
  %3 = conv(%0, %1, %2) : f32[1,3,3,3]
  %4 = relu(%3) : f32[1,3,3,3]
  %5 = constant i64[1] {0}
  %6 = constant i64[1] {1}
  %7 = constant i64[1] {1}
  %8 = slice(%4, %5, %6, %7) : f32[1,1,3,3]
  %9 = constant i64[1] {1}
  %10 = constant i64[1] {3}
  %11 = constant i64[1] {1}
  %12 = slice(%4, %9, %10, %11) : f32[1,2,3,3]
  %13 = global_average_pool(%8) : f32[1,1,1,1]
  %14 = global_average_pool(%12) : f32[1,2,1,1]
  return %13 "a", %14 "b"
})");
}

// The gate and what it lets through run behind their products: one launch more than together.
TEST(Merge, LeavesWhatRunsBehindItsProduct) {
  stays_apart(R"(graph @"g"(%0 "x": f32[s,2]) {
  %1 = constant f32[2,16] @0
  %2 = constant f32[2,16] @1
  %3 = dot(%0, %1) : f32[s,16]
  %4 = silu(%3) : f32[s,16]
  %5 = dot(%0, %2) : f32[s,16]
  %6 = mul(%4, %5) : f32[s,16]
  return %6 "a"
})",
              {random_tensor({2, 16}, 1), random_tensor({2, 16}, 2)});
}

// Outputs need their elements by themselves: a copy each.
TEST(Merge, LeavesWhatWouldBeCopied) {
  stays_apart(R"(graph @"g"(%0 "x": f32[s,2]) {
  %1 = constant f32[2,1] {1.0, 2.0}
  %2 = constant f32[2,2] {3.0, 4.0, 5.0, 6.0}
  %3 = dot(%0, %1) : f32[s,1]
  %4 = dot(%0, %2) : f32[s,2]
  return %3 "a", %4 "b"
})");
}

TEST(Merge, LeavesOtherDepthsAndStrides) {
  stays_apart(R"(graph @"g"(%0 "x": f32[1,2,3,3]) {
  %1 = constant f32[1,2,1,1] {1.0, 2.0}
  %2 = constant f32[1,2,1,1] {3.0, 4.0}
  %3 = conv(%0, %1) : f32[1,1,3,3]
  %4 = conv(%0, %2) {strides = [2, 2]} : f32[1,1,2,2]
  %5 = global_average_pool(%3) : f32[1,1,1,1]
  %6 = global_average_pool(%4) : f32[1,1,1,1]
  return %5 "a", %6 "b"
})");
}

}  // namespace
}  // namespace tessera::passes::check
