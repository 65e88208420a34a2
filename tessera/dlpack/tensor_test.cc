#include "tessera/dlpack/tensor.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::dlpack {
namespace {

DLTensor describe(void* data, std::vector<int64_t>& shape, DType dtype = DType::kF32,
                  int64_t* strides = nullptr) {
  DLTensor t{};
  t.data = data;
  t.device = {kDLCPU, 0};
  t.ndim = static_cast<int>(shape.size());
  t.dtype = *to_dl(dtype);
  t.shape = shape.data();
  t.strides = strides;
  return t;
}

TEST(DlpackTest, TypesGoThereAndBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto dl = to_dl(dtype);
    ASSERT_EQ(dl.has_value(), dtype != DType::kString) << name_of(dtype);
    if (dl) {
      EXPECT_EQ(from_dl(*dl), dtype);
    }
  }
  EXPECT_FALSE(from_dl({kDLFloat, 32, 4}));
  EXPECT_FALSE(from_dl({kDLOpaqueHandle, 64, 1}));
}

TEST(DlpackTest, CompactTensorsAreBorrowed) {
  std::array<float, 6> data{0, 1, 2, 3, 4, 5};
  std::vector<int64_t> shape{2, 3}, strides{3, 1};
  for (int64_t* s : {static_cast<int64_t*>(nullptr), strides.data()}) {
    auto t = to_tensor(describe(data.data(), shape, DType::kF32, s), nullptr);
    ASSERT_TRUE(t) << t.error().message;
    EXPECT_EQ(t->data(), reinterpret_cast<std::byte*>(data.data()));
  }
  // The stride of an axis of size 1 says nothing.
  std::vector<int64_t> row{1, 3}, odd{77, 1};
  EXPECT_EQ(to_tensor(describe(data.data(), row, DType::kF32, odd.data()), nullptr)->data(),
            reinterpret_cast<std::byte*>(data.data()));
}

TEST(DlpackTest, OthersAreCopied) {
  std::array<float, 6> data{0, 1, 2, 3, 4, 5};
  std::vector<int64_t> shape{3, 2}, transposed{1, 3};
  auto t = to_tensor(describe(data.data(), shape, DType::kF32, transposed.data()), nullptr);
  ASSERT_TRUE(t);
  EXPECT_EQ(std::vector<float>(t->as<float>().begin(), t->as<float>().end()),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  DLTensor odd = describe(data.data(), shape, DType::kI16);
  odd.byte_offset = 1;
  EXPECT_NE(to_tensor(odd, nullptr)->data(), reinterpret_cast<std::byte*>(data.data()) + 1);
}

TEST(DlpackTest, Refusals) {
  float data = 1;
  std::vector<int64_t> shape{1}, negative{-1}, huge{int64_t{1} << 40, int64_t{1} << 40};
  DLTensor t = describe(&data, shape);
  t.device.device_type = kDLCUDA;
  EXPECT_EQ(to_tensor(t, nullptr).error().code, Code::kUnimplemented);
  EXPECT_FALSE(to_tensor(describe(&data, negative), nullptr));
  EXPECT_FALSE(to_tensor(describe(&data, huge), nullptr));
  EXPECT_EQ(to_tensor(describe(nullptr, shape), nullptr).error().code, Code::kInvalidArgument);
  t = describe(&data, shape);
  t.shape = nullptr;
  EXPECT_FALSE(to_tensor(t, nullptr));
}

TEST(DlpackTest, ManagedTensorsShareBytesUntilDeleted) {
  op::Tensor t = *op::Tensor::make(DType::kF32, {2, 2});
  const std::weak_ptr<const void> storage = t.storage();
  const std::byte* data = t.data();
  auto managed = to_managed(std::move(t));
  ASSERT_TRUE(managed);
  EXPECT_EQ((*managed)->dl_tensor.data, data);
  EXPECT_EQ((*managed)->dl_tensor.shape[1], 2);
  EXPECT_FALSE(storage.expired());
  (*managed)->deleter(*managed);
  EXPECT_TRUE(storage.expired());
  EXPECT_EQ(to_managed(*op::Tensor::make(DType::kString, {1})).error().code, Code::kUnimplemented);
}

TEST(DlpackTest, CopyInto) {
  op::Tensor t = *op::Tensor::make(DType::kF32, {2, 2});
  for (int i = 0; i < 4; ++i) t.set_f64(i, i);
  std::array<float, 4> out{};
  std::vector<int64_t> shape{2, 2}, transposed{1, 2}, other{4};
  ASSERT_TRUE(copy_into(t, describe(out.data(), shape, DType::kF32, transposed.data())));
  EXPECT_EQ(out, (std::array<float, 4>{0, 2, 1, 3}));
  const auto refused = copy_into(t, describe(out.data(), other));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the buffer is f32[4], need f32[2,2]");
}

TEST(DlpackTest, DetachCopiesWhatOthersSee) {
  op::Tensor shared = *op::Tensor::make(DType::kF32, {4});
  const std::byte* data = shared.data();
  EXPECT_NE(detach(op::Value(shared), {})->tensor().data(), data);
  const std::array inputs{op::Tensor::borrow(DType::kF32, {4}, data, nullptr)};
  op::Tensor view = op::Tensor::borrow(DType::kF32, {2}, data + 8, std::make_shared<int>(0));
  EXPECT_NE(detach(op::Value(std::move(view)), inputs)->tensor().data(), data + 8);
  EXPECT_EQ(detach(op::Value(std::move(shared)), {})->tensor().data(), data);
}

}  // namespace
}  // namespace tessera::dlpack
