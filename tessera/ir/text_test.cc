#include "tessera/ir/text.h"

#include <gtest/gtest.h>

#include "tessera/ir/builder.h"

namespace tessera::ir {
namespace {

// relu(x @ w + b) twice, with an if between.
Graph sample() {
  Graph g("a \"graph\"\n");
  const op::Expr n = op::Expr::symbol("n");
  const ValueId x = g.add_input("x", op::Type::tensor(DType::kF32, {n, 4}));
  const ValueId c = g.add_input("c", op::Type::tensor(DType::kBool, {}));
  Builder b(g, {"MatMul_0"});
  const ValueId w = g.add_constant(*op::Tensor::make(DType::kF32, {4, 8}), "w");
  const ValueId y = b.unary("relu", b.add(b.op("dot", {x, w}), b.scalar(DType::kF32, 0.1)));
  std::vector<Graph> bodies;
  for (const char* name : {"then", "else"}) {
    Graph body(name);
    body.symbols = g.symbols;
    const ValueId in = body.add_input("", g.type(y));
    Builder inner(body);
    body.outputs = {name[0] == 't' ? inner.unary("exp", in)
                                   : inner.op("convert", {inner.convert(in, DType::kF16)},
                                              {{"to", DType::kF32}})};
    body.output_names = {"r"};
    bodies.push_back(std::move(body));
  }
  const ValueId z = b.ops("if", {c, y}, {}, 1, std::move(bodies))[0];
  g.outputs = {z, z, b.op("shape_of", {x})};
  g.output_names = {"z", "again", "shape"};
  EXPECT_TRUE(b.ok()) << b.status().error().message;
  return g;
}

TEST(Text, PrintsAndReadsBack) {
  const Graph g = sample();
  std::vector<op::Tensor> store;
  const std::string text = print(g, store);
  ASSERT_EQ(store.size(), 1u) << "only w is a handle";
  auto read = parse(text, store);
  ASSERT_TRUE(read) << read.error().message << "\n" << text;
  ASSERT_TRUE(verify(*read));
  std::vector<op::Tensor> again;
  EXPECT_EQ(print(*read, again), text);
  EXPECT_EQ(again[0].data(), store[0].data()) << "no bytes are copied";
}

TEST(Text, FloatsReadBackBitByBit) {
  for (const char* value : {"0.1", "-0.0", "inf", "-inf", "nan", "3.0", "1e-40"}) {
    const std::string text = fmt::format(
        "graph @\"g\"() {{\n  %0 = constant f32[] {{{}}}\n  return %0 \"y\"\n}}\n", value);
    auto g = parse(text, {});
    ASSERT_TRUE(g) << g.error().message;
    auto twice = parse(print(*g), {});
    ASSERT_TRUE(twice) << twice.error().message;
    const uint32_t a = g->value(g->outputs[0]).constant->as<uint32_t>()[0];
    EXPECT_EQ(a, twice->value(twice->outputs[0]).constant->as<uint32_t>()[0]) << value;
  }
}

TEST(Text, ErrorsTellLineAndColumn) {
  auto bad = [](std::string_view body) {
    auto g = parse(fmt::format("graph @\"g\"(%0: f32[2]) {{\n{}\n}}\n", body), {});
    EXPECT_FALSE(g) << body;
    return g ? std::string() : g.error().message;
  };
  EXPECT_EQ(bad("  return %1 \"y\""), "line 2, column 12: %1 is not defined yet");
  EXPECT_EQ(bad("  %1 = nonsense(%0) : f32[2]"), "line 2, column 16: no operator 'nonsense'");
  EXPECT_NE(
      bad("  %1 = exp(%0) : f16[2]\n  return %1 \"y\"").find("stated f16[2], inferred f32[2]"),
      std::string::npos);
  EXPECT_NE(bad("  %0 = exp(%0) : f32[2]").find("defined twice"), std::string::npos);
  EXPECT_NE(bad("  %1 = exp(%0, %0) : f32[2]").find("2 inputs"), std::string::npos);
  bad("  %1 = constant f32[99999999999] {1.0}");
  bad("  %1 = constant f32[2] @0");
  bad("");
}

TEST(Text, DeepNestingIsAnError) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "graph @\"g\"(%0: bool[]) { if(%0) { ";
  EXPECT_FALSE(parse(text, {}));
}

}  // namespace
}  // namespace tessera::ir
