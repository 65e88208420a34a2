// Models that are right in unusual ways, and models that are wrong.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tessera/import/onnx/model.h"
#include "tessera/import/onnx/test_model.h"

namespace tessera::import::onnx {
namespace {

using namespace test;  // NOLINT

Result<ImportedModel> load(const std::string& bytes, const std::string& folder = "") {
  auto keep = std::make_shared<std::string>(bytes);
  ImportOptions options;
  options.folder = folder;
  auto imported = import_model(*keep, keep, options);
  if (imported) {
    auto ok = ir::verify(imported->graph);
    EXPECT_TRUE(ok) << ok.error().message;
  }
  return imported;
}

std::vector<std::string> ops(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& n : graph.nodes) names.emplace_back(n.op->name);
  return names;
}

// The error of a model that must not load; the test's own time limit notices a hang.
Error refused(const std::string& bytes, const std::string& folder = "") {
  auto imported = load(bytes, folder);
  EXPECT_FALSE(imported) << "a bad model was accepted";
  return imported ? Error{} : imported.error();
}
void expect_says(const Error& e, std::initializer_list<std::string_view> parts) {
  for (std::string_view part : parts)
    EXPECT_NE(e.message.find(part), std::string::npos)
        << "'" << part << "' is not in: " << e.message;
}

std::string one_node(const std::string& n, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& initializers = {}) {
  return model(graph({{n}, inputs, {named("y")}, initializers, {}}));
}

// ---- models that are right ----

TEST(Importer, FunctionsWithAttributesAndNestedCalls) {
  // scale(x; k = 2) = x * constant(value_float=k); twice(x; k) = scale(scale(x; k); default)
  const std::string scale =
      function({"scale",
                {"x"},
                {"y"},
                {},
                {float_attr("k", 2)},
                {node("Constant", {}, {"c"}, {ref_attr("value_float", 1, "k")}),
                 node("Mul", {"x", "c"}, {"y"})}});
  const std::string twice =
      function({"twice",
                {"x"},
                {"y"},
                {"k"},
                {},
                {node("scale", {"x"}, {"t"}, {ref_attr("k", 1, "k")}, "", "own"),
                 node("scale", {"t"}, {"y"}, {}, "", "own")}});
  auto m = load(model(graph({{node("twice", {"a"}, {"b"}, {float_attr("k", 5)}, "call", "own")},
                             {value("a", {3})},
                             {named("b")},
                             {},
                             {}}),
                      {twice, scale}));
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(ops(m->graph), (std::vector<std::string>{"mul", "mul"}));
  std::vector<double> factors;
  for (const ir::Node& n : m->graph.nodes)
    factors.push_back(m->graph.value(n.inputs[1]).constant->f64(0));
  EXPECT_EQ(factors, (std::vector<double>{5, 2}));
  // Values inside carry the path of calls, the result its name outside.
  EXPECT_EQ(m->graph.value(m->graph.nodes[0].outputs[0]).name, "call/t");
  EXPECT_EQ(m->graph.value(m->graph.outputs[0]).name, "b");
}

TEST(Importer, NamesOfAFunctionCalledTwiceStayApart) {
  const std::string f =
      function({"f", {"x"}, {"y"}, {}, {}, {node("Neg", {"x"}, {"t"}), node("Abs", {"t"}, {"y"})}});
  auto m = load(
      model(graph({{node("f", {"a"}, {"b"}, {}, "", "own"), node("f", {"b"}, {"c"}, {}, "", "own")},
                   {value("a", {3})},
                   {named("c")},
                   {},
                   {}}),
            {f}));
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->graph.value(m->graph.nodes[0].outputs[0]).name, "b/t");
  EXPECT_EQ(m->graph.value(m->graph.nodes[2].outputs[0]).name, "c/t");
}

