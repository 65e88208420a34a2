#include "tessera/ir/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

struct Case {
  std::string name;
  std::vector<Dims> inputs;
  ValueId (*build)(Builder& b, const std::vector<ValueId>& x);
};

const Case kCases[] = {
    {"add_and_mul",
     {{2, 3}, {2, 3}},
     [](Builder& b, auto& x) { return b.mul(b.add(x[0], x[1]), x[0]); }},
    {"broadcast",
     {{2, 1, 3}, {4, 1}},
     [](Builder& b, auto& x) {
       return b.div(b.sub(x[0], x[1]), b.add(b.mul(x[1], x[1]), b.scalar_like(x[1], 1)));
     }},
    {"unary",
     {{5}},
     [](Builder& b, auto& x) {
       const ValueId e =
           b.add(b.unary("exp", b.unary("sin", x[0])), b.unary("abs", b.unary("erf", x[0])));
       return b.mul(b.unary("log", e),
                    b.unary("sqrt", b.add(b.unary("cos", x[0]), b.unary("tanh", e))));
     }},
    {"pow",
     {{3}, {3}},
     [](Builder& b, auto& x) {
       return b.op("pow", {b.add(b.unary("abs", x[0]), b.scalar_like(x[0], 1)), x[1]});
     }},
    {"dot",
     {{3, 2, 4}, {4, 5}},
     [](Builder& b, auto& x) {
       return b.op("dot", {x[0], x[1]});
     }},
    {"extremes",
     {{2, 5}, {5}},
     [](Builder& b, auto& x) {
       return b.mul(b.reduce("max", b.max(x[0], x[1]), {1}, true),
                    b.reduce("min", b.min(x[0], x[1]), {0}, false));
     }},
    {"moves",
     {{2, 3, 4}, {2, 1, 4}},
     [](Builder& b, auto& x) {
       const ValueId joined = b.transpose(b.concat({x[0], x[1]}, 1), {2, 0, 1});
       return b.mul(b.squeeze(b.slice(joined, 0, -3, -2), {0}),
                    b.reshape(b.slice(joined, 0, 1, 3), {2, 2, -1}));
     }},
    {"gather",
     {{2, 3, 2}},
     [](Builder& b, auto& x) {
       const ValueId g = b.gather(x[0], b.constant(i64({2, 2}, {0, 2, 2, -1})), 1);
       return b.mul(g, g);
     }},
    {"select",
     {{4}, {}},
     [](Builder& b, auto& x) {
       return b.select(b.op("gt", {x[0], b.scalar_like(x[0], 0)}), b.mul(x[0], x[1]), x[1]);
     }},
    {"activations",
     {{6}},
     [](Builder& b, auto& x) {
       ValueId y = x[0];
       for (const char* name :
            {"gelu", "silu", "mish", "elu", "hard_swish", "leaky_relu", "softplus", "sigmoid"})
         y = b.add(y, b.op(name, {y}));
       return y;
     }},
    {"softmax",
     {{2, 3, 2}},
     [](Builder& b, auto& x) {
       return b.mul(b.op("softmax", {x[0]}, {{"axis", int64_t{1}}}),
                    b.op("log_softmax", {x[0]}, {{"axis", int64_t{1}}}));
     }},
    {"layer_norm",
     {{2, 5}, {5}, {5}},
     [](Builder& b, auto& x) {
       const ValueId y = b.ops("layer_norm", {x[0], x[1], x[2]}, {{"stash", DType::kF64}}, 3)[0];
       return b.mul(y, y);
     }},
    {"attention",
     {{1, 4, 2, 3}, {1, 2, 3, 3}, {1, 2, 3, 2}},
     [](Builder& b, auto& x) {
       return b.op("attention", {x[0], x[1], x[2]}, {{"causal", int64_t{1}}, {"softcap", 2.0}});
     }},
};

