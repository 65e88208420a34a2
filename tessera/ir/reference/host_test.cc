// Strings, random numbers, transforms and ai.onnx.ml's operators.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/philox.h"
#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

using Texts = std::vector<std::string>;
Tensor strings(Dims dims, Texts values) {
  return *Tensor::strings(std::move(dims), std::move(values));
}

Texts text_of(const Result<std::vector<Value>>& y) {
  EXPECT_TRUE(y) << y.error().message;
  return y ? (*y)[0].tensor().text() : Texts{};
}

TEST(Strings, SplitAtDelimitersAndAtSpace) {
  const Tensor x = strings({3}, {"a,b,,c", "", " x  y "});
  auto y = run_op("string_split", {x}, {{"delimiter", std::string(",")}}, 2);
  EXPECT_EQ(text_of(y), (Texts{"a", "b", "", "c", "", "", "", "", " x  y ", "", "", ""}));
  EXPECT_EQ(values_of((*y)[1].tensor()), (std::vector<double>{4, 1, 1}));
  EXPECT_EQ(text_of(run_op("string_split", {x},
                           {{"delimiter", std::string(",")}, {"maxsplit", int64_t{1}}}, 2)),
            (Texts{"a", "b,,c", "", "", " x  y ", ""}));
  auto z = run_op("string_split", {x}, {}, 2);
  EXPECT_EQ(text_of(z), (Texts{"a,b,,c", "", "", "", "x", "y"}));
  EXPECT_EQ(values_of((*z)[1].tensor()), (std::vector<double>{1, 0, 2}));
  EXPECT_EQ((*run_op("string_split", {strings({0}, {})}, {}, 2))[0].tensor().dims(), (Dims{0, 0}));
}

TEST(Strings, ChangeCaseBeyondAscii) {
  EXPECT_EQ(text_of(run_op("string_normalize", {strings({3}, {"Éa", "ЖУк", "\xff?"})},
                           {{"case", std::string("lower")}})),
            (Texts{"éa", "жук", "\xff?"}));
  EXPECT_EQ(text_of(run_op("string_normalize", {strings({2}, {"žluťoučký", "σx"})},
                           {{"case", std::string("upper")}})),
            (Texts{"ŽLUŤOUČKÝ", "ΣX"}));
}

TEST(Strings, StopWordsGoAndOneEmptyStringIsLeft) {
  const Tensor x = strings({1, 3}, {"The", "the", "cat"});
  EXPECT_EQ(text_of(run_op("string_normalize", {x}, {{"stopwords", Texts{"the"}}})),
            (Texts{"cat"}));
  EXPECT_EQ(text_of(run_op("string_normalize", {x},
                           {{"stopwords", Texts{"the"}}, {"case_sensitive", int64_t{1}}})),
            (Texts{"The", "cat"}));
  auto none = run_op("string_normalize", {x}, {{"stopwords", Texts{"the", "cat"}}});
  EXPECT_EQ(text_of(none), Texts{""});
  EXPECT_EQ((*none)[0].tensor().dims(), (Dims{1, 1}));
}

TEST(Strings, RegexMustMatchAllAndBeValid) {
  auto y = run_op("regex_full_match", {strings({3}, {"ab", "aab", "abc"})},
                  {{"pattern", std::string("a+b")}});
  ASSERT_TRUE(y);
  EXPECT_EQ(values_of((*y)[0].tensor()), (std::vector<double>{1, 1, 0}));
  EXPECT_FALSE(run_op("regex_full_match", {strings({1}, {"a"})}, {{"pattern", std::string("(")}}));
}

TEST(TfIdf, CountsGramsWithSkips) {
  op::Attrs attrs{{"mode", std::string("tf")},         {"min_length", int64_t{1}},
                  {"max_length", int64_t{2}},          {"max_skip", int64_t{1}},
                  {"starts", op::Ints{0, 2}},          {"indices", op::Ints{0, 1, 2, 3}},
                  {"ints", op::Ints{2, 3, 2, 3, 2, 4}}};
  const Tensor x = i64({2, 4}, {2, 3, 4, 2, 5, 5, 5, 5});  // the grams 2, 3, (2,3), (2,4)
  auto y = run_op("tfidf", {x}, attrs);
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(values_of((*y)[0].tensor()), (std::vector<double>{2, 1, 1, 1, 0, 0, 0, 0}));
  attrs.set("weights", op::Floats{10, 20, 30, 40});
  attrs.set("mode", std::string("idf"));
  EXPECT_EQ(values_of((*run_op("tfidf", {x}, attrs))[0].tensor()),
            (std::vector<double>{10, 20, 30, 40, 0, 0, 0, 0}));
  attrs.set("mode", std::string("tfidf"));
  EXPECT_EQ(values_of((*run_op("tfidf", {x}, attrs))[0].tensor())[0], 20);
  attrs.set("starts", op::Ints{0, 99});
  EXPECT_FALSE(run_op("tfidf", {x}, attrs));
}