TEST(Importer, AbsentInputsOfAFunctionAreAbsentInside) {
  const std::string f = function(
      {"f", {"x", "low", "high"}, {"y"}, {}, {}, {node("Clip", {"x", "low", "high"}, {"y"})}});
  for (const Names& in : {Names{"a"}, Names{"a", "", "h"}})
    if (auto m = load(model(graph({{node("f", in, {"b"}, {}, "", "own")},
                                   {value("a", {3}), value("h")},
                                   {named("b")},
                                   {},
                                   {}}),
                            {f}));
        !m) {
      EXPECT_EQ(m.error().code, Code::kUnimplemented) << m.error().message;  // no converter yet
    }
}

TEST(Importer, CapturesReachThroughNestedBodies) {
  const std::string inner_then =
      graph({{node("Add", {"outer", "t"}, {"r"})}, {}, {named("r")}, {}, {}});
  const std::string inner_else =
      graph({{node("Identity", {"weight"}, {"r"})}, {}, {named("r")}, {}, {}});
  const std::string then_branch =
      graph({{node("Neg", {"x"}, {"t"}),
              node("If", {"q"}, {"s"},
                   {graph_attr("then_branch", inner_then), graph_attr("else_branch", inner_else)})},
             {},
             {named("s")},
             {},
             {}});
  const std::string else_branch =
      graph({{node("Identity", {"x"}, {"s"})}, {}, {named("s")}, {}, {}});
  auto m = load(
      model(graph({{node("Abs", {"x"}, {"outer"}), node("If", {"p"}, {"y"},
                                                        {graph_attr("then_branch", then_branch),
                                                         graph_attr("else_branch", else_branch)})},
                   {value("x", {2}), value("p", {}, 9), value("q", {}, 9)},
                   {named("y")},
                   {floats({2}, {1, 2}, "weight")},
                   {}})));
  ASSERT_TRUE(m) << m.error().message;
  const ir::Node& outer = m->graph.nodes.at(1);
  EXPECT_EQ(outer.inputs.size(),
            4u);  // p, x, q, outer; the weight is a handle of its own in the body
  EXPECT_EQ(outer.bodies[0].inputs.size(), 3u);
  EXPECT_EQ(outer.bodies[1].inputs.size(), 3u);
  const ir::Node& inner = outer.bodies[0].nodes.at(1);
  EXPECT_EQ(inner.op->name, "if");
  EXPECT_EQ(inner.bodies[0].inputs.size(), inner.inputs.size() - 1);
}

// if rank-dependent: squeeze(x) else x, as exporters write it; twice, with the same names inside
TEST(Importer, BranchesOnKnownSizesAreInlined) {
  auto branch = [](const std::string& n) {
    return graph({{n}, {}, {named("t")}, {ints({1}, {0}, "axes")}, {}});
  };
  auto question = [&](const std::string& x, const std::string& y) {
    return node("If", {"one"}, {y},
                {graph_attr("then_branch", branch(node("Squeeze", {x, "axes"}, {"t"}))),
                 graph_attr("else_branch", branch(node("Identity", {x}, {"t"})))});
  };
  auto load_for = [&](int64_t size) {
    return load(model(graph({{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"d"}),
                              node("Equal", {"d", "uno"}, {"one"}), question("x", "a"),
                              question("x", "b"), node("Add", {"a", "b"}, {"y"})},
                             {value("x", {size, 3})},
                             {named("y")},
                             {ints({}, {0}, "zero"), ints({}, {1}, "uno")},
                             {}})));
  };
  for (int64_t size : {1, 2}) {
    auto m = load_for(size);
    ASSERT_TRUE(m) << m.error().message;
    const auto names = ops(m->graph);
    EXPECT_EQ(std::count(names.begin(), names.end(), "if"), 0);
    EXPECT_EQ(m->graph.type(m->graph.outputs[0]).str(), size == 1 ? "f32[3]" : "f32[2,3]");
  }
  auto open = load_for(-1);
  ASSERT_TRUE(open) << open.error().message;
  const auto names = ops(open->graph);
  EXPECT_EQ(std::count(names.begin(), names.end(), "if"), 2);
}

