#include "tessera/passes/expand.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/ir/text.h"

namespace tessera::passes {
namespace {

// Takes the operators named.
class Source final : public op::ClaimSource {
 public:
  explicit Source(std::set<std::string, std::less<>> ops) : ops_(std::move(ops)) {}
  std::string_view name() const override { return "test"; }
  std::vector<op::Claim> probe(const op::Problem& p) const override {
    if (!ops_.contains(p.op->name)) return {};
    op::Claim claim;
    claim.kernel = "kernel";
    return {claim};
  }
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem&, const op::Claim&) const override {
    return std::vector<op::LaunchSpec>();
  }
  Status pack(const op::Problem&, const op::Claim&, int, const std::byte*,
              std::byte*) const override {
    return {};
  }

 private:
  std::set<std::string, std::less<>> ops_;
};

constexpr std::string_view kText = R"(graph @"g"(%0 "x": f32[n,4]) {
  %1 "y" = hard_swish(%0) : f32[n,4] from "HardSwish"
  %2 = exp(%1) : f32[n,4]
  return %2 "z"
}
)";

std::string expanded(std::set<std::string, std::less<>> ops, int count) {
  auto graph = ir::parse(kText, {});
  EXPECT_TRUE(graph) << graph.error().message;
  const Source source(std::move(ops));
  const op::ClaimSource* sources[] = {&source};
  auto done = expand(*graph, {}, sources);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, count);
  auto ok = ir::verify(*graph);
  EXPECT_TRUE(ok) << ok.error().message;
  std::string names;
  for (const ir::Node& n : graph->nodes) names += std::string(n.op->name) + " ";
  return names;
}

TEST(Expand, WhatKernelsTakeStaysAsItIs) {
  EXPECT_EQ(expanded({"hard_swish", "exp", "mul", "add", "max", "min"}, 0), "hard_swish exp ");
}

TEST(Expand, WhatNoKernelTakesBecomesItsBody) {
  const std::string names =
      expanded({"exp", "mul", "add", "max", "min", "div"}, 2);  // hard_sigmoid is in it
  EXPECT_NE(names, "hard_swish exp ");
  EXPECT_TRUE(names.ends_with("exp ")) << names;
}

TEST(Expand, NotWhereTheBodyFindsNoKernel) {
  EXPECT_EQ(expanded({"exp", "mul"}, 0), "hard_swish exp ");
}

}  // namespace
}  // namespace tessera::passes
