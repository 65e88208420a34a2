// Shape arithmetic stays symbolic: the chains that exporters write for dynamic sizes.
#include <gtest/gtest.h>

#include "tessera/ir/composites.h"
#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

op::Type type(std::string_view text) { return *op::Type::parse(text); }
ValueId scalar(Builder& b, int64_t v) { return b.constant(Tensor::scalar(DType::kI64, v)); }

struct Symbolic : ::testing::Test {
  Graph graph;
  Builder b{graph};
  std::string str(ValueId id) { return b.ok() ? b.type(id).str() : b.status().error().message; }
};

TEST_F(Symbolic, HeadsOfAttentionKeepBatchAndLength) {
  const ValueId x = graph.add_input("x", type("f32[n,s,768]"));
  const ValueId sizes = b.op("shape_of", {x});
  auto size = [&](int64_t i) { return b.unsqueeze(b.gather(sizes, scalar(b, i), 0), {0}); };
  const ValueId split =
      b.op("reshape", {x, b.concat({size(0), size(1), b.ints({12}), b.ints({-1})}, 0)});
  EXPECT_EQ(str(split), "f32[n,s,12,64]");
  const ValueId heads = b.transpose(split, {0, 2, 1, 3});
  const ValueId back = b.op("reshape", {b.transpose(heads, {0, 2, 1, 3}),
                                        b.concat({size(0), size(1), b.ints({768})}, 0)});
  EXPECT_EQ(str(back), "f32[n,s,768]");
}

TEST_F(Symbolic, ExpandOfMinusOneKeepsTheSize) {
  // Where(shape == -1, ones, shape), as torch exports expand().
  const ValueId x = graph.add_input("x", type("f32[1,s]"));
  const ValueId n = b.dim(graph.add_input("y", type("f32[n]")), 0);
  const ValueId wanted = b.concat({n, b.ints({-1})}, 0);
  const ValueId ones = b.broadcast_to(scalar(b, 1), b.ints({2}));
  const ValueId shape = b.select(b.op("eq", {wanted, b.mul(ones, b.ints({-1}))}), ones, wanted);
  EXPECT_EQ(str(b.broadcast_to(x, shape)), "f32[n,s]");
}

TEST_F(Symbolic, CausalMaskOfPastAndPresent) {
  const ValueId past = graph.add_input("past", type("f32[n,12,p,64]")),
                now = graph.add_input("now", type("f32[n,12,s,64]"));
  const ValueId keys = b.concat({past, now}, 2);
  EXPECT_EQ(str(keys), "f32[n,12,p + s,64]");
  const ValueId total = b.dim(keys, 2), query = b.dim(now, 2);
  EXPECT_EQ(str(b.op("range", {scalar(b, 0), b.reshape(total, {}), scalar(b, 1)})), "i64[p + s]");
  const ValueId rows =
      b.op("range", {b.reshape(b.sub(total, query), {}), b.reshape(total, {}), scalar(b, 1)});
  EXPECT_EQ(str(rows), "i64[s]");
  const ValueId mask = b.constant(*Tensor::make(DType::kBool, {1, 1, 1024, 1024}));
  const ValueId part = b.op("slice", {mask, b.sub(total, query), total, b.ints({2}), b.ints({1})});
  EXPECT_EQ(str(part), "bool[1,1,min(1024, p + s) - min(1024, p),1024]");
}

TEST_F(Symbolic, RollOfAWindowKeepsTheSize) {
  const ValueId x = graph.add_input("x", type("f32[n,h,w,96]"));
  const ValueId up = b.concat({b.slice(x, 1, 3, INT64_MAX), b.slice(x, 1, 0, 3)}, 1);
  EXPECT_EQ(str(up), "f32[n,h,w,96]");
  const ValueId down = b.concat({b.slice(x, 2, -3, INT64_MAX), b.slice(x, 2, 0, -3)}, 2);
  EXPECT_EQ(str(down), "f32[n,h,w,96]");
}

TEST_F(Symbolic, PadsComputedByReshapeAndReversal) {
  // torch's F.pad: (last axis first, begin and end) reversed into ONNX's order by a 2-column table.
  const ValueId x = graph.add_input("x", type("f32[n,h,w,96]"));
  const ValueId missing =
      b.op("mod", {b.sub(b.ints({7}), b.op("mod", {b.dim(x, 1), b.ints({7})})), b.ints({7})});
  const ValueId given =
      b.concat({b.ints({0, 0, 0, 0, 0}), missing}, 0);  // channels, w, h: begin, end
  const ValueId all = b.concat({given, b.broadcast_to(scalar(b, 0), b.ints({2}))}, 0);
  const ValueId table = b.op("reshape", {all, b.ints({-1, 2})});
  const ValueId reversed =
      b.op("slice", {table, b.ints({-1}), b.ints({INT64_MIN + 1}), b.ints({0}), b.ints({-1})});
  const ValueId pads = b.op("reshape", {b.transpose(reversed, {1, 0}), b.ints({-1})});
  EXPECT_EQ(str(b.op("pad", {x, pads})), "f32[n,h + mod(6*mod(h, 7), 7),w,96]");
}

