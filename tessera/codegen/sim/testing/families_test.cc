// Programs of every family on simulated chips of every make against the reference: odd sizes, any
// layout; races, missing flags and indices outside fail the launch.
#include "tessera/tile/testing/families.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tessera/codegen/sim/testing/run.h"

namespace tessera::codegen::sim::testing {
namespace {

using Draw = std::optional<tile::testing::Trial>(std::mt19937_64&);

std::optional<tile::testing::Trial> random_group(std::mt19937_64& random) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kF16, DType::kBF16,
                              DType::kI32, DType::kI64, DType::kU8,  DType::kF64};
  const auto dims = tile::testing::random_dims(random, static_cast<int>(random() % 5), 2000);
  return tile::testing::random_group(random, dims, kTypes[random() % std::size(kTypes)],
                                     1 + static_cast<int>(random() % 8));
}

// How many of the problems that are drawn there was a program for.
int right(const char* chip, uint64_t seed, int tries, Draw* draw) {
  auto machine = Machine::open(chip, {{"threads", "2"}});
  EXPECT_TRUE(machine) << machine.error().message;
  if (!machine) return 0;
  std::mt19937_64 random(seed);
  int ran = 0;
  std::string why;
  for (int i = 0; i < tries; ++i) {
    const auto trial = draw(random);
    if (!trial) continue;
    const auto fault = machine->run(*trial, &why);
    if (!fault) continue;
    EXPECT_EQ(*fault, "") << chip;
    if (!fault->empty()) return ran;
    ++ran;
  }
  EXPECT_GT(ran, 0) << chip << ": " << why;
  return ran;
}

class Families : public ::testing::TestWithParam<const char*> {};

TEST_P(Families, ElementwiseGroups) { EXPECT_GE(right(GetParam(), 5, 60, random_group), 30); }
TEST_P(Families, Reductions) {
  EXPECT_GE(right(GetParam(), 1, 40, tile::testing::random_reduction), 20);
}
TEST_P(Families, SoftmaxAndNormalizations) {
  EXPECT_GE(right(GetParam(), 2, 40, tile::testing::random_normalization), 20);
}
TEST_P(Families, Products) { right(GetParam(), 3, 60, tile::testing::random_product); }

// Sizes beyond one tile, weights that are packed.
std::optional<tile::testing::Trial> large_product(std::mt19937_64& random) {
  using tile::testing::pick;
  const auto size = [&] { return pick<int64_t>(random, {1, 31, 64, 129, 260, 300}); };
  const DType type = pick(random, {DType::kF16, DType::kBF16});
  const int64_t m = size(), n = size(), k = size();
  op::Attrs attrs;
  op::Dims a{m, k}, b{k, n};
  if (random() % 2) {
    attrs.set("transpose_b", int64_t{1});
    std::swap(b[0], b[1]);
  }
  if (random() % 3 == 0) a.insert(a.begin(), 3);
  auto trial = tile::testing::trial_of("dot", attrs,
                                       {tile::testing::random_tensor(random, type, a),
                                        tile::testing::random_tensor(random, type, b)});
  if (!trial) return std::nullopt;
  tile::testing::place(random, trial->problem.in[0]);
  trial->problem.in[1].constant = random() % 2 == 0;
  if (random() % 2) tile::testing::append_steps(random, *trial, 1 + static_cast<int>(random() % 3));
  return *std::move(trial);
}
TEST_P(Families, LargeProducts) { EXPECT_GE(right(GetParam(), 6, 16, large_product), 5); }

std::optional<tile::testing::Trial> random_conv(std::mt19937_64& random) {
  using tile::testing::pick;
  const int64_t groups = pick<int64_t>(random, {1, 1, 1, 2}),
                channels = pick<int64_t>(random, {1, 3, 16, 40}),
                filters = pick<int64_t>(random, {1, 8, 33}), taps = pick<int64_t>(random, {1, 3}),
                size = pick<int64_t>(random, {3, 7, 14, 19});
  op::Attrs attrs{{"groups", groups},
                  {"strides", op::Ints{pick<int64_t>(random, {1, 2}), 1}},
                  {"pads_begin", op::Ints{1, pick<int64_t>(random, {0, 1})}},
                  {"pads_end", op::Ints{1, 1}},
                  {"dilations", op::Ints{1, pick<int64_t>(random, {1, 2})}}};
  std::vector<op::Tensor> in = {
      tile::testing::random_tensor(
          random, DType::kF16, {pick<int64_t>(random, {1, 2}), channels * groups, size, size + 3}),
      tile::testing::random_tensor(
          random, DType::kF16, {filters * groups, channels, taps, pick<int64_t>(random, {1, 3})})};
  if (random() % 2)
    in.push_back(tile::testing::random_tensor(random, DType::kF16, {filters * groups}));
  auto trial = tile::testing::trial_of("conv", attrs, std::move(in));
  if (!trial) return std::nullopt;
  tile::testing::place(random, trial->problem.in[0]);
  tile::testing::place(random, trial->problem.out[0]);
  trial->problem.in[1].constant = true;
  if (random() % 2) tile::testing::append_steps(random, *trial, 1 + static_cast<int>(random() % 3));
  return *std::move(trial);
}
TEST_P(Families, Convolutions) {
  // The matrix unit of this one takes no f16.
  if (std::string_view(GetParam()) == "tpu_v5e") GTEST_SKIP();
  EXPECT_GE(right(GetParam(), 7, 24, random_conv), 10);
}

