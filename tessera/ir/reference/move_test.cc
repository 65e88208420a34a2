// Movements, indices and order: values worked out by hand, odd sizes, refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

using Attrs = op::Attrs;
using Inputs = std::vector<std::optional<Tensor>>;
using Values = std::vector<double>;

// The only output, or an empty tensor with a failure.
Tensor only(Result<std::vector<Value>> result) {
  EXPECT_TRUE(result) << result.error().message;
  return result ? (*result)[0].tensor() : Tensor();
}
void expect(const Tensor& t, const Dims& dims, const Values& values) {
  EXPECT_EQ(t.dims(), dims);
  EXPECT_EQ(values_of(t), values);
}
Code code_of(Result<std::vector<Value>> result) {
  return result ? Code::kInternal : result.error().code;
}

TEST(Slice, TakesStepsBothWaysAndNothing) {
  const Tensor x = f32({5}, {0, 1, 2, 3, 4});
  expect(only(run_op("slice", {x, i64({1}, {1}), i64({1}, {4}), i64({1}, {0}), i64({1}, {2})})),
         {2}, {1, 3});
  expect(only(run_op("slice", {x, i64({1}, {-1}), i64({1}, {-6}), i64({1}, {0}), i64({1}, {-2})})),
         {3}, {4, 2, 0});
  expect(only(run_op("slice", {x, i64({1}, {3}), i64({1}, {2})})), {0}, {});
  expect(only(run_op("slice", {f32({0}, {}), i64({1}, {-1}), i64({1}, {-9}), i64({1}, {0}),
                               i64({1}, {-1})})),
         {0}, {});
  EXPECT_EQ(
      code_of(run_op("slice", {x, i64({1}, {0}), i64({1}, {1}), i64({1}, {0}), i64({1}, {0})})),
      Code::kInvalidArgument);
  EXPECT_EQ(code_of(run_op("slice", {x, i64({1}, {0}), i64({1}, {1}), i64({1}, {1})})),
            Code::kOutOfRange);
}

TEST(Slice, MovesPackedElementsAndStrings) {
  const Tensor packed = tensor(DType::kU4, {5}, {1, 2, 3, 4, 5});
  expect(only(run_op("slice", {packed, i64({1}, {1}), i64({1}, {4})})), {3}, {2, 3, 4});
  const Tensor words = *Tensor::strings({3}, {"a", "b", "c"});
  EXPECT_EQ(only(run_op("slice", {words, i64({1}, {-1}), i64({1}, {9})})).text(),
            std::vector<std::string>{"c"});
}

TEST(Concat, JoinsOnAnyAxisWithEmptyParts) {
  const Tensor a = f32({2, 1}, {1, 2}), b = f32({2, 2}, {3, 4, 5, 6}), none = f32({2, 0}, {});
  expect(only(run_op("concat", {a, none, b}, {{"axis", int64_t{-1}}})), {2, 3}, {1, 3, 4, 2, 5, 6});
  EXPECT_FALSE(run_op("concat", {a, b}, {{"axis", int64_t{0}}}));
  EXPECT_FALSE(run_op("concat", {a, i64({2, 1}, {1, 2})}, {{"axis", int64_t{0}}}));
}

TEST(Pad, HasFourModesAndCrops) {
  const Tensor x = f32({3}, {1, 2, 3}), pads = i64({2}, {2, 4});
  auto mode = [](const char* name) { return Attrs{{"mode", std::string(name)}}; };
  expect(only(run_op("pad", {x, pads, f32({}, {9})}, mode("constant"))), {9},
         {9, 9, 1, 2, 3, 9, 9, 9, 9});
  expect(only(run_op("pad", {x, pads}, mode("reflect"))), {9}, {3, 2, 1, 2, 3, 2, 1, 2, 3});
  expect(only(run_op("pad", {x, pads}, mode("edge"))), {9}, {1, 1, 1, 2, 3, 3, 3, 3, 3});
  expect(only(run_op("pad", {x, pads}, mode("wrap"))), {9}, {2, 3, 1, 2, 3, 1, 2, 3, 1});
  expect(only(run_op("pad", {x, i64({2}, {-1, 1})})), {3}, {2, 3, 0});
  expect(only(run_op("pad", {f32({1}, {5}), i64({2}, {1, 1})}, mode("reflect"))), {3}, {5, 5, 5});
  EXPECT_FALSE(run_op("pad", {f32({0}, {}), i64({2}, {1, 0})}, mode("edge")));
  EXPECT_FALSE(run_op("pad", {x, i64({2}, {-2, -2})}));
  EXPECT_FALSE(run_op("pad", {x, pads}, mode("mirror")));
}

