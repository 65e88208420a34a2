// Old forms of operators, normalised: what was an attribute is an input now, broadcasts had an
// axis, sizes were implied.
#include <gtest/gtest.h>

#include "tessera/import/onnx/model.h"
#include "tessera/import/onnx/test_model.h"

namespace tessera::import::onnx {
namespace {

using namespace test;

struct Case {
  int64_t opset;
  std::string op;
  std::vector<std::string> attrs;
  std::vector<std::string>
      inputs;  // declarations, named x0, x1, ...; initializers named c0, c1, ... follow
  std::vector<std::string> initializers;
  std::vector<std::string> outputs;  // types expected
};

Result<ir::Graph> import_case(const Case& c) {
  GraphParts g;
  Names in, out;
  for (size_t i = 0; i < c.inputs.size(); ++i) in.push_back("x" + std::to_string(i));
  for (size_t i = 0; i < c.initializers.size(); ++i) in.push_back("c" + std::to_string(i));
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    out.push_back("y" + std::to_string(i));
    g.outputs.push_back(named(out.back()));
  }
  g.nodes = {node(c.op, in, out, c.attrs)};
  g.inputs = c.inputs;
  g.initializers = c.initializers;
  auto bytes = std::make_shared<const std::string>(model(graph(g), {}, c.opset));
  TRY_ASSIGN(ImportedModel m, import_model(*bytes, bytes, {}));
  return std::move(m.graph);
}

const std::string kX = value("x0", {2, 3, 4});

TEST(Versions, OldFormsHaveTheTypesOfNewOnes) {
  const Case cases[] = {
      {1,
       "Slice",
       {ints_attr("starts", {0, 1}), ints_attr("ends", {2, 100}), ints_attr("axes", {0, 2})},
       {kX},
       {},
       {"f32[2,3,3]"}},
      {10,
       "Slice",
       {},
       {kX},
       {ints({1}, {-2}, "c0"), ints({1}, {-1}, "c1"), ints({1}, {1}, "c2")},
       {"f32[2,1,4]"}},
      {2,
       "Split",
       {int_attr("axis", 2), ints_attr("split", {1, 3})},
       {kX},
       {},
       {"f32[2,3,1]", "f32[2,3,3]"}},
      {13,
       "Split",
       {int_attr("axis", 1)},
       {kX},
       {ints({2}, {1, 2}, "c0")},
       {"f32[2,1,4]", "f32[2,2,4]"}},
      {18,
       "Split",
       {int_attr("axis", 1), int_attr("num_outputs", 2)},
       {kX},
       {},
       {"f32[2,2,4]", "f32[2,1,4]"}},
      {3, "Concat", {}, {kX, value("x1", {2, 5, 4})}, {}, {"f32[2,8,4]"}},
      {1, "Pad", {ints_attr("paddings", {0, 0, 1, 0, 0, 2})}, {kX}, {}, {"f32[2,3,7]"}},
      {2,
       "Pad",
       {ints_attr("pads", {0, 0, 1, 0, 0, 2}), string_attr("mode", "edge")},
       {kX},
       {},
       {"f32[2,3,7]"}},
      {11, "Pad", {}, {kX}, {ints({6}, {0, -1, 0, 0, 0, 1}, "c0")}, {"f32[2,2,5]"}},
      {1, "Unsqueeze", {ints_attr("axes", {0, 4})}, {kX}, {}, {"f32[1,2,3,4,1]"}},
      {13, "Unsqueeze", {}, {kX}, {ints({1}, {-1}, "c0")}, {"f32[2,3,4,1]"}},
      {1, "Squeeze", {ints_attr("axes", {0})}, {value("x0", {1, 3})}, {}, {"f32[3]"}},
      {1, "Reshape", {ints_attr("shape", {0, -1})}, {kX}, {}, {"f32[2,12]"}},
      {1, "ReduceSum", {ints_attr("axes", {0, 2}), int_attr("keepdims", 0)}, {kX}, {}, {"f32[3]"}},
      {13, "ReduceSum", {}, {kX}, {ints({1}, {1}, "c0")}, {"f32[2,1,4]"}},
      {18, "ReduceMean", {int_attr("noop_with_empty_axes", 1)}, {kX}, {}, {"f32[2,3,4]"}},
      {1, "TopK", {int_attr("k", 2), int_attr("axis", 1)}, {kX}, {}, {"f32[2,2,4]", "i64[2,2,4]"}},
      {6,
       "Add",
       {int_attr("broadcast", 1), int_attr("axis", 1)},
       {kX, value("x1", {3})},
       {},
       {"f32[2,3,4]"}},
      {6,
       "Greater",
       {int_attr("broadcast", 1), int_attr("axis", 0)},
       {kX, value("x1", {2})},
       {},
       {"bool[2,3,4]"}},
      {6, "PRelu", {}, {kX, value("x1", {3})}, {}, {"f32[2,3,4]"}},
      {6, "Clip", {float_attr("min", 0)}, {kX}, {}, {"f32[2,3,4]"}},
      {1, "Cast", {string_attr("to", "FLOAT16")}, {kX}, {}, {"f16[2,3,4]"}},
      {9, "Cast", {int_attr("to", 11)}, {kX}, {}, {"f64[2,3,4]"}},
      {1, "Flatten", {}, {kX}, {}, {"f32[2,12]"}},
      {15, "Shape", {int_attr("start", -1)}, {kX}, {}, {"i64[1]"}},
      {9,
       "Scatter",
       {int_attr("axis", 1)},
       {value("x0", {3, 3}), value("x1", {1, 2}, 7), value("x2", {1, 2})},
       {},
       {"f32[3,3]"}},
  };
  for (const Case& c : cases) {
    auto graph = import_case(c);
    ASSERT_TRUE(graph) << c.op << " " << c.opset << ": " << graph.error().message;
    for (size_t i = 0; i < c.outputs.size(); ++i)
      EXPECT_EQ(graph->type(graph->outputs[i]).str(), c.outputs[i]) << c.op << " " << c.opset;
  }
}

TEST(Versions, FormsThatNoVersionHasAreRefused) {
  const Case cases[] = {
      {13, "Split", {int_attr("axis", 1)}, {kX}, {}, {"", ""}},  // 3 into 2 equal parts
      {13, "Concat", {}, {kX, value("x1", {2, 3, 4})}, {}, {""}},
      {13, "Mod", {}, {kX, value("x1", {4})}, {}, {""}},
      {12, "Einsum", {string_attr("equation", "ij->ik")}, {value("x0", {2, 3})}, {}, {""}},
      {12, "Einsum", {string_attr("equation", "ij,jk->ik")}, {value("x0", {2, 3})}, {}, {""}},
      {1, "DepthToSpace", {int_attr("blocksize", 0)}, {value("x0", {1, 4, 2, 2})}, {}, {""}},
      {11,
       "BitShift",
       {string_attr("direction", "UP")},
       {value("x0", {2}, 2), value("x1", {2}, 2)},
       {},
       {""}},
  };
  for (const Case& c : cases) EXPECT_FALSE(import_case(c)) << c.op;
}

}  // namespace
}  // namespace tessera::import::onnx
