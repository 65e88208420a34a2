// Programs of every family against the reference, at odd sizes and with any schedule.
#include <gtest/gtest.h>

#include "tessera/tile/problems.h"
#include "tessera/tile/testing/families.h"
#include "tessera/tile/testing/run.h"

namespace tessera::tile::testing {
namespace {

using Random = std::mt19937_64;

// Draws and runs `tries` problems; how many there were programs for.
int right(uint64_t seed, int tries, std::optional<Trial> (*draw)(Random&)) {
  Random random(seed);
  int ran = 0;
  for (int i = 0; i < tries; ++i) {
    const auto trial = draw(random);
    const auto fault = trial ? run(random, *trial) : std::nullopt;
    if (!fault) continue;
    EXPECT_EQ(*fault, "");
    ++ran;
  }
  return ran;
}

TEST(Families, Reductions) { EXPECT_GE(right(1, 120, random_reduction), 80); }
TEST(Families, SoftmaxAndNormalizations) { EXPECT_GE(right(2, 120, random_normalization), 80); }
TEST(Families, Products) { EXPECT_GE(right(3, 150, random_product), 100); }
TEST(Families, ProductsOfBytesInWholeNumbers) { EXPECT_GE(right(4, 20, random_byte_product), 15); }

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
        in.push_back(op::Tensor::of_i64(std::vector<int64_t>(static_cast<size_t>(batch), all - 1)));
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
  auto reduce = trial_of("reduce", {{"kind", std::string("sum")}},
                         {x, op::Tensor::of_i64(std::vector<int64_t>{0})});
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