TEST(Importer, SparseInitializers) {
  auto sparse = [](const std::string& indices) {
    return message([&](pbf_writer& w) {
      w.add_message(1, floats({2}, {5, 7}, "w"));
      w.add_message(2, indices);
      const std::vector<int64_t> dims{2, 3};
      w.add_packed_int64(3, dims.begin(), dims.end());
    });
  };
  for (const std::string& indices : {ints({2}, {1, 5}), ints({2, 2}, {0, 1, 1, 2})}) {
    auto m = load(model(graph({{node("Add", {"x", "w"}, {"y"})},
                               {value("x", {2, 3})},
                               {named("y")},
                               {},
                               {sparse(indices)}})));
    ASSERT_TRUE(m) << m.error().message;
    const op::Tensor& w = *m->graph.value(m->graph.nodes[0].inputs[1]).constant;
    EXPECT_EQ(w.dims(), (op::Dims{2, 3}));
    std::vector<double> values;
    for (int64_t i = 0; i < 6; ++i) values.push_back(w.f64(i));
    EXPECT_EQ(values, (std::vector<double>{0, 5, 0, 0, 0, 7}));
  }
  expect_says(refused(model(graph({{node("Add", {"x", "w"}, {"y"})},
                                   {value("x", {2, 3})},
                                   {named("y")},
                                   {},
                                   {sparse(ints({2}, {1, 6}))}}))),
              {"'w'", "out of range"});
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("tessera_external_{}", ::testing::UnitTest::GetInstance()->random_seed() +
                                                     static_cast<int>(getpid()));
    std::filesystem::create_directories(folder_ / "model");
    std::ofstream(folder_ / "model" / "weights.bin", std::ios::binary)
        << std::string("....\0\0\x80\x3f\0\0\0\x40", 12);
    std::ofstream(folder_ / "secret.bin", std::ios::binary) << std::string(64, 'x');
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string with(const std::vector<int64_t>& dims,
                   const std::vector<std::pair<std::string, std::string>>& entries) {
    return model(graph({{node("Add", {"x", "w"}, {"y"})},
                        {value("x", {2})},
                        {named("y")},
                        {external(dims, "w", entries)},
                        {}}));
  }
  std::string folder() const { return (folder_ / "model").string(); }
  std::filesystem::path folder_;
};

TEST_F(ExternalData, IsMappedAtItsOffset) {
  auto m =
      load(with({2}, {{"location", "weights.bin"}, {"offset", "4"}, {"length", "8"}}), folder());
  ASSERT_TRUE(m) << m.error().message;
  const op::Tensor& w = *m->graph.value(m->graph.nodes[0].inputs[1]).constant;
  EXPECT_EQ(w.f64(0), 1);
  EXPECT_EQ(w.f64(1), 2);
}

TEST_F(ExternalData, StaysInTheFolder) {
  for (const char* location : {"../secret.bin", "/etc/passwd", "", "sub/../../secret.bin"})
    expect_says(refused(with({2}, {{"location", location}}), folder()),
                {"'w'", "outside the model's folder"});
  std::filesystem::create_symlink(folder_ / "secret.bin", folder_ / "model" / "link.bin");
  expect_says(refused(with({2}, {{"location", "link.bin"}}), folder()), {"'w'", "outside"});
  expect_says(refused(with({2}, {{"location", std::string("weights.bin\0x", 13)}}), folder()),
              {"'w'"});
  expect_says(refused(with({2}, {{"location", "weights.bin"}})), {"'w'", "no folder"});
}

