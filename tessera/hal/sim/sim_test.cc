// What a simulated core finds wrong, and what its clock says.
#include <gtest/gtest.h>

#include <numeric>

#include "tessera/base/float.h"
#include "tessera/chip/catalog.h"
#include "tessera/hal/sim/run.h"

namespace tessera::hal::sim {
namespace {

std::shared_ptr<const chip::Chip> chip_of(std::string_view id) {
  return std::make_shared<const chip::Chip>(*chip::Catalog().load(id));
}

Result<LaunchTime> launch(std::string_view text, std::vector<std::span<std::byte>> ranges,
                          std::string_view chip = "ascend910b2", Mode mode = {}, int64_t grid = 1) {
  TRY_ASSIGN(std::vector<engine::Program> programs, engine::parse(text));
  TRY_ASSIGN(const Loaded loaded, Loaded::make(chip_of(chip), std::move(programs[0])));
  Arguments a;
  a.grid = grid;
  for (const auto& r : ranges) a.ranges.push_back({r.data(), static_cast<int64_t>(r.size())});
  ThreadPool pool(2);
  return run(loaded, a, mode, pool);
}

// Doubles x on vector cores: 64 elements a turn, in two slots.
std::string twice(std::string_view skip = "", std::string_view instead = "") {
  std::string text = R"(engine "twice" on aiv {
  argument x = 0 : f32[grid]
  argument y = 1 : f32[grid]
  buffer a in ub at 0 : f32[2, 64]
  buffer b in ub at 512 : f32[2, 64]
  vector: set vector_mte2 0
  vector: set vector_mte2 1
  vector_mte3: set vector 0
  vector_mte3: set vector 1
  for t = core to (grid + 63)/64 by cores {
    vector_mte2: wait vector (t - core)/cores%2
    vector_mte2: copy a[(t - core)/cores%2, i] = x[64*t + i] over i = min(64, grid - 64*t)
    vector_mte2: set vector (t - core)/cores%2
    vector: wait vector_mte2 (t - core)/cores%2
    vector: wait vector_mte3 (t - core)/cores%2
    vector: map add b[(t - core)/cores%2, i] = a[(t - core)/cores%2, i], a[(t - core)/cores%2, i] over i = min(64, grid - 64*t)
    vector: set vector_mte2 (t - core)/cores%2
    vector: set vector_mte3 (t - core)/cores%2
    vector_mte3: wait vector (t - core)/cores%2
    vector_mte3: copy y[64*t + i] = b[(t - core)/cores%2, i] over i = min(64, grid - 64*t)
    vector_mte3: set vector (t - core)/cores%2
  }
  vector_mte2: wait vector 0
  vector_mte2: wait vector 1
  vector: wait vector_mte3 0
  vector: wait vector_mte3 1
}
)";
  for (size_t at = text.find(skip); !skip.empty() && at != text.npos;
       at = text.find(skip, at + instead.size()))
    text.replace(at, skip.size(), instead);
  return text;
}

std::string fault_of(const Result<LaunchTime>& r) { return r ? "it ran" : r.error().message; }

class Twice : public ::testing::Test {
 protected:
  Twice() { std::iota(x_.begin(), x_.end(), 1.0f); }
  Result<LaunchTime> run(const std::string& text, Mode mode = {}, size_t bytes = 40000) {
    return launch(
        text,
        {std::as_writable_bytes(std::span(x_)).first(bytes), std::as_writable_bytes(std::span(y_))},
        "ascend910b2", mode, 10000);
  }
  std::vector<float> x_ = std::vector<float>(10000), y_ = std::vector<float>(10000);
};

// Elements are read as they lie: a range that begins inside of one is refused.
TEST_F(Twice, RefusesRangesInsideAnElement) {
  const auto t = launch(
      twice(),
      {std::as_writable_bytes(std::span(x_)).subspan(2), std::as_writable_bytes(std::span(y_))},
      "ascend910b2", {}, 9000);
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, Code::kInvalidArgument);
  EXPECT_EQ(t.error().message,
            "argument 'x' of program 'twice': range 0 begins inside an element of 4 bytes");
}

TEST_F(Twice, Computes) {
  const auto t = run(twice());
  ASSERT_TRUE(t) << t.error().message;
  for (size_t i = 0; i < x_.size(); ++i) ASSERT_EQ(y_[i], 2 * x_[i]) << i;
  EXPECT_EQ(t->read_bytes, 40000);
  EXPECT_EQ(t->written_bytes, 40000);
  // Four turns of a core at most, none of which takes less than its slowest engine.
  EXPECT_GT(t->ps, t->start_ps);
}