TEST(Random, BitsAreThoseOfPhilox) {
  auto y = run_op("random", {i64({2}, {2, 3})}, {{"key", int64_t{7}}});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ((*y)[0].tensor().dims(), (Dims{2, 3}));
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ((*y)[0].tensor().i64(i), philox_word(7, static_cast<uint64_t>(i)));
  EXPECT_FALSE(run_op("random", {i64({1}, {-1})}, {{"key", int64_t{7}}}));
}

TEST(Random, MultinomialFollowsTheProbabilities) {
  const double p[] = {0.1, 0.6, 0.3};
  auto y = run_op("multinomial",
                  {f32({1, 3}, {std::log(p[0]) + 5, std::log(p[1]) + 5, std::log(p[2]) + 5})},
                  {{"samples", int64_t{20000}}, {"key", int64_t{1}}, {"to", DType::kI32}});
  ASSERT_TRUE(y) << y.error().message;
  double counts[3] = {};
  for (double v : values_of((*y)[0].tensor())) ++counts[static_cast<int>(v)];
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(counts[k] / 20000, p[k], 0.015);
  EXPECT_FALSE(run_op("multinomial", {f32({1, 0}, {})},
                      {{"samples", int64_t{1}}, {"key", int64_t{1}}, {"to", DType::kI32}}));
}

TEST(Dft, InverseUndoesIt) {
  for (int64_t n : {1, 2, 5, 8}) {
    const Tensor x = random(DType::kF64, {2, n, 2}, 3);
    auto y = run_op("dft", {x, std::nullopt, i64({}, {1})});
    ASSERT_TRUE(y) << y.error().message;
    auto z =
        run_op("dft", {(*y)[0].tensor(), std::nullopt, i64({}, {1})}, {{"inverse", int64_t{1}}});
    ASSERT_TRUE(z) << z.error().message;
    for (int64_t i = 0; i < x.count(); ++i) EXPECT_NEAR((*z)[0].tensor().f64(i), x.f64(i), 1e-12);
    if (n == 1) continue;
    const Tensor real = random(DType::kF64, {n, 1}, 4);  // one-sided there and back
    auto half = run_op("dft", {real}, {{"onesided", int64_t{1}}});
    ASSERT_TRUE(half) << half.error().message;
    EXPECT_EQ((*half)[0].tensor().dims(), (Dims{n / 2 + 1, 2}));
    auto back = run_op("dft", {(*half)[0].tensor(), i64({}, {static_cast<double>(n)})},
                       {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}});
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ((*back)[0].tensor().dims(), real.dims());
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR((*back)[0].tensor().f64(i), real.f64(i), 1e-12);
  }
  EXPECT_FALSE(run_op("dft", {f32({4, 3}, std::vector<double>(12))}));
  EXPECT_FALSE(run_op("dft", {f32({4, 2}, std::vector<double>(8)), i64({}, {0})}));
  EXPECT_FALSE(run_op("dft", {f32({4, 2}, std::vector<double>(8)), std::nullopt, i64({}, {1})}));
}

TEST(Stft, FramesAreTransforms) {
  const Tensor x = random(DType::kF32, {1, 10, 1}, 5);
  auto y = run_op("stft", {x, i64({}, {3}), f32({4}, {1, 1, 1, 1})}, {{"onesided", int64_t{1}}});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ((*y)[0].tensor().dims(), (Dims{1, 3, 3, 2}));
  double sum = 0;
  for (int i = 3; i < 7; ++i) sum += x.f64(i);
  EXPECT_NEAR((*y)[0].tensor().f64(6), sum, 1e-6);  // frame 1, frequency 0
  EXPECT_FALSE(run_op("stft", {x, i64({}, {3}), std::nullopt, i64({}, {11})}));
  EXPECT_FALSE(run_op("stft", {x, i64({}, {0}), std::nullopt, i64({}, {4})}));
}