TEST_F(Symbolic, SizesScaledAsFloats) {
  const ValueId x = graph.add_input("x", type("f32[n,3,h,w]"));
  const ValueId twice = b.mul(b.convert(b.dim(x, 2), DType::kF32), b.scalar(DType::kF32, 2));
  const ValueId size = b.convert(b.unary("floor", twice), DType::kI64);
  EXPECT_EQ(str(b.broadcast_to(b.constant(f32({}, {0})), size)), "f32[2*h]");
}

TEST_F(Symbolic, WindowsDivideWhatWasPadded) {
  const ValueId x = graph.add_input("x", type("f32[n,7*a,7*b,96]"));
  const ValueId h = b.dim(x, 1);
  const ValueId windows = b.div(h, b.ints({7}));
  EXPECT_EQ(
      str(b.op("reshape",
               {x, b.concat({b.ints({-1}), windows, b.ints({7}), b.dim(x, 2), b.ints({96})}, 0)})),
      "f32[n,a,7,7*b,96]");
}

TEST_F(Symbolic, SlicesClampAsPythonDoes) {
  const ValueId x = graph.add_input("x", type("f32[s]"));
  EXPECT_EQ(str(b.slice(x, 0, 0, INT64_MAX)), "f32[s]");
  EXPECT_EQ(str(b.slice(x, 0, 1, INT64_MAX)), "f32[-min(1, s) + s]");
  EXPECT_EQ(str(b.slice(x, 0, 0, -1)), "f32[max(0, s - 1)]");
  EXPECT_EQ(str(b.slice(x, 0, 5, 2)), "f32[0]");
  EXPECT_EQ(str(b.op("slice", {x, b.ints({-1}), b.ints({INT64_MIN}), b.ints({0}), b.ints({-1})})),
            "f32[s]");
  EXPECT_EQ(str(b.op("slice", {x, b.ints({0}), b.ints({INT64_MAX}), b.ints({0}), b.ints({2})})),
            "f32[floordiv(s + 1, 2)]");
}

TEST_F(Symbolic, UnknownRanksStayUnknown) {
  const ValueId x = graph.add_input("x", type("f32[*]"));
  EXPECT_EQ(str(b.unsqueeze(x, {0})), "f32[*]");
  EXPECT_EQ(str(b.slice(x, 0, 0, 1)), "f32[*]");
  EXPECT_EQ(str(b.op("reshape", {x, b.ints({2, 3})})), "f32[2,3]");
  EXPECT_EQ(str(b.op("gather", {x, b.ints({0})})), "f32[*]");
  EXPECT_EQ(b.type(b.op("shape_of", {x})).rank(), 1);
}

// What is inferred with symbols agrees with what is computed, for any sizes.
TEST_F(Symbolic, InferredSizesAreTheComputedOnes) {
  const ValueId x = graph.add_input("x", type("f32[s]"));
  for (int64_t start : {-7, -3, -1, 0, 1, 4, 100})
    for (int64_t end : {-100, -4, -1, 0, 2, 5, 100})
      for (int64_t step : {-3, -1, 1, 2}) {
        const ValueId y =
            b.op("slice", {x, b.ints({start}), b.ints({end}), b.ints({0}), b.ints({step})});
        graph.outputs.push_back(y);
      }
  ASSERT_TRUE(b.ok());
  graph.output_names.resize(graph.outputs.size());
  for (int64_t s : {0, 1, 2, 3, 7}) {
    std::vector<Value> inputs{*Tensor::make(DType::kF32, {s})};
    auto values = run(graph, inputs, {});
    ASSERT_TRUE(values) << values.error().message;
    for (size_t i = 0; i < values->size(); ++i) {
      const op::Expr size = b.type(graph.outputs[i]).dim(0);
      EXPECT_EQ(*size.eval({{"s", s}}), (*values)[i].tensor().dim(0)) << size.str() << " at " << s;
    }
  }
}

}  // namespace
}  // namespace tessera::ir::reference