TEST_F(ExternalData, MustHoldTheTensor) {
  expect_says(refused(with({4}, {{"location", "weights.bin"}}), folder()),
              {"'w'", "16 bytes", "12"});
  expect_says(refused(with({2}, {{"location", "weights.bin"}, {"offset", "8"}}), folder()),
              {"'w'", "offset 8"});
  expect_says(refused(with({2}, {{"location", "weights.bin"}, {"offset", "-4"}}), folder()),
              {"'w'", "offset -4"});
  expect_says(refused(with({2}, {{"location", "weights.bin"}, {"offset", "4x"}}), folder()),
              {"'w'", "'4x'"});
  expect_says(refused(with({2}, {{"location", "absent.bin"}}), folder()), {"'w'", "absent.bin"});
  expect_says(refused(with({int64_t{1} << 40}, {{"location", "weights.bin"}}), folder()), {"'w'"});
}

// ---- models that are wrong ----

TEST(BadModels, EveryTruncationIsRefusedOrStillAModel) {
  const std::string whole = one_node(node("Add", {"x", "w"}, {"y"}, {}, "sum"), {value("x", {2})},
                                     {floats({2}, {1, 2}, "w")});
  ASSERT_TRUE(load(whole));
  for (size_t n = 0; n < whole.size(); ++n) load(whole.substr(0, n));
  for (size_t n = 0; n < whole.size(); ++n)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[n] = static_cast<char>(flipped[n] ^ 1 << bit);
      load(flipped);
    }
}

TEST(BadModels, NotAModel) {
  for (const std::string& bytes : {std::string(), std::string("PK\x03\x04 a zip"),
                                   std::string(1000, '\0'), std::string(1000, '\xff')})
    EXPECT_EQ(refused(bytes).code, Code::kDataLoss);
}

TEST(BadModels, Sizes) {
  const std::string add = node("Add", {"x", "w"}, {"y"}, {}, "sum");
  const int64_t huge = int64_t{1} << 62;
  expect_says(refused(one_node(add, {value("x", {2})}, {tensor_head({-3}, 1, "w")})),
              {"'w'", "-3"});
  expect_says(refused(one_node(add, {value("x", {2})}, {tensor_head({huge}, 1, "w")})), {"'w'"});
  expect_says(refused(one_node(add, {value("x", {2})}, {tensor_head({huge, huge}, 1, "w")})),
              {"'w'"});
  expect_says(refused(one_node(add, {value("x", {2})}, {tensor_head({1 << 30}, 1, "w")})),
              {"'w'", "1073741824", "0"});
  expect_says(refused(one_node(add, {value("x", {2})}, {floats({3}, {1, 2}, "w")})),
              {"'w'", "8", "12"});
  expect_says(refused(one_node(add, {value("x", {2})}, {tensor_head({2}, 77, "w")})),
              {"'w'", "77"});
  EXPECT_TRUE(load(one_node(node("Neg", {"x"}, {"y"}), {value("x", {-1})})));  // -1 is an open size
  expect_says(refused(one_node(add, {value("x", {2})}, {floats({3}, {1, 2, 3}, "w")})),
              {"node 'sum'", "2", "3"});
  const std::string sparse = message([&](pbf_writer& w) {
    w.add_message(1, floats({1}, {5}, "w"));
    w.add_message(2, ints({1}, {0}));
    const std::vector<int64_t> dims{int64_t{1} << 40};
    w.add_packed_int64(3, dims.begin(), dims.end());
  });
  expect_says(refused(model(graph({{add}, {value("x", {2})}, {named("y")}, {}, {sparse}}))),
              {"'w'"});
}

