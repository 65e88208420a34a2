#include "tessera/passes/check/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tessera/ir/reference/interpreter.h"
#include "tessera/ir/text.h"

namespace tessera::passes::check {
namespace {

ir::Graph parsed(std::string_view text, const std::vector<op::Tensor>& store) {
  auto graph = ir::parse(text, store);
  EXPECT_TRUE(graph) << graph.error().message << "\n" << text;
  if (!graph) return ir::Graph();
  EXPECT_TRUE(ir::verify(*graph));
  return *std::move(graph);
}

std::string anonymous(ir::Graph graph) {
  for (ir::ValueInfo& info : graph.values) info.name.clear();
  for (ir::Node& node : graph.nodes) node.origin.clear();
  return ir::print(graph);
}

// 2, 3, ... in order of appearance.
void bind(const op::Type& type, op::Bindings& bindings) {
  for (const op::Expr& d : *type.shape)
    for (const std::string& s : d.symbols())
      bindings.emplace(s, 2 + static_cast<int64_t>(bindings.size()));
}

std::vector<op::Value> inputs_of(const ir::Graph& graph, unsigned seed, bool special) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  op::Bindings bindings;
  std::vector<op::Value> values;
  for (ir::ValueId id : graph.inputs) {
    const op::Type& type = graph.type(id);
    bind(type, bindings);
    op::Dims dims;
    for (const op::Expr& d : *type.shape) dims.push_back(*d.eval(bindings));
    op::Tensor t = *op::Tensor::make(type.dtype, dims);
    for (int64_t i = 0; i < t.count(); ++i) {
      if (!is_float(type.dtype)) {
        t.set_i64(i, static_cast<int64_t>(engine() % 2));
        continue;
      }
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      constexpr double kSpecial[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity,
                                     -kInfinity, 0.0};
      t.set_f64(i, special && engine() % 16 == 0 ? kSpecial[engine() % 4] : normal(engine));
    }
    values.emplace_back(std::move(t));
  }
  return values;
}

// Each type is what the operator infers from its inputs, where both are numbers.
void expect_inferred(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    auto inferred = ir::infer(graph, *node.op, node.inputs, node.attrs, node.bodies,
                              static_cast<int>(node.outputs.size()));
    ASSERT_TRUE(inferred) << inferred.error().message << "\n" << ir::print(graph);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == ir::kAbsent) continue;
      const op::Type &a = inferred->types[i], &b = graph.type(node.outputs[i]);
      ASSERT_EQ(a.dtype, b.dtype) << ir::print(graph);
      if (!a.ranked() || !b.ranked()) continue;
      ASSERT_EQ(a.rank(), b.rank()) << ir::print(graph);
      for (int d = 0; d < a.rank(); ++d)
        ASSERT_TRUE(!a.dim(d).is_constant() || !b.dim(d).is_constant() || a.dim(d) == b.dim(d))
            << a.str() << " is stored as " << b.str() << "\n"
            << ir::print(graph);
    }
    for (const ir::Graph& body : node.bodies) expect_inferred(body);
  }
}

void expect_near(const op::Tensor& was, const op::Tensor& is, Tolerance tolerance,
                 const std::string& what) {
  ASSERT_EQ(was.dtype(), is.dtype()) << what;
  ASSERT_EQ(was.dims(), is.dims()) << what;
  double largest = 0;
  for (int64_t i = 0; i < was.count(); ++i)
    if (std::isfinite(was.f64(i))) largest = std::max(largest, std::abs(was.f64(i)));
  for (int64_t i = 0; i < was.count(); ++i) {
    const double a = was.f64(i), b = is.f64(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::abs(a - b), tolerance.relative * largest)
        << what << ": element " << i << " was " << a << ", is " << b;
  }
}

}  // namespace

op::Tensor random_tensor(op::Dims dims, unsigned seed, DType dtype) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  op::Tensor t = *op::Tensor::make(dtype, std::move(dims));
  for (int64_t i = 0; i < t.count(); ++i) t.set_f64(i, normal(engine));
  return t;
}

std::string normal(std::string_view text, const std::vector<op::Tensor>& store) {
  return anonymous(parsed(text, store));
}

void expect_same(const ir::Graph& before, const ir::Graph& after, Tolerance tolerance,
                 unsigned seed) {
  const std::vector<op::Value> inputs = inputs_of(before, seed, tolerance.relative == 0);
  auto was = ir::reference::run(before, inputs, {}), is = ir::reference::run(after, inputs, {});
  ASSERT_TRUE(was) << was.error().message << "\n" << ir::print(before);
  ASSERT_TRUE(is) << is.error().message << "\n" << ir::print(after);
  ASSERT_EQ(was->size(), is->size());
  for (size_t i = 0; i < was->size(); ++i)
    expect_near((*was)[i].tensor(), (*is)[i].tensor(), tolerance,
                fmt::format("output {} of\n{}\nafter\n{}", i, ir::print(before), ir::print(after)));
}

SimplifyReport simplify_checked(ir::Graph& graph, std::vector<std::string_view> only) {
  SimplifyOptions options;
  options.only = std::move(only);
  options.evaluate = [](const ir::Node& node, std::span<const op::Value* const> inputs) {
    return ir::reference::evaluate(node, inputs, {});
  };
  options.observe = [](std::string_view pass, const ir::Graph& g) {
    const Status ok = ir::verify(g);
    ASSERT_TRUE(ok) << pass << ": " << ok.error().message << "\n" << ir::print(g);
    expect_inferred(g);
  };
  return simplify(graph, options);
}

void rewrites(std::string_view pass, std::string_view before, std::string_view after,
              Tolerance tolerance, const std::vector<op::Tensor>& store) {
  const ir::Graph graph = parsed(before, store);
  ir::Graph rewritten = parsed(before, store);
  const SimplifyReport report = simplify_checked(rewritten, {pass});
  EXPECT_FALSE(report.fired.empty());
  for (const Event& e : report.fired) EXPECT_EQ(e.pass, pass);
  EXPECT_EQ(anonymous(rewritten), normal(after, store));
  expect_same(graph, rewritten, tolerance);
}

void stays(std::string_view pass, std::string_view text, std::string_view reason,
           const std::vector<op::Tensor>& store) {
  ir::Graph graph = parsed(text, store);
  const SimplifyReport report = simplify_checked(graph, {pass});
  for (const Event& e : report.fired) ADD_FAILURE() << e.pass << ": " << e.text;
  EXPECT_EQ(anonymous(std::move(graph)), normal(text, store));
  bool found = reason.empty();
  for (const Event& e : report.missed) found = found || e.text.find(reason) != e.text.npos;
  EXPECT_TRUE(found) << reason;
}

}  // namespace tessera::passes::check
