#include "tessera/passes/fuse.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"

namespace tessera::passes {
namespace {

struct Fused {
  ir::Graph graph;
  FuseReport report;
};

// Takes chains behind dot of at most `most` steps, and any element-wise group.
Fused fused(std::string_view text, size_t most = 8) {
  auto graph = ir::parse(text, {});
  EXPECT_TRUE(graph) << graph.error().message;
  Fused f{*graph, {}};
  f.report = fuse(f.graph, {}, [&](const op::Problem& p) -> std::string {
    if (p.op->name == "dot" && p.steps.size() > most)
      return fmt::format("{} steps, need at most {}", p.steps.size(), most);
    if (p.op->name == "softmax") return "takes no steps";
    return "";
  });
  auto ok = ir::verify(f.graph);
  EXPECT_TRUE(ok) << ok.error().message;
  return f;
}

// One line per node: its operator, or its group's operators.
std::string summary(const ir::Graph& graph) {
  std::string s;
  for (const ir::Node& n : graph.nodes) {
    if (n.bodies.empty()) {
      s += fmt::format("{}\n", n.op->name);
      continue;
    }
    std::string list;
    for (const ir::Node& b : n.bodies[0].nodes)
      list += (list.empty() ? "" : " ") + std::string(b.op->name);
    s += fmt::format("{} -> {}\n", list, n.outputs.size());
  }
  return s;
}

TEST(Fuse, TakesAChainBehindAnAnchor) {
  const Fused f = fused(R"(graph @"g"(%0 "x": f32[n,4], %1 "w": f32[4,4], %2 "b": f32[4]) {
    %3 = dot(%0, %1) : f32[n,4] from "MatMul"
    %4 = add(%3, %2) : f32[n,4] from "Add"
    %5 = relu(%4) : f32[n,4] from "Relu"
    return %5 "y"
  })");
  EXPECT_EQ(summary(f.graph), "dot add relu -> 1\n");
  EXPECT_EQ(f.graph.nodes[0].origin, (std::vector<std::string>{"MatMul", "Add", "Relu"}));
  EXPECT_EQ(f.report.groups, 1);
  EXPECT_EQ(f.report.steps, 2);
}

TEST(Fuse, StopsWhereTheValueIsNeeded) {
  EXPECT_EQ(summary(fused(R"(graph @"g"(%0 "x": f32[n,4], %1 "w": f32[4,4]) {
    %2 = dot(%0, %1) : f32[n,4]
    %3 = relu(%2) : f32[n,4]
    return %2 "a", %3 "b"
  })")
                        .graph),
            "dot\nrelu\n");
}

TEST(Fuse, StopsAtAnotherShape) {
  const Fused f = fused(R"(graph @"g"(%0 "x": f32[1,4], %1 "w": f32[4,4], %2 "b": f32[3,4]) {
    %3 = dot(%0, %1) : f32[1,4] from "M"
    %4 = add(%3, %2) : f32[3,4] from "A"
    return %4 "y"
  })");
  EXPECT_EQ(summary(f.graph), "dot\nadd\n");
  ASSERT_EQ(f.report.missed.size(), 1u);
  EXPECT_EQ(f.report.missed[0], "dot 'M' + add 'A': another shape");
}

TEST(Fuse, StopsWhereNoKernelTakesMore) {
  const Fused f = fused(R"(graph @"g"(%0 "x": f32[n,4], %1 "w": f32[4,4]) {
    %2 = dot(%0, %1) : f32[n,4]
    %3 = relu(%2) : f32[n,4]
    %4 = exp(%3) : f32[n,4]
    %5 = neg(%4) : f32[n,4]
    return %5 "y"
  })",
                        1);
  EXPECT_EQ(summary(f.graph), "dot relu -> 1\nexp neg -> 1\n");
  EXPECT_EQ(f.report.missed, (std::vector<std::string>{"dot + exp: 2 steps, need at most 1"}));
}

// Of two products that are added, the later one takes the sum: it can wait for the earlier.
TEST(Fuse, TheLaterAnchorTakesTheSum) {
  EXPECT_EQ(summary(fused(R"(graph @"g"(%0 "x": f32[n,4], %1 "w": f32[4,4]) {
    %2 = dot(%0, %1) : f32[n,4]
    %3 = dot(%0, %1) : f32[n,4]
    %4 = add(%2, %3) : f32[n,4]
    return %4 "y"
  })")
                        .graph),
            "dot\ndot add -> 1\n");
}

TEST(Fuse, JoinsElementwiseGraphsWithSeveralResults) {
  const Fused f = fused(R"(graph @"g"(%0 "x": f32[n,4], %1 "s": f32[4]) {
    %2 = exp(%0) : f32[n,4]
    %3 = neg(%0) : f32[n,4]
    %4 = mul(%2, %3) : f32[n,4]
    %5 = mul(%4, %1) : f32[n,4]
    return %4 "a", %5 "b"
  })");
  EXPECT_EQ(summary(f.graph), "exp neg mul mul -> 2\n");
}

// exp's result is needed by the softmax, which the product waits for: no group may hold both ends.
TEST(Fuse, NeverClosesACycle) {
  EXPECT_EQ(summary(fused(R"(graph @"g"(%0 "x": f32[n,4]) {
    %1 = exp(%0) : f32[n,4]
    %2 = softmax(%1) : f32[n,4]
    %3 = mul(%1, %2) : f32[n,4]
    return %3 "y"
  })")
                        .graph),
            "exp\nsoftmax\nmul\n");
}

}  // namespace
}  // namespace tessera::passes