TEST(BadModels, Names) {
  const std::string neg = node("Neg", {"x"}, {"y"}, {}, "first");
  expect_says(refused(one_node(node("Neg", {"nowhere"}, {"y"}, {}, "n"), {value("x")})),
              {"'nowhere'", "node 'n'"});
  expect_says(
      refused(model(graph(
          {{neg, node("Abs", {"x"}, {"y"}, {}, "second")}, {value("x")}, {named("y")}, {}, {}}))),
      {"'y'", "twice", "node 'second'"});
  expect_says(refused(model(graph({{neg}, {value("x"), value("x")}, {named("y")}, {}, {}}))),
              {"'x'", "twice"});
  expect_says(refused(model(graph({{neg}, {value("x")}, {named("z")}, {}, {}}))), {"'z'"});
  expect_says(refused(model(graph({{neg}, {value("")}, {named("y")}, {}, {}}))), {"no name"});
  expect_says(refused(model(graph({{neg}, {named("x")}, {named("y")}, {}, {}}))), {"'x'", "type"});
  expect_says(refused(model(graph({{neg}, {value("x")}, {}, {}, {}}))), {"no outputs"});
  expect_says(refused(one_node(node("Neg", {""}, {"y"}, {}, "n"), {value("x")})),
              {"node 'n'", "input 0"});
  expect_says(refused(one_node(node("Neg", {}, {"y"}, {}, "n"), {value("x")})),
              {"node 'n'", "0 inputs"});
}

TEST(BadModels, Cycles) {
  expect_says(refused(model(graph(
                  {{node("Neg", {"b"}, {"a"}, {}, "one"), node("Abs", {"a"}, {"b"}, {}, "two")},
                   {},
                   {named("b")},
                   {},
                   {}}))),
              {"'b'", "node 'one'"});
  expect_says(refused(one_node(node("Add", {"x", "y"}, {"y"}, {}, "self"), {value("x")})),
              {"'y'", "node 'self'"});
  const std::string f =
      function({"f", {"x"}, {"y"}, {}, {}, {node("g", {"x"}, {"y"}, {}, "", "own")}});
  const std::string g =
      function({"g", {"x"}, {"y"}, {}, {}, {node("f", {"x"}, {"y"}, {}, "", "own")}});
  expect_says(
      refused(model(
          graph({{node("f", {"x"}, {"y"}, {}, "", "own")}, {value("x")}, {named("y")}, {}, {}}),
          {f, g})),
      {"calls itself"});
}

// What ONNX Runtime's optimiser writes.

TEST(Microsoft, ConvolutionWithSumAndActivation) {
  const auto imported = load(
      one_node(node("FusedConv", {"x", "w", "", "z"}, {"y"},
                    {string_attr("activation", "Clip"), floats_attr("activation_params", {0, 6})},
                    "n", "com.microsoft"),
               {value("x", {1, 2, 4, 4}), value("w", {3, 2, 1, 1}), value("z", {1, 3, 4, 4})}));
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(ops(imported->graph), (std::vector<std::string>{"conv", "add", "max", "min"}));
  expect_says(refused(one_node(node("FusedConv", {"x", "w"}, {"y"},
                                    {string_attr("activation", "Snake")}, "n", "com.microsoft"),
                               {value("x", {1, 2, 4, 4}), value("w", {3, 2, 1, 1})})),
              {"node 'n'", "'Snake'"});
}

TEST(Microsoft, Products) {
  auto imported =
      load(one_node(node("FusedMatMul", {"a", "b"}, {"y"},
                         {int_attr("transA", 1), float_attr("alpha", 0.5f)}, "n", "com.microsoft"),
                    {value("a", {2, 3, 4}), value("b", {2, 3, 5})}));
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(ops(imported->graph), (std::vector<std::string>{"transpose", "dot", "mul"}));
  EXPECT_EQ(imported->graph.type(imported->graph.outputs[0]).str(), "f32[2,4,5]");
  imported = load(
      one_node(node("FusedGemm", {"a", "b", "c"}, {"y"},
                    {string_attr("activation", "LeakyRelu"), float_attr("activation_alpha", 0.3f)},
                    "n", "com.microsoft"),
               {value("a", {2, 3}), value("b", {3, 4}), value("c", {4})}));
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(ops(imported->graph), (std::vector<std::string>{"dot", "add", "leaky_relu"}));
  EXPECT_FLOAT_EQ(static_cast<float>(imported->graph.nodes[2].attrs.f("alpha")), 0.3f);
}

