#include <gtest/gtest.h>

#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

TEST(Expr, NormalFormMakesEqualSizesEqual) {
  const Expr s = Expr::symbol("s"), t = Expr::symbol("t");
  EXPECT_EQ((s + t) * (s - t), s * s - t * t);
  EXPECT_EQ(floor_div(Expr(2) * s + Expr(2) * s, 4), s);
  EXPECT_EQ(exact_quotient(Expr(12) * s * t, Expr(4) * t), Expr(3) * s);
  EXPECT_EQ(exact_quotient(s + Expr(1), s), std::nullopt);
  EXPECT_EQ(broadcast(s, 1), s);
  EXPECT_FALSE(s == t);
}

TEST(Expr, DivisionsTakeOutWholePartsAndMerge) {
  const Expr s = Expr::symbol("s");
  EXPECT_EQ(floor_div(Expr(32) * s - Expr(1), 2) + Expr(1), Expr(16) * s);
  EXPECT_EQ(floor_div(floor_div(s - Expr(1), 2) + Expr(2), 2), floor_div(s + Expr(3), 4));
  for (const Expr& e :
       {floor_div(Expr(6) * s - Expr(7), 4),
        floor_div(floor_div(Expr(3) * s - Expr(5), 2) - Expr(4), 3), ceil_div(Expr(5) - s, 3)})
    EXPECT_EQ(*Expr::parse(e.str()), e);
  for (int64_t v = -9; v < 10; ++v) {
    auto floor = [](int64_t a, int64_t b) { return a / b - (a % b < 0); };
    EXPECT_EQ(*floor_div(Expr(6) * s - Expr(7), 4).eval({{"s", v}}), floor(6 * v - 7, 4));
    EXPECT_EQ(*floor_div(floor_div(Expr(3) * s - Expr(5), 2) - Expr(4), 3).eval({{"s", v}}),
              floor(floor(3 * v - 5, 2) - 4, 3));
  }
}

TEST(Expr, DivisionTakesOutWhatDivides) {
  const Expr s = Expr::symbol("s"), a = Expr::symbol("a");
  EXPECT_EQ(floor_div(s - Expr(1), 2) + Expr(1), floor_div(s + Expr(1), 2));
  EXPECT_EQ(floor_div(Expr(7) * a + s + Expr(9), 7), a + Expr(1) + floor_div(s + Expr(2), 7));
  EXPECT_EQ(floor_div(floor_div(s, 2) + Expr(1), 3), floor_div(s + Expr(2), 6));
  EXPECT_EQ(mod(Expr(7) * a + s + Expr(9), 7), mod(s + Expr(2), 7));
  EXPECT_EQ(mod(mod(s, 7), 7), mod(s, 7));
  EXPECT_EQ(min(s + Expr(1), s), s);
  EXPECT_EQ(max(s, -1), s);
  EXPECT_EQ(min(s, a), min(a, s));
  EXPECT_TRUE(non_negative(mod(s - Expr(9), 4) + s * a));
  EXPECT_FALSE(non_negative(s - Expr(1)));
  // The forms keep their values, of negative operands too.
  for (int64_t v = -9; v <= 9; ++v)
    for (int64_t w = -5; w <= 5; ++w) {
      const Bindings at{{"s", v}, {"a", w}};
      const int64_t x = 5 * w - 3 * v + 4;
      const Expr e = Expr(5) * a - Expr(3) * s + Expr(4);
      EXPECT_EQ(*floor_div(e, 3).eval(at), x / 3 - (x % 3 < 0));
      EXPECT_EQ(*mod(e, 3).eval(at), ((x % 3) + 3) % 3);
      EXPECT_EQ(*floor_div(floor_div(e, 3) + Expr(2), 4).eval(at),
                *floor_div(Expr(*floor_div(x, 3).constant() + 2), 4).constant());
    }
}

TEST(Expr, PrintsAndReadsBack) {
  const Expr s = Expr::symbol("s"), t = Expr::symbol("past.len");
  for (const Expr& e : {Expr(-7), s, Expr(2) * s * t - t + Expr(5),
                        floor_div(s - Expr(1), 2) + Expr(1), min(s, t) * max(s, 3), mod(s, 4)}) {
    auto read = Expr::parse(e.str());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, e) << e.str();
  }
  EXPECT_FALSE(Expr::parse("1 +"));
  EXPECT_FALSE(Expr::parse("99999999999999999999"));
  EXPECT_FALSE(Expr::parse(std::string(100000, '(')));
}

TEST(Expr, EvaluatesAndReportsOverflowAndUnknown) {
  const Expr s = Expr::symbol("s");
  EXPECT_EQ(*floor_div(s - Expr(1), 2).eval({{"s", 0}}), -1);
  EXPECT_EQ((s * s).eval({{"s", int64_t{1} << 40}}).error().code, Code::kOutOfRange);
  EXPECT_EQ(s.eval({}).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(broadcast(s, 3).eval({{"s", 2}}));
  EXPECT_EQ(*broadcast(s, 3).eval({{"s", 1}}), 3);
}

TEST(Type, PrintsAndReadsBack) {
  for (const char* text : {"f32[1,3,2*s + 1]", "i64[]", "u4[*]", "seq<f32[*]>", "opt<seq<str[]>>",
                           "map<i64,f32[]>", "f32[min(a, b),2]"}) {
    auto type = Type::parse(text);
    ASSERT_TRUE(type) << text;
    EXPECT_EQ(type->str(), text);
  }
  EXPECT_FALSE(Type::parse("f33[1]"));
  EXPECT_FALSE(Type::parse("f32[1"));
}

TEST(ElementCount, RefusesImpossibleSizes) {
  EXPECT_EQ(*element_count(Dims{2, 3}), 6);
  EXPECT_EQ(*element_count(Dims{0, 7}), 0);
  EXPECT_FALSE(element_count(Dims{-1}));
  EXPECT_FALSE(element_count(Dims{int64_t{1} << 40, int64_t{1} << 40}));
}

TEST(Table, RowsAreUniqueAndWellFormed) {
  std::string_view last;
  for (const OpDef* row : all_ops()) {
    EXPECT_NE(row->name, last);
    last = row->name;
    EXPECT_NE(row->infer, nullptr) << row->name;
    EXPECT_EQ(find(row->name), row);
  }
}

// A node need not yield the keys with their past.
TEST(Table, AttentionCountsThePastWithOneOutput) {
  const Type q = Type::tensor(DType::kF32, {2, 4, 3, 8}),
             k = Type::tensor(DType::kF32, {2, 2, 5, 8}),
             v = Type::tensor(DType::kF32, {2, 2, 5, 6}),
             past = Type::tensor(DType::kF32, {2, 2, 7, 8}),
             y = Type::tensor(DType::kF32, {2, 4, 3, 6});
  const FlopsFn flops = find("attention")->flops;
  const std::vector<const Type*> in{&q, &k, &v, nullptr, &past, &past};
  EXPECT_EQ(flops({}, std::span(in).first(3), std::span(&y, 1)).value, 2 * 2 * 4 * 3 * 5 * (8 + 6));
  EXPECT_EQ(flops({}, in, std::span(&y, 1)).value, 2 * 2 * 4 * 3 * 12 * (8 + 6));
}

}  // namespace
}  // namespace tessera::op