TEST_F(Twice, TakesTheSameTimeWithoutComputing) {
  const auto a = run(twice()), b = run(twice(), {.computes = false, .checks = false});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->ps, b->ps);
}

TEST_F(Twice, FindsWhatIsWrong) {
  // A flag that nobody sets, one that nobody waits for, one that is set twice.
  EXPECT_NE(fault_of(run(twice("  vector_mte3: set vector 1\n", ""))).find("wait forever"),
            std::string::npos);
  EXPECT_NE(fault_of(run(twice("  vector: wait vector_mte3 1\n", ""))).find("nobody waits"),
            std::string::npos);
  EXPECT_NE(fault_of(run(twice("  vector_mte3: set vector 0\n",
                               "  vector_mte3: set vector 0\n  vector_mte3: set vector 0\n")))
                .find("set twice"),
            std::string::npos);
  // One slot where two are needed.
  const std::string race = fault_of(run(twice("a[(t - core)/cores%2, i]", "a[0, i]")));
  EXPECT_NE(race.find("a race on 'a' in 'ub'"), std::string::npos) << race;
  // Buffers that lie over one another.
  const std::string shared = fault_of(run(twice("b in ub at 512", "b in ub at 256")));
  EXPECT_NE(shared.find("shares bytes"), std::string::npos) << shared;
  const std::string outside =
      fault_of(run(twice("grid - 64*t)\n    vector_mte2: set", "64)\n    vector_mte2: set")));
  EXPECT_NE(outside.find("indices"), std::string::npos) << outside;
  const std::string skewed =
      fault_of(run(twice("cores%2, i] = x[64*t + i] over i = min(64, grid - 64*t)",
                         "cores%2, i + 1] = x[64*t + i] over i = min(63, grid - 64*t)")));
  EXPECT_NE(skewed.find("need a multiple of 32"), std::string::npos) << skewed;
  EXPECT_NE(fault_of(run(twice(), {}, 39996)).find("takes 40000 bytes"), std::string::npos);
  EXPECT_NE(fault_of(run(twice("vector: wait vector_mte3 (", "vector: wait vector_mte3 8 + (")))
                .find("there are 8"),
            std::string::npos);
}

TEST(SimMatrix, TakesTheCyclesOfMmad) {
  // 128 x 256 x 64 of f16: 8 * 16 * 4 fractals, one a cycle, after 6 to start.
  const auto chip = chip_of("ascend910b2");
  const EngineRate e{{nullptr, &chip->units.find("cube")->second}, 1};
  EXPECT_EQ(matrix_time(e, "f16", {128, 256, 64, 1}, true), 6 + 512);
  EXPECT_EQ(matrix_time(e, "f16", {128, 256, 64, 1}, false), 512);
  EXPECT_EQ(matrix_time(e, "f16", {1, 1, 1, 1}, false), 1);
  EXPECT_EQ(matrix_time(e, "i8", {16, 16, 33, 1}, false), 2);
  EXPECT_EQ(matrix_time(e, "f32", {16, 16, 16, 1}, false), 4);
  EXPECT_EQ(matrix_time(e, "hf32", {16, 16, 16, 1}, false), 2);
}

TEST(SimMatrix, FollowsTheFlowOfSystolicArrays) {
  const auto chip = chip_of("tpu_v5e");
  const EngineRate e{{nullptr, &chip->units.find("mxu")->second}, 1};
  // 4 arrays of 128 x 128: one piece each, all rows of it, and 2R + C - 2 to fill and drain.
  EXPECT_EQ(matrix_time(e, "bf16", {512, 256, 256, 1}, false), 512);
  EXPECT_EQ(matrix_time(e, "bf16", {512, 256, 256, 1}, true), 512 + 382);
  EXPECT_EQ(matrix_time(e, "bf16", {8, 128, 128, 1}, false), 128);
}

TEST(SimVector, GoesByTheFunction) {
  const auto chip = chip_of("ascend910b2");
  const EngineRate e{{nullptr, &chip->units.find("vector")->second}, 1};
  using tile::Function;
  EXPECT_EQ(vector_time(e, Function::kAdd, DType::kF16, 1280, false), 10);
  EXPECT_EQ(vector_time(e, Function::kAdd, DType::kF32, 1280, true), 13 + 20);
  EXPECT_EQ(vector_time(e, Function::kExp, DType::kF32, 1280, false), 40);
  EXPECT_EQ(vector_time(e, Function::kTanh, DType::kF32, 64, false), kSlowFunction);
}

}  // namespace
}  // namespace tessera::hal::sim
