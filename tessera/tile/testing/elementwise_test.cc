// Random groups of element-wise operators as tile programs, against the reference step by step.
#include <gtest/gtest.h>

#include "tessera/tile/problems.h"
#include "tessera/tile/testing/run.h"
#include "tessera/tile/text.h"

namespace tessera::tile::testing {
namespace {

TEST(Elementwise, RandomGroupsMatchTheReference) {
  std::mt19937_64 random(5);
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kI64,
                              DType::kU8,  DType::kI8,  DType::kF16, DType::kBF16};
  int ran = 0;
  for (int i = 0; i < 300; ++i) {
    const Dims dims = random_dims(random, static_cast<int>(random() % 5), 2000);
    const auto trial = random_group(random, dims, kTypes[random() % std::size(kTypes)],
                                    1 + static_cast<int>(random() % 12));
    if (!trial) continue;
    const auto fault = run(random, *trial);
    if (fault) {
      EXPECT_EQ(*fault, "");
      ++ran;
    }
  }
  EXPECT_GE(ran, 200);
}

TEST(Elementwise, ProgramsDoNotDependOnSizes) {
  const auto program_of = [](const Dims& x, const Dims& b) {
    std::mt19937_64 random(1);
    const auto trial = *trial_of(
        "add", {}, {random_tensor(random, DType::kF32, x), random_tensor(random, DType::kF32, b)});
    return print(instance_of(trial.problem)->program);
  };
  EXPECT_EQ(program_of({4, 8}, {8}), program_of({100, 3}, {3}));
  EXPECT_EQ(program_of({4, 8}, {4, 8}), program_of({7}, {7}));
  EXPECT_EQ(program_of({2, 3, 8, 9}, {3, 1, 1}), program_of({5, 6, 7}, {6, 1}));
  EXPECT_NE(program_of({4, 8}, {8}), program_of({4, 8}, {4, 1}));
  EXPECT_EQ(program_of({4, 8}, {8}),
            "program elementwise(x0: in f32[I, J], x1: in f32[J], y2: out f32[I, J]) {\n"
            "  axes i = I, j = J\n"
            "  grid i, j\n"
            "  %0 = load x0[i, j] : f32(i, j)\n"
            "  %1 = load x1[j] : f32(j)\n"
            "  %2 = add(%0, %1) : f32(i, j)\n"
            "  store y2[i, j] = %2\n"
            "}\n");
}

}  // namespace
}  // namespace tessera::tile::testing