TEST(Gather, CountsFromTheEndAndRefusesWhatIsOutside) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  expect(only(run_op("gather", {x, i64({2}, {-1, 0})}, {{"axis", int64_t{1}}})), {2, 2},
         {2, 0, 5, 3});
  expect(only(run_op("gather", {x, i64({}, {1})})), {3}, {3, 4, 5});
  expect(only(run_op("gather", {x, i64({0}, {})})), {0, 3}, {});
  EXPECT_FALSE(run_op("gather", {x, i64({1}, {2})}));
  EXPECT_FALSE(run_op("gather", {x, f32({1}, {0})}));
}

TEST(GatherNd, TakesSlicesWithBatches) {
  const Tensor x = f32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect(only(run_op("gather_nd", {x, i64({2, 1}, {1, 0})}, {{"batch_dims", int64_t{1}}})), {2, 2},
         {2, 3, 4, 5});
  expect(only(run_op("gather_nd", {x, i64({1, 3}, {1, -1, 0})})), {1}, {6});
  EXPECT_FALSE(run_op("gather_nd", {x, i64({1, 4}, {0, 0, 0, 0})}));
  EXPECT_FALSE(run_op("gather_nd", {x, i64({1, 1}, {5})}));
}

TEST(Scatter, UndoesGatherAndReduces) {
  const Tensor zero = f32({3}, {0, 0, 0}), at = i64({2}, {2, -3}), v = f32({2}, {5, 6});
  expect(only(run_op("scatter_elements", {zero, at, v})), {3}, {6, 0, 5});
  const Tensor twice = i64({2}, {1, 1});
  for (auto [kind, value] : {std::pair{"add", 13.0}, {"mul", 60.0}, {"max", 6.0}, {"min", 2.0}})
    expect(only(run_op("scatter_elements", {f32({3}, {2, 2, 2}), twice, v},
                       {{"reduction", std::string(kind)}})),
           {3}, {2, value, 2});
  expect(only(run_op("scatter_nd",
                     {f32({2, 2}, {0, 0, 0, 0}), i64({1, 1}, {1}), f32({1, 2}, {7, 8})})),
         {2, 2}, {0, 0, 7, 8});
  EXPECT_FALSE(run_op("scatter_elements", {zero, i64({1}, {3}), f32({1}, {1})}));
  EXPECT_FALSE(run_op("scatter_elements", {zero, at, f32({1}, {1})}));
  EXPECT_FALSE(run_op("scatter_nd", {zero, i64({1, 1}, {0}), f32({2}, {1, 2})}));
  EXPECT_FALSE(run_op("scatter_elements", {zero, at, v}, {{"reduction", std::string("avg")}}));
}

TEST(Range, CountsUpDownAndNotAtAll) {
  expect(only(run_op("range", {i64({}, {7}), i64({}, {0}), i64({}, {-3})})), {3}, {7, 4, 1});
  expect(only(run_op("range", {f32({}, {0}), f32({}, {1}), f32({}, {0.25})})), {4},
         {0, 0.25, 0.5, 0.75});
  expect(only(run_op("range", {i64({}, {3}), i64({}, {3}), i64({}, {1})})), {0}, {});
  EXPECT_FALSE(run_op("range", {i64({}, {0}), i64({}, {1}), i64({}, {0})}));
  EXPECT_FALSE(run_op("range", {f32({}, {0}), f32({}, {INFINITY}), f32({}, {1})}));
}

