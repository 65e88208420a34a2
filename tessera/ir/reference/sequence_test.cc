#include <gtest/gtest.h>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

// A graph over sequences: x0, x1, ... are its tensor inputs.
template <class Fn>
Result<std::vector<Value>> build(const std::vector<Tensor>& inputs, Fn fn) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<Value> values;
  for (const Tensor& t : inputs) {
    ids.push_back(graph.add_input("x" + std::to_string(ids.size()), t.type()));
    values.emplace_back(t);
  }
  Builder b(graph);
  graph.outputs = fn(b, ids);
  TRY(b.status());
  graph.output_names.resize(graph.outputs.size());
  TRY(verify(graph));
  return run(graph, values, {});
}

using Ids = std::vector<ValueId>;
const std::vector<Tensor> kThree{f32({1}, {1}), f32({2}, {2, 3}), i64({}, {-2})};

TEST(Sequence, InsertsAtPositionsFromEitherEnd) {
  for (auto [position, expected] : {std::pair<double, double>{0, 9}, {-2, 9}, {1, 1}, {2, 1}}) {
    auto y = build({kThree[0], kThree[1], i64({}, {position}), f32({1}, {9})}, [](Builder& b,
                                                                                  const Ids& x) {
      const ValueId s =
          b.op("sequence_insert", {b.op("sequence_construct", {x[0], x[1]}), x[3], x[2]});
      return Ids{b.op("sequence_at", {s, b.scalar(DType::kI64, 0)}), b.op("sequence_length", {s})};
    });
    ASSERT_TRUE(y) << y.error().message;
    EXPECT_EQ((*y)[0].tensor().f64(0), expected) << position;
    EXPECT_EQ((*y)[1].tensor().i64(0), 3);
  }
}

TEST(Sequence, PositionsBeyondTheEndsAreErrors) {
  for (double position : {-3.0, 2.0}) {
    auto y = build({kThree[0], kThree[1], i64({}, {position})}, [](Builder& b, const Ids& x) {
      return Ids{b.op("sequence_at", {b.op("sequence_construct", {x[0], x[1]}), x[2]})};
    });
    ASSERT_FALSE(y);
    EXPECT_NE(y.error().message.find("outside [-2, 2)"), std::string::npos) << y.error().message;
  }
  EXPECT_FALSE(build({}, [](Builder& b, const Ids&) {
    return Ids{b.op("sequence_erase", {b.op("sequence_empty", {}, {{"dtype", DType::kF32}})})};
  }));
  EXPECT_FALSE(build({}, [](Builder& b, const Ids&) {
    return Ids{b.op("sequence_concat", {b.op("sequence_empty", {}, {{"dtype", DType::kF32}})},
                    {{"axis", int64_t{0}}})};
  }));
  EXPECT_FALSE(build({f32({1}, {1}), i64({1}, {1})}, [](Builder& b, const Ids& x) {
    return Ids{b.op("sequence_construct", {x[0], x[1]})};
  }));
}

TEST(Sequence, SplitAndConcatAreInverse) {
  const Tensor x = random(DType::kF32, {5, 3}, 1);
  for (int64_t axis : {0, 1, -1})
    for (const Tensor& sizes : {i64({}, {2}), axis == 0 ? i64({3}, {1, 0, 4}) : i64({2}, {1, 2})}) {
      auto y = build({x, sizes}, [&](Builder& b, const Ids& in) {
        return Ids{b.op("sequence_concat",
                        {b.op("sequence_split", {in[0], in[1]}, {{"axis", axis}})},
                        {{"axis", axis}})};
      });
      ASSERT_TRUE(y) << y.error().message;
      EXPECT_EQ((*y)[0].tensor().dims(), x.dims());
      EXPECT_EQ(values_of((*y)[0].tensor()), values_of(x));
    }
  auto stacked = build({x}, [](Builder& b, const Ids& in) {
    return Ids{
        b.op("sequence_concat",
             {b.op("sequence_split", {in[0]}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}})},
             {{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}})};
  });
  ASSERT_TRUE(stacked) << stacked.error().message;
  EXPECT_EQ(values_of((*stacked)[0].tensor()), values_of(x));
  EXPECT_FALSE(build({x, i64({2}, {1, 2})}, [](Builder& b, const Ids& in) {
    return Ids{b.op("sequence_split", {in[0], in[1]})};
  }));
  EXPECT_FALSE(build({x, i64({}, {0})}, [](Builder& b, const Ids& in) {
    return Ids{b.op("sequence_split", {in[0], in[1]})};
  }));
}

TEST(Sequence, HoldsStringsAndPackedTypes) {
  auto y = build({*Tensor::strings({1}, {"ab"}), *Tensor::strings({2}, {"c", ""})},
                 [](Builder& b, const Ids& x) {
                   return Ids{b.op("sequence_concat", {b.op("sequence_construct", {x[0], x[1]})},
                                   {{"axis", int64_t{0}}})};
                 });
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ((*y)[0].tensor().text(), (std::vector<std::string>{"ab", "c", ""}));
  auto z = build({tensor(DType::kI4, {3}, {1, -2, 3}), tensor(DType::kI4, {2}, {-4, 5})},
                 [](Builder& b, const Ids& x) {
                   return Ids{b.op("sequence_concat", {b.op("sequence_construct", {x[0], x[1]})},
                                   {{"axis", int64_t{0}}})};
                 });
  ASSERT_TRUE(z) << z.error().message;
  EXPECT_EQ(values_of((*z)[0].tensor()), (std::vector<double>{1, -2, 3, -4, 5}));
}

TEST(Optional, HasAndGet) {
  auto y = build({kThree[0]}, [](Builder& b, const Ids& x) {
    const ValueId full = b.op("optional", {x[0]}),
                  none = b.op("optional", {}, {{"type", *op::Type::parse("f32[1]")}});
    return Ids{b.op("optional_get", {full}), b.op("optional_has", {full}),
               b.op("optional_has", {none}), b.op("optional_has", {x[0]}),
               b.op("optional_has", {})};
  });
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ((*y)[0].tensor().f64(0), 1);
  for (auto [i, there] : {std::pair{1, 1}, {2, 0}, {3, 1}, {4, 0}})
    EXPECT_EQ((*y)[static_cast<size_t>(i)].tensor().i64(0), there) << i;
  auto z = build({}, [](Builder& b, const Ids&) {
    return Ids{
        b.op("optional_get", {b.op("optional", {}, {{"type", *op::Type::parse("f32[1]")}})})};
  });
  ASSERT_FALSE(z);
  EXPECT_NE(z.error().message.find("empty"), std::string::npos);
}

}  // namespace
}  // namespace tessera::ir::reference