TEST(Microsoft, NormsOfSums) {
  for (const bool rms : {false, true}) {
    const std::string op = rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization";
    const Names in = rms ? Names{"x", "s", "g", "b"} : Names{"x", "s", "g", "", "b"};
    const auto imported = load(one_node(
        node(op, in, {"y", "", "", "sum"}, {float_attr("epsilon", 1e-6f)}, "n", "com.microsoft"),
        {value("x", {2, 3, 4}), value("s", {2, 3, 4}), value("g", {4}), value("b", {4})}));
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(ops(imported->graph),
              (std::vector<std::string>{"add", "add", rms ? "rms_norm" : "layer_norm"}));
    EXPECT_FLOAT_EQ(static_cast<float>(imported->graph.nodes[2].attrs.f("epsilon")), 1e-6f);
  }
}

TEST(Microsoft, Activations) {
  for (const auto& [name, tanh] : {std::pair("Gelu", 0), {"BiasGelu", 0}, {"FastGelu", 1}}) {
    const bool biased = std::string_view(name) != "Gelu";
    const auto imported = load(
        one_node(node(name, biased ? Names{"x", "b"} : Names{"x"}, {"y"}, {}, "n", "com.microsoft"),
                 {value("x", {2, 4}), value("b", {4})}));
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(ops(imported->graph).back(), "gelu") << name;
    EXPECT_EQ(imported->graph.nodes.size(), biased ? 2u : 1u);
    EXPECT_EQ(imported->graph.nodes.back().attrs.i("tanh"), tanh);
  }
}

TEST(BadModels, Versions) {
  const std::string g =
      graph({{node("Neg", {"x"}, {"y"}, {}, "n")}, {value("x")}, {named("y")}, {}, {}});
  expect_says(refused(model(g, {}, 9999)), {"opset 9999"});
  expect_says(refused(model(g, {}, -1)), {"opset -1"});
  expect_says(
      refused(model(graph(
          {{node("Frobnicate", {"x"}, {"y"}, {}, "n")}, {value("x")}, {named("y")}, {}, {}}))),
      {"'Frobnicate'", "node 'n'"});
  expect_says(refused(model(graph({{node("Neg", {"x"}, {"y"}, {}, "n", "other.domain")},
                                   {value("x")},
                                   {named("y")},
                                   {},
                                   {}}))),
              {"other.domain"});
}

TEST(BadModels, NestedDeep) {
  // 10,000 bodies inside each other.
  std::string g = graph({{node("Neg", {"x"}, {"y"})}, {}, {named("y")}, {}, {}});
  for (int i = 0; i < 10000; ++i)
    g = message([&](pbf_writer& w) {
      w.add_message(1, node("If", {"p"}, {"y"}, {graph_attr("then_branch", g)}));
    });
  expect_says(refused(model(g)), {"nested"});
  // Types inside each other.
  std::string t = message(
      [&](pbf_writer& w) { w.add_message(1, message([](pbf_writer& e) { e.add_int32(1, 1); })); });
  for (int i = 0; i < 10000; ++i)
    t = message([&](pbf_writer& w) {
      w.add_message(4, message([&](pbf_writer& e) { e.add_message(1, t); }));
    });
  const std::string input = message([&](pbf_writer& w) {
    w.add_string(1, "x");
    w.add_message(2, t);
  });
  expect_says(
      refused(model(graph({{node("Identity", {"x"}, {"y"})}, {input}, {named("y")}, {}, {}}))),
      {"nested"});
}

TEST(BadModels, FunctionsThatMultiply) {
  // f0 calls f1 ten times, f1 calls f2 ten times, ...: 10^30 nodes from a few kB.
  std::vector<std::string> functions;
  for (int i = 0; i < 30; ++i) {
    std::vector<std::string> nodes;
    std::string from = "x";
    for (int k = 0; k < 10; ++k) {
      const std::string to = k == 9 ? "y" : fmt::format("t{}", k);
      nodes.push_back(i == 29 ? node("Neg", {from}, {to})
                              : node(fmt::format("f{}", i + 1), {from}, {to}, {}, "", "own"));
      from = to;
    }
    functions.push_back(function({fmt::format("f{}", i), {"x"}, {"y"}, {}, {}, nodes}));
  }
  const Error e = refused(
      model(graph({{node("f0", {"x"}, {"y"}, {}, "", "own")}, {value("x")}, {named("y")}, {}, {}}),
            functions));
  EXPECT_EQ(e.code, Code::kResourceExhausted) << e.message;
}

