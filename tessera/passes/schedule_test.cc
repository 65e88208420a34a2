#include "tessera/passes/schedule.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tessera/passes/fold.h"

namespace tessera::passes {
namespace {

// Claims dot below 100 rows, and exp.
class Source final : public op::ClaimSource {
 public:
  std::string_view name() const override { return "test"; }
  std::vector<op::Claim> probe(const op::Problem& p) const override {
    op::Claim cheap, dear;
    cheap.kernel = "cheap";
    dear.kernel = "dear";
    dear.cost = Picoseconds(10);
    if (p.op->name == "exp") return {dear, cheap};
    if (p.op->name == "dot" && p.out[0].dims[0] < 100) return {cheap};
    if (p.op->name == "dot")
      return {op::Claim::refuse("cheap", fmt::format("{} rows, need below 100", p.out[0].dims[0]))};
    return {};
  }
  Result<std::vector<op::LaunchSpec>> prepare(const op::Problem&, const op::Claim&) const override {
    return std::vector<op::LaunchSpec>();
  }
  Status pack(const op::Problem&, const op::Claim&, int, const std::byte*,
              std::byte*) const override {
    return {};
  }
};

// One line per instruction.
std::string summary(const plan::Region& region) {
  std::string s;
  for (const plan::Instruction& i : region.body) {
    s += fmt::format("{} {} {}{}", plan::name_of(i.kind), i.op ? i.op->name : "-", i.kernel,
                     i.reason);
    for (int id : i.out)
      s += fmt::format(" {}", id == plan::kNone
                                  ? "none"
                                  : plan::name_of(region.slots[static_cast<size_t>(id)].storage));
    s += "\n";
  }
  return s;
}

std::string plan_of(std::string_view text, op::Bindings bindings = {}) {
  auto graph = ir::parse(text, {});
  EXPECT_TRUE(graph) << graph.error().message;
  const Source source;
  const op::ClaimSource* sources[] = {&source};
  auto plan = schedule(*graph, sources, {.device = "cpu", .bindings = std::move(bindings)});
  EXPECT_TRUE(plan) << plan.error().message;
  return summary(plan->main);
}

constexpr std::string_view kText = R"(graph @"g"(%0 "x": f32[n,4], %1 "w": f32[4,4]) {
  %2 = dot(%0, %1) : f32[n,4]
  %3 = constant i64[1] {-1}
  %4 = reshape(%2, %3) : f32[4*n]
  %5 = exp(%4) : f32[4*n]
  %6 = shape_of(%5) : i64[1]
  %7 = neg(%6) : i64[1]
  %8 = sin(%5) : f32[4*n]
  return %8 "y", %6 "shape"
}
)";

TEST(Schedule, GoldenPlan) {
  EXPECT_EQ(plan_of(kText, {{"n", 3}}),
            "launch dot cheap slab\n"
            "launch exp cheap slab\n"
            "sizes shape_of  heap\n"
            "host sin no kernel for this operator heap\n");
}

TEST(Schedule, TellsWhyNoKernelTakesIt) {
  EXPECT_EQ(plan_of(kText, {{"n", 100}}).substr(0, 45),
            "host dot cheap: 100 rows, need below 100 slab");
}

TEST(Schedule, BindsSizesThatAreKnownOnlyAtRunTime) {
  EXPECT_EQ(plan_of(R"(graph @"g"(%0 "x": f32[n]) {
  %1 = non_zero(%0) : i64[1,_0]
  %2 = exp(%0) : f32[n]
  %3 = convert(%1) {to = dtype f32} : f32[1,_0]
  %4 = exp(%3) : f32[1,_0]
  %5 = shape_of(%4) : i64[2]
  return %4 "y", %5 "shape"
}
)"),
            "host non_zero a host operator heap\n"
            "bind - \n"
            "host convert no kernel for this operator heap\n"
            "launch exp cheap heap\n"
            "sizes shape_of  heap\n");
}

TEST(Schedule, SizesNeedWhatDefinesThem) {
  // Nobody reads the elements of %1, only how many there are.
  EXPECT_EQ(plan_of(R"(graph @"g"(%0 "x": f32[n]) {
  %1 = non_zero(%0) : i64[1,_0]
  %2 = shape_of(%1) : i64[2]
  return %2 "shape"
}
)"),
            "host non_zero a host operator heap\nbind - \nsizes shape_of  heap\n");
}

// How many numbers %4 has was to be known only at run time; what is typed by it must not wait for
// that.
TEST(Fold, TellsTheSizesThatItDecides) {
  auto graph = ir::parse(R"(graph @"g"(%0 "x": f32[1]) {
  %1 = constant f32[] {0.0}
  %2 = constant f32[] {3.0}
  %3 = constant f32[] {1.0}
  %4 = range(%1, %2, %3) : f32[_0]
  %5 = add(%0, %4) : f32[_0]
  return %5 "y"
}
)",
                         {});
  ASSERT_TRUE(graph) << graph.error().message;
  fold(*graph,
       [](const ir::Node&, std::span<const op::Value* const>) -> Result<std::vector<op::Value>> {
         return std::vector<op::Value>{op::Value(*op::Tensor::make(DType::kF32, {3}))};
       });
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->type(graph->outputs[0]).str(), "f32[3]");
}

TEST(Fold, ComputesConstantsAndDropsTheDead) {
  auto graph = ir::parse(R"(graph @"g"(%0 "x": f32[2]) {
  %1 = constant f32[2] {1.0, 2.0}
  %2 = neg(%1) : f32[2]
  %3 = add(%0, %2) : f32[2]
  %4 = sin(%0) : f32[2]
  %5 = shape_of(%0) : i64[1]
  return %3 "y", %5 "shape"
}
)",
                         {});
  ASSERT_TRUE(graph);
  const FoldReport report =
      fold(*graph,
           [](const ir::Node& node,
              std::span<const op::Value* const> in) -> Result<std::vector<op::Value>> {
             EXPECT_EQ(node.op->name, "neg");
             op::Tensor t = *op::Tensor::make(DType::kF32, in[0]->tensor().dims());
             for (int64_t i = 0; i < t.count(); ++i) t.set_f64(i, -in[0]->tensor().f64(i));
             return std::vector<op::Value>{op::Value(t)};
           });
  EXPECT_EQ(report.folded, 2);
  EXPECT_EQ(report.dead, 1);
  EXPECT_TRUE(ir::verify(*graph));
  EXPECT_EQ(ir::print(*graph), R"(graph @"g"(%0 "x": f32[2]) {
  %1 = constant f32[2] {-1.0, -2.0}
  %2 = add(%0, %1) : f32[2]
  %3 = constant i64[1] {2}
  return %2 "y", %3 "shape"
}
)");
}

}  // namespace
}  // namespace tessera::passes
