// Programs of every family against the reference, at odd sizes and with any schedule.
#include <gtest/gtest.h>

#include "tessera/tile/problems.h"
#include "tessera/tile/testing/run.h"

namespace tessera::tile::testing {
namespace {

using Random = std::mt19937_64;

template <class T>
T pick(Random& random, std::initializer_list<T> list) {
  return *(list.begin() + static_cast<int64_t>(random() % list.size()));
}

op::Tensor ints(const std::vector<int64_t>& values) {
  op::Tensor t = *op::Tensor::make(DType::kI64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_i64(static_cast<int64_t>(i), values[i]);
  return t;
}

// Runs a trial, alone or with steps behind, its operands placed at random.
void expect_right(Random& random, Result<Trial> trial, int& ran) {
  if (!trial) return;
  if (random() % 2 && !append_steps(random, *trial, 1 + static_cast<int>(random() % 4))) return;
  // Lists of axes and the like stay as they are.
  for (op::Operand& o : trial->problem.in)
    if (!o.values) place(random, o);
  place(random, trial->problem.out[0]);
  const auto fault = run(random, *trial);
  if (!fault) return;
  EXPECT_EQ(*fault, "");
  ++ran;
}

TEST(Families, Reductions) {
  Random random(1);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const DType type = pick(random, {DType::kF32, DType::kF32, DType::kF16, DType::kF64,
                                     DType::kI32, DType::kU8, DType::kBool});
    const Dims dims = random_dims(random, 1 + static_cast<int>(random() % 4), 1500);
    std::vector<int64_t> axes;
    for (size_t a = 0; a < dims.size(); ++a)
      if (random() % 2)
        axes.push_back(static_cast<int64_t>(a) -
                       (random() % 2 ? 0 : static_cast<int64_t>(dims.size())));
    const std::string kind = type == DType::kBool
                                 ? pick<std::string>(random, {"and", "or"})
                                 : pick<std::string>(random, {"sum", "max", "min", "prod"});
    op::Attrs attrs{{"kind", kind}, {"keepdims", static_cast<int64_t>(random() % 2)}};
    std::vector<op::Tensor> in{random_tensor(random, type, dims, random() % 4 == 0)};
    if (random() % 4) in.push_back(ints(axes));
    expect_right(random, trial_of("reduce", attrs, std::move(in)), ran);
  }
  EXPECT_GE(ran, 80);
}

TEST(Families, SoftmaxAndNormalizations) {
  Random random(2);
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    const DType type = pick(random, {DType::kF32, DType::kF32, DType::kF16, DType::kF64});
    const Dims dims = random_dims(random, 1 + static_cast<int>(random() % 4), 1500);
    const auto axis = static_cast<int64_t>(random() % dims.size());
    const op::Tensor x = random_tensor(random, type, dims);
    const std::string name =
        pick<std::string>(random, {"softmax", "log_softmax", "layer_norm", "rms_norm"});
    op::Attrs attrs{{"axis", axis}};
    std::vector<op::Tensor> in{x};
    if (name == "layer_norm" || name == "rms_norm") {
      const Dims tail(dims.begin() + axis, dims.end());
      in.push_back(random_tensor(random, type, tail));
      if (name == "layer_norm" && random() % 2) in.push_back(random_tensor(random, type, tail));
    }
    expect_right(random, trial_of(name, attrs, std::move(in)), ran);
  }
  EXPECT_GE(ran, 80);
}

TEST(Families, Products) {
  Random random(3);
  int ran = 0;
  const auto size = [&] { return pick<int64_t>(random, {0, 1, 2, 3, 5, 7, 16, 17}); };
  for (int i = 0; i < 150; ++i) {
    const DType type =
        pick(random, {DType::kF32, DType::kF32, DType::kF16, DType::kF64, DType::kI32});
    const int64_t m = size(), n = size(), k = size();
    op::Attrs attrs;
    Dims a{m, k}, b{k, n};
    if (random() % 2) {
      attrs.set("transpose_a", int64_t{1});
      std::swap(a[0], a[1]);
    }
    if (random() % 2) {
      attrs.set("transpose_b", int64_t{1});
      std::swap(b[0], b[1]);
    }
    const Dims batch = random_dims(random, static_cast<int>(random() % 3), 6);
    for (Dims* side : {&a, &b}) {
      const Dims own = random() % 3 ? batch : broadcastable(random, batch);
      side->insert(side->begin(), own.begin(), own.end());
    }
    if (attrs.empty() && random() % 6 == 0) a = {k};
    if (attrs.empty() && random() % 6 == 0) b = {k};
    expect_right(
        random,
        trial_of("dot", attrs, {random_tensor(random, type, a), random_tensor(random, type, b)}),
        ran);
  }
  EXPECT_GE(ran, 100);
}

TEST(Families, ProductsOfBytesInWholeNumbers) {
  Random random(4);
  int ran = 0;
  for (int i = 0; i < 20; ++i)
    expect_right(random,
                 trial_of("dot", {{"accumulate", DType::kI32}},
                          {random_tensor(random, pick(random, {DType::kU8, DType::kI8}), {5, 33}),
                           random_tensor(random, DType::kI8, {33, 7})}),
                 ran);
  EXPECT_GE(ran, 15);
}

TEST(Families, Attention) {
  Random random(5);
  int ran = 0;
  const auto size = [&] { return pick<int64_t>(random, {1, 2, 3, 7, 16}); };
  for (int i = 0; i < 120; ++i) {
    const DType type = pick(random, {DType::kF32, DType::kF32, DType::kF16});
    const int64_t batch = pick<int64_t>(random, {1, 2}), heads = pick<int64_t>(random, {1, 2, 3}),
                  group = pick<int64_t>(random, {1, 2}), queries = size(), keys = size(),
                  past = size(), e = size(), f = size();
    op::Attrs attrs;
    if (random() % 2) attrs.set("causal", int64_t{1});
    if (random() % 3 == 0) attrs.set("softcap", 2.0);
    if (random() % 2) attrs.set("scale", 0.5);
    const bool with_past = random() % 2, with_lengths = random() % 3 == 0;
    const int64_t all = keys + (with_past ? past : 0);
    op::Tensor mask = random_tensor(random, pick(random, {DType::kBool, type}),
                                    broadcastable(random, {batch, heads * group, queries, all}));
    // Optional inputs before one that is there must be there: trials leave none out.
    std::vector<op::Tensor> in{random_tensor(random, type, {batch, heads * group, queries, e}),
                               random_tensor(random, type, {batch, heads, keys, e}),
                               random_tensor(random, type, {batch, heads, keys, f})};
    if (random() % 2 || with_past) in.push_back(mask);
    if (with_past) {
      in.push_back(random_tensor(random, type, {batch, heads, past, e}));
      in.push_back(random_tensor(random, type, {batch, heads, past, f}));
      if (with_lengths)
        in.push_back(ints(std::vector<int64_t>(static_cast<size_t>(batch), all - 1)));
    }
    auto trial = trial_of("attention", attrs, std::move(in));
    ASSERT_TRUE(trial) << trial.error().message;
    for (op::Operand& o : trial->problem.in) o.values.reset();
    for (size_t o = 0; o < trial->problem.in.size(); ++o) place(random, trial->problem.in[o]);
    const auto fault = run(random, *trial);
    ASSERT_TRUE(fault);
    EXPECT_EQ(*fault, "");
    ++ran;
  }
  EXPECT_GE(ran, 100);
}

TEST(Families, SayWhatTheyRefuse) {
  Random random(6);
  const auto why = [](const Result<Trial>& t) {
    const auto instance = instance_of(t->problem);
    return instance ? "" : instance.error().message;
  };
  const op::Tensor x = random_tensor(random, DType::kF32, {3, 4});
  EXPECT_EQ(why(trial_of("transpose", {{"perm", op::Ints{1, 0}}}, {x})),
            "there is no tile program for transpose");
  auto reduce = trial_of("reduce", {{"kind", std::string("sum")}}, {x, ints({0})});
  EXPECT_EQ(why(reduce), "");
  reduce->problem.in[1].values.reset();
  EXPECT_EQ(why(reduce), "its axes are known only when it runs");
  auto blocked = trial_of("softmax", {}, {x});
  blocked->problem.in[0].layout = "mn: n/2 m n%2";
  EXPECT_EQ(why(blocked),
            "an operand of [3,4] in layout 'mn: n/2 m n%2', which is not one of strides");
}

}  // namespace
}  // namespace tessera::tile::testing