// Every rule is an identity with the difference quotient of the interpreter's own values.
TEST(Gradients, AreTheLimitsOfDifferences) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Graph graph;
    std::vector<ValueId> x;
    std::vector<Value> values;
    for (const Dims& dims : c.inputs) {
      const Tensor t = random(DType::kF64, dims, 17 + values.size());
      values.emplace_back(t);
      x.push_back(graph.add_input("x" + std::to_string(x.size()), t.type()));
    }
    Builder b(graph);
    const ValueId y = c.build(b, x);
    ASSERT_TRUE(b.ok()) << b.status().error().message;
    auto g = gradients(b, y, x);
    ASSERT_TRUE(g) << g.error().message;
    graph.outputs = *g;
    graph.outputs.push_back(b.reduce("sum", y, {}, false));
    graph.output_names.resize(graph.outputs.size());
    auto results = run(graph, values, {});
    ASSERT_TRUE(results) << results.error().message;
    for (size_t i = 0; i < x.size(); ++i) {
      const Tensor& given = values[i].tensor();
      const Tensor& slope = (*results)[i].tensor();
      ASSERT_EQ(slope.dims(), given.dims());
      for (int64_t k = 0; k < given.count(); ++k) {
        auto at = [&](double delta) {
          std::vector<Value> shifted = values;
          Tensor t = tensor(DType::kF64, given.dims(), values_of(given));
          t.set_f64(k, given.f64(k) + delta);
          shifted[i] = t;
          return run(graph, shifted, {})->back().tensor().f64(0);
        };
        const double step = 1e-6, expected = (at(step) - at(-step)) / (2 * step);
        ASSERT_NEAR(slope.f64(k), expected, 1e-6 * std::max(1.0, std::fabs(expected)))
            << "input " << i << " at " << k;
      }
    }
  }
}

TEST(Gradients, AreZeroWithoutDependenceAndStopAtTheEnds) {
  Graph graph;
  const ValueId x = graph.add_input("x", op::Type::tensor(DType::kF32, {2})),
                z = graph.add_input("z", op::Type::tensor(DType::kF32, {2}));
  Builder b(graph);
  const ValueId h = b.mul(x, x), y = b.mul(h, x);
  auto g = gradients(b, y, {x, h, z});
  ASSERT_TRUE(g) << g.error().message;
  graph.outputs = *g;
  graph.output_names.resize(3);
  auto results = run(graph, std::vector<Value>{f32({2}, {2, 3}), f32({2}, {7, 7})}, {});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(values_of((*results)[0].tensor()), (std::vector<double>{4, 9}));  // h, held fixed
  EXPECT_EQ(values_of((*results)[1].tensor()), (std::vector<double>{2, 3}));
  EXPECT_EQ(values_of((*results)[2].tensor()), (std::vector<double>{0, 0}));
}

TEST(Gradients, NameTheOperatorWithoutARule) {
  Graph graph;
  const ValueId x = graph.add_input("x", op::Type::tensor(DType::kF32, {2}));
  Builder b(graph);
  auto g = gradients(b, b.unary("asin", x), {x});
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().code, Code::kUnimplemented);
  EXPECT_NE(g.error().message.find("asin"), std::string::npos);
}

TEST(Substituted, RecomputesWithOtherValues) {
  Graph graph;
  const ValueId x = graph.add_input("x", op::Type::tensor(DType::kF32, {})),
                z = graph.add_input("z", op::Type::tensor(DType::kF32, {}));
  Builder b(graph);
  const ValueId y = b.add(b.mul(x, x), z);
  EXPECT_EQ(substituted(b, y, {x}, {x}), y);
  graph.outputs = {substituted(b, y, {x}, {z})};
  graph.output_names.resize(1);
  auto results = run(graph, std::vector<Value>{f32({}, {2}), f32({}, {5})}, {});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ((*results)[0].tensor().f64(0), 30);
}

}  // namespace
}  // namespace tessera::ir::reference
