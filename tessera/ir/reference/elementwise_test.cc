#include <gtest/gtest.h>

#include "tessera/ir/reference/one_op.h"

namespace tessera::ir::reference {
namespace {

// Beyond the largest signed number.
TEST(Elementwise, UnsignedNumbersHaveNoSign) {
  const std::vector<double> x{0, 1, 0x1p63, 0x1p63 + 4096};
  const auto run = [&](const char* op) {
    auto y = run_op(op, {tensor(DType::kU64, {4}, x)}, {});
    EXPECT_TRUE(y) << y.error().message;
    return y ? values_of((*y)[0].tensor()) : std::vector<double>{};
  };
  EXPECT_EQ(run("abs"), x);
  EXPECT_EQ(run("sign"), (std::vector<double>{0, 1, 1, 1}));
}

}  // namespace
}  // namespace tessera::ir::reference