TEST(TopK, OrdersEqualElementsByIndexAndNanFirst) {
  auto y = run_op("top_k", {f32({4}, {1, NAN, 3, 3}), i64({1}, {3})}, {}, 2);
  ASSERT_TRUE(y) << y.error().message;
  expect((*y)[1].tensor(), {3}, {1, 2, 3});
  auto low = run_op("top_k", {f32({4}, {1, 0, 0, 3}), i64({1}, {2})}, {{"largest", int64_t{0}}}, 2);
  ASSERT_TRUE(low);
  expect((*low)[1].tensor(), {2}, {1, 2});
  EXPECT_EQ(only(run_op("top_k", {f32({2}, {1, 2}), i64({1}, {0})}, {}, 2)).count(), 0);
  EXPECT_FALSE(run_op("top_k", {f32({2}, {1, 2}), i64({1}, {3})}, {}, 2));
  EXPECT_FALSE(run_op("top_k", {f32({2}, {1, 2}), i64({1}, {-1})}, {}, 2));
}

TEST(TopK, ComparesUnsignedAsUnsigned) {
  Tensor x = *Tensor::make(DType::kU64, {2});
  x.set_i64(0, -1);  // the largest
  x.set_i64(1, 1);
  auto y = run_op("top_k", {x, i64({1}, {1})}, {}, 2);
  ASSERT_TRUE(y);
  expect((*y)[1].tensor(), {1}, {0});
}

TEST(ArgMax, TakesTheFirstOrLastAndNan) {
  expect(only(run_op("argmax", {f32({1, 3}, {2, 5, 5})}, {{"axis", int64_t{1}}})), {1, 1}, {1});
  expect(
      only(run_op("argmax", {f32({1, 3}, {2, 5, 5})},
                  {{"axis", int64_t{1}}, {"select_last", int64_t{1}}, {"keepdims", int64_t{0}}})),
      {1}, {2});
  expect(only(run_op("argmin", {f32({3}, {2, NAN, 1})}, {{"keepdims", int64_t{0}}})), {}, {1});
  EXPECT_FALSE(run_op("argmax", {f32({0}, {})}));
}

TEST(Unique, GivesValuesPlacesAndCounts) {
  const Tensor x = f32({6}, {2, 1, 1, 3, 4, 3});
  auto y = run_op("unique", {x}, {{"sorted", int64_t{0}}}, 4);
  ASSERT_TRUE(y) << y.error().message;
  expect((*y)[0].tensor(), {4}, {2, 1, 3, 4});
  expect((*y)[1].tensor(), {4}, {0, 1, 3, 4});
  expect((*y)[2].tensor(), {6}, {0, 1, 1, 2, 3, 2});
  expect((*y)[3].tensor(), {4}, {1, 2, 2, 1});
  auto rows = run_op("unique", {f32({3, 2}, {1, 0, 1, 0, 0, 5})}, {{"axis", int64_t{0}}}, 4);
  ASSERT_TRUE(rows);
  expect((*rows)[0].tensor(), {2, 2}, {0, 5, 1, 0});
  expect((*rows)[2].tensor(), {3}, {1, 1, 0});
  EXPECT_EQ(only(run_op("unique", {f32({0}, {})}, {}, 4)).count(), 0);
}

TEST(NonZero, ListsIndicesByRow) {
  expect(only(run_op("non_zero", {f32({2, 2}, {0, 1, 2, 0})})), {2, 2}, {0, 1, 1, 0});
  expect(only(run_op("non_zero", {f32({}, {3})})), {0, 1}, {});
}

TEST(Cumulative, GoesBothWays) {
  const Tensor x = f32({3}, {1, 2, 3}), axis = i64({}, {0});
  auto run_kind = [&](const char* kind, int64_t exclusive, int64_t reverse) {
    return values_of(only(
        run_op("cumulative", {x, axis},
               {{"kind", std::string(kind)}, {"exclusive", exclusive}, {"reverse", reverse}})));
  };
  EXPECT_EQ(run_kind("sum", 0, 0), (Values{1, 3, 6}));
  EXPECT_EQ(run_kind("sum", 1, 0), (Values{0, 1, 3}));
  EXPECT_EQ(run_kind("prod", 0, 1), (Values{6, 6, 3}));
  EXPECT_EQ(run_kind("prod", 1, 1), (Values{6, 3, 1}));
  EXPECT_FALSE(run_op("cumulative", {x, i64({}, {1})}, {{"kind", std::string("sum")}}));
}