TEST(Lookup, LastKeyWinsAndNaNsAreEqual) {
  op::Attrs attrs{{"keys", f32({4}, {1, NAN, 2, 1})},
                  {"values", strings({4}, {"first", "nan", "two", "last"})},
                  {"default", strings({1}, {"?"})}};
  EXPECT_EQ(text_of(run_op("lookup", {f32({4}, {1, NAN, 2, 3})}, attrs)),
            (Texts{"last", "nan", "two", "?"}));
  EXPECT_FALSE(run_op("lookup", {i64({1}, {1})}, attrs));
}

op::Attrs stump() {  // x[0] <= 1 ? leaf 0 : (x[1] in {3, 5} ? leaf 1 : leaf 0)
  return {{"roots", op::Ints{0}},
          {"true", op::Ints{~0, ~1}},
          {"false", op::Ints{1, ~0}},
          {"feature", op::Ints{0, 1}},
          {"mode", op::Ints{0, 6}},
          {"split", op::Floats{1, 0}},
          {"members", op::Floats{3, 5, NAN}},
          {"leaf_begin", op::Ints{0, 1, 3}},
          {"vote_target", op::Ints{0, 0, 1}},
          {"vote_weight", op::Floats{10, 20, 30}},
          {"targets", int64_t{2}},
          {"aggregate", std::string("sum")}};
}

TEST(TreeEnsemble, FollowsTheBranches) {
  auto y = run_op("tree_ensemble", {f32({4, 2}, {1, 3, 2, 5, 2, 4, NAN, 3})}, stump());
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(values_of((*y)[0].tensor()), (std::vector<double>{10, 0, 20, 30, 10, 0, 20, 30}));
  op::Attrs missing = stump();
  missing.set("missing", op::Ints{1, 0});
  missing.set("base", op::Floats{1, 2});
  EXPECT_EQ(values_of((*run_op("tree_ensemble", {f32({1, 2}, {NAN, 3})}, missing))[0].tensor()),
            (std::vector<double>{11, 2}));
}

TEST(TreeEnsemble, RefusesTreesThatAreNone) {
  const Tensor x = f32({1, 2}, {9, 9});
  auto broken = [&](std::string_view name, op::Attr value) {
    op::Attrs attrs = stump();
    attrs.set(name, std::move(value));
    return run_op("tree_ensemble", {x}, attrs);
  };
  auto cycle = broken("false", op::Ints{1, 0});
  ASSERT_FALSE(cycle);
  EXPECT_NE(cycle.error().message.find("cycle"), std::string::npos);
  EXPECT_FALSE(broken("false", op::Ints{2, 0}));
  EXPECT_FALSE(broken("true", op::Ints{~2, 0}));
  EXPECT_FALSE(broken("feature", op::Ints{0, 2}));
  EXPECT_FALSE(broken("feature", op::Ints{0}));
  EXPECT_FALSE(broken("vote_target", op::Ints{0, 0, 2}));
  EXPECT_FALSE(broken("leaf_begin", op::Ints{0, 3, 1}));
  EXPECT_FALSE(broken("members", op::Floats{3}));
  EXPECT_FALSE(broken("mode", op::Ints{0, 7}));
  EXPECT_FALSE(broken("aggregate", std::string("median")));
}

TEST(Scores, TransformAndPick) {
  auto kind = [](const char* name, std::vector<double> x) {
    const int64_t n = static_cast<int64_t>(x.size());
    return values_of((*run_op("score_transform", {tensor(DType::kF64, {1, n}, std::move(x))},
                              {{"kind", std::string(name)}}))[0]
                         .tensor());
  };
  EXPECT_NEAR(kind("softmax", {0, std::log(3)})[1], 0.75, 1e-12);
  EXPECT_EQ(kind("softmax_zero", {0, 1})[0], 0);
  EXPECT_EQ(kind("logistic", {0})[0], 0.5);
  EXPECT_NEAR(kind("probit", {0.975})[0], 1.96, 5e-3);
  EXPECT_NEAR(kind("probit", {0.025})[0], -1.96, 5e-3);
  const op::Attrs labels{{"labels", strings({2}, {"no", "yes"})}, {"threshold", 0.5}};
  EXPECT_EQ(text_of(run_op("pick_label", {f32({2, 2}, {3, 3, 1, 2})}, labels)),
            (Texts{"no", "yes"}));
  EXPECT_EQ(text_of(run_op("pick_label", {f32({2, 1}, {0.5, 0.6})}, labels)), (Texts{"no", "yes"}));
  EXPECT_FALSE(run_op("pick_label", {f32({1, 3}, {1, 2, 3})}, labels));
}

}  // namespace
}  // namespace tessera::ir::reference