TEST(BadModels, SizesThatMultiply) {
  // Each node doubles the expression of a size.
  std::vector<std::string> nodes{node("Shape", {"x"}, {"s0"})};
  for (int i = 0; i < 60; ++i)
    nodes.push_back(node(i % 2 ? "Mul" : "Add", {fmt::format("s{}", i), fmt::format("s{}", i)},
                         {fmt::format("s{}", i + 1)}));
  nodes.push_back(node("Reshape", {"x", "s60"}, {"y"}));
  auto m = load(model(graph({nodes, {value("x", {-1, -1})}, {named("y")}, {}, {}})));
  if (!m) {
    EXPECT_EQ(m.error().code, Code::kInvalidArgument) << m.error().message;
  }
  std::vector<std::string> more;
  for (int i = 0; i < 60; ++i) {  // sizes a, b: broadcast(a, b), broadcast(b, broadcast(a, b)), ...
    more.push_back(node("Concat",
                        {i ? fmt::format("v{}", i) : "x", i ? fmt::format("v{}", i) : "x"},
                        {fmt::format("c{}", i)}, {int_attr("axis", 0)}));
    more.push_back(node("Add", {fmt::format("c{}", i), "z"}, {fmt::format("v{}", i + 1)}));
  }
  auto n = load(model(graph({more, {value("x", {-1}), value("z", {-1})}, {named("v60")}, {}, {}})));
  EXPECT_TRUE(n) << n.error().message;
}

TEST(BadModels, ContainersWhereTensorsBelong) {
  const std::string make = node("SequenceConstruct", {"x"}, {"s"});
  expect_says(
      refused(model(graph(
          {{make, node("Neg", {"s"}, {"y"}, {}, "n")}, {value("x", {2})}, {named("y")}, {}, {}}))),
      {"node 'n'", "seq<f32[2]>"});
  expect_says(refused(model(graph({{node("SequenceLength", {"x"}, {"y"}, {}, "n")},
                                   {value("x", {2})},
                                   {named("y")},
                                   {},
                                   {}}))),
              {"node 'n'", "f32[2]"});
  const std::string body = graph({{node("Neg", {"x"}, {"r"})}, {}, {named("r")}, {}, {}});
  const std::vector<std::string> branches{graph_attr("then_branch", body),
                                          graph_attr("else_branch", body)};
  for (const Names& in : {Names{"x"}, Names{""}, Names{}})
    expect_says(refused(one_node(node("If", in, {"y"}, branches, "n"), {value("x", {2})})),
                {"node 'n'"});
  expect_says(refused(one_node(node("Loop", {"x", "", "x"}, {"y"}, {graph_attr("body", body)}, "n"),
                               {value("x", {2})})),
              {"node 'n'"});
}

TEST(BadModels, AttributesOfAnotherType) {
  expect_says(refused(one_node(node("Transpose", {"x"}, {"y"}, {int_attr("perm", 1)}, "n"),
                               {value("x", {2, 3})})),
              {"'perm'", "node 'n'"});
  expect_says(refused(one_node(node("If", {"p"}, {"y"}, {int_attr("then_branch", 1)}, "n"),
                               {value("p", {}, 9)})),
              {"node 'n'"});
  expect_says(
      refused(one_node(
          node("Constant", {}, {"y"}, {tensor_attr("value", tensor_head({-1}, 1, "c"))}, "n"), {})),
      {"node 'n'", "-1"});
}

}  // namespace
}  // namespace tessera::import::onnx