TEST(Tile, EqualsItsDecomposition) {
  for (const auto& [dims, repeats] : {std::pair<Dims, Values>{{2, 3}, {2, 2}},
                                      {{1, 2, 1}, {3, 1, 2}},
                                      {{2}, {0}},
                                      {{0, 2}, {2, 2}},
                                      {{}, {}}}) {
    const Inputs inputs{random(DType::kF32, dims, 1),
                        i64({static_cast<int64_t>(repeats.size())}, repeats)};
    const Tensor direct = only(run_op("tile", inputs)),
                 decomposed = only(run_op("tile", inputs, {}, 1, true));
    expect(direct, decomposed.dims(), values_of(decomposed));
  }
  EXPECT_FALSE(run_op("tile", {f32({2}, {1, 2}), i64({1}, {-1})}));
  EXPECT_FALSE(run_op("tile", {f32({2}, {1, 2}), i64({2}, {1, 1})}));
}

TEST(BitCast, KeepsTheBits) {
  const Tensor y = only(run_op("bit_cast", {f32({1}, {1})}, {{"to", DType::kI32}}));
  EXPECT_EQ(y.i64(0), 0x3f800000);
  EXPECT_FALSE(run_op("bit_cast", {f32({1}, {1})}, {{"to", DType::kI64}}));
}

TEST(Det, HasTheValueWorkedOutByHand) {
  expect(only(run_op("det", {f32({2, 2, 2}, {0, 1, 1, 0, 2, 1, 4, 2})})), {2}, {-1, 0});
  expect(only(run_op("det", {f32({0, 0}, {})})), {}, {1});
  EXPECT_FALSE(run_op("det", {f32({1, 2}, {1, 2})}));
}

TEST(Convert, ReadsAndWritesText) {
  const Tensor words = *Tensor::strings({6}, {"3.5", "-1e2", "+INF", "nan", "16777217", "-0"});
  const Tensor y = only(run_op("convert", {words}, {{"to", DType::kF64}}));
  EXPECT_EQ(y.f64(0), 3.5);
  EXPECT_EQ(y.f64(1), -100);
  EXPECT_EQ(y.f64(2), INFINITY);
  EXPECT_TRUE(std::isnan(y.f64(3)));
  EXPECT_EQ(y.f64(4), 16777217);
  EXPECT_TRUE(std::signbit(y.f64(5)));
  const Tensor text =
      only(run_op("convert", {f32({4}, {0.1, 1e10, -INFINITY, 2})}, {{"to", DType::kString}}));
  EXPECT_EQ(text.text(), (std::vector<std::string>{"0.1", "10000000000", "-INF", "2"}));
  EXPECT_FALSE(run_op("convert", {*Tensor::strings({1}, {"word"})}, {{"to", DType::kF32}}));
  EXPECT_FALSE(run_op("convert", {*Tensor::strings({1}, {""})}, {{"to", DType::kI32}}));
}

TEST(Convert, SaturatesEightBitFloatsUnlessTold) {
  const Tensor x = f32({2}, {1e6, INFINITY});
  expect(only(run_op("convert", {x}, {{"to", DType::kF8E4M3FN}})), {2}, {448, 448});
  EXPECT_TRUE(std::isnan(
      only(run_op("convert", {x}, {{"to", DType::kF8E4M3FN}, {"saturate", int64_t{0}}})).f64(0)));
  EXPECT_EQ(only(run_op("convert", {f32({1}, {1e6})}, {{"to", DType::kF16}})).f64(0), INFINITY);
}

TEST(Squeeze, RefusesOtherSizesAndUnsqueezeRepeats) {
  EXPECT_EQ(only(run_op("squeeze", {f32({1, 2, 1}, {1, 2})})).dims(), (Dims{2}));
  EXPECT_EQ(only(run_op("unsqueeze", {f32({2}, {1, 2}), i64({2}, {-1, 0})})).dims(),
            (Dims{1, 2, 1}));
  EXPECT_FALSE(run_op("squeeze", {f32({1, 2}, {1, 2}), i64({1}, {1})}));
  EXPECT_FALSE(run_op("unsqueeze", {f32({2}, {1, 2}), i64({2}, {0, 0})}));
}

}  // namespace
}  // namespace tessera::ir::reference
