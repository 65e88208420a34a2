#include "tessera/base/dtype.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(DType, EveryNameReadsBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DTypeInfo& row = info(static_cast<DType>(i));
    EXPECT_EQ(dtype_from_name(row.name), row.dtype) << row.name;
    if (!row.numpy.empty()) {
      EXPECT_EQ(dtype_from_name(row.numpy), row.dtype) << row.numpy;
    }
  }
  EXPECT_EQ(dtype_from_name("FLOAT16"), DType::kF16);
  EXPECT_EQ(dtype_from_name("<f4"), DType::kF32);
  EXPECT_EQ(dtype_from_name("f33"), std::nullopt);
}

TEST(DType, PackedBytesRoundUpAndReportOverflow) {
  EXPECT_EQ(packed_bytes(DType::kI4, 3), 2);
  EXPECT_EQ(packed_bytes(DType::kU2, 5), 2);
  EXPECT_EQ(packed_bytes(DType::kF32, 0), 0);
  EXPECT_EQ(packed_bytes(DType::kF32, int64_t{1} << 62), -1);
  EXPECT_EQ(packed_bytes(DType::kF32, -1), -1);
  EXPECT_EQ(packed_bytes(DType::kI8, std::numeric_limits<int64_t>::max()), -1);
}

}  // namespace
}  // namespace tessera