std::optional<tile::testing::Trial> random_window(std::mt19937_64& random) {
  using tile::testing::pick;
  const DType type = pick(random, {DType::kF16, DType::kF32});
  const int64_t channels = pick<int64_t>(random, {1, 5, 16}), size = pick<int64_t>(random, {4, 9});
  op::Attrs attrs{{"strides", op::Ints{pick<int64_t>(random, {1, 2}), 1}},
                  {"pads_begin", op::Ints{1, 0}},
                  {"pads_end", op::Ints{1, 1}}};
  std::vector<op::Tensor> in = {
      tile::testing::random_tensor(random, type, {2, channels, size, size + 1})};
  std::string_view op = "conv";
  if (random() % 2) {
    attrs.set("groups", channels);
    in.push_back(tile::testing::random_tensor(random, type, {channels, 1, 3, 2}));
  } else {
    op = pick<std::string_view>(random, {"max_pool", "average_pool"});
    attrs.set("kernel", op::Ints{3, 2});
    if (op == "average_pool") attrs.set("count_include_pad", int64_t{1});
  }
  auto trial = tile::testing::trial_of(op, attrs, std::move(in));
  if (!trial) return std::nullopt;
  tile::testing::place(random, trial->problem.in[0]);
  return *std::move(trial);
}
TEST_P(Families, Windows) { EXPECT_GE(right(GetParam(), 8, 24, random_window), 12); }

std::optional<tile::testing::Trial> random_move(std::mt19937_64& random) {
  using tile::testing::pick;
  const DType type = pick(random, {DType::kF16, DType::kF32, DType::kI64, DType::kBool});
  const auto size = [&] { return pick<int64_t>(random, {1, 2, 5, 33}); };
  const op::Dims dims = {size(), size(), size()};
  const op::Tensor x = tile::testing::random_tensor(random, type, dims);
  Result<tile::testing::Trial> trial = tl::unexpected(Error{});
  if (random() % 2) {
    trial = tile::testing::trial_of("transpose", {{"perm", op::Ints{2, 0, 1}}}, {x});
  } else {
    op::Dims other = dims;
    other[1] = size();
    trial = tile::testing::trial_of("concat", {{"axis", int64_t{1}}},
                                    {x, tile::testing::random_tensor(random, type, other), x});
  }
  if (!trial) return std::nullopt;
  tile::testing::place(random, trial->problem.in[0]);
  tile::testing::place(random, trial->problem.out[0]);
  return *std::move(trial);
}
TEST_P(Families, Moves) { EXPECT_GE(right(GetParam(), 9, 30, random_move), 25); }

TEST(Arrays, MultiplyBytes) {
  EXPECT_GE(right("gemmini", 4, 20, tile::testing::random_byte_product), 3);
}

op::Operand operand(DType dtype, op::Dims dims, bool constant = false) {
  op::Operand o;
  o.dtype = dtype;
  o.dims = std::move(dims);
  o.constant = constant;
  return o;
}

// A product of square matrices; seconds on the chip.
double square(const char* chip, DType type, DType out, int64_t n) {
  auto machine = Machine::open(chip, {{"threads", "2"}, {"mode", "timing"}});
  EXPECT_TRUE(machine);
  op::Problem p;
  p.op = op::find("dot");
  p.in = {operand(type, {n, n}), operand(type, {n, n}, true)};
  p.out = {operand(out, {n, n})};
  const auto time = machine->time(p);
  EXPECT_TRUE(time) << time.error().message;
  return time ? time->value : 0;
}

// Measured on one die of the chip: 0.0388 and 1.506 ms (pto-isa, gemm_performance).
TEST(Times, OfProductsAreThoseOfTheChip) {
  const double small = square("ascend910c_die", DType::kF16, DType::kF32, 1536);
  EXPECT_GT(small, 0.0388e-3 * 0.6);
  EXPECT_LT(small, 0.0388e-3 * 1.4);
  const double large = square("ascend910c_die", DType::kF16, DType::kF32, 6144);
  EXPECT_GT(large, 1.506e-3 * 0.8);
  EXPECT_LT(large, 1.506e-3 * 1.25);
  // No chip is faster than its peak, and a large product is not far from it.
  for (const auto& [chip, type, peak] : {std::tuple("tpu_v5e", DType::kBF16, 196.6e12),
                                         {"h100_sxm", DType::kF16, 989.4e12},
                                         {"ascend910b2", DType::kF16, 353.9e12}}) {
    const double rate = 2 * 4096.0 * 4096.0 * 4096.0 / square(chip, type, type, 4096);
    EXPECT_LT(rate, peak) << chip;
    EXPECT_GT(rate, 0.5 * peak) << chip << ": " << rate * 1e-12 << " TFLOP/s";
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Families,
                         ::testing::Values("ascend910b2", "ascend310p3", "ascend950pr", "tpu_v5e",
                                           "h100_sxm", "mi300x"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace tessera::codegen::sim::testing
