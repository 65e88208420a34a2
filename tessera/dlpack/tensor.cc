#include "tessera/dlpack/tensor.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

namespace tessera::dlpack {
namespace {

// Codes that the installed dlpack.h may lack: DLPack 1.1, DLDataTypeCode.
enum NewCode : uint8_t {
  kBool = 6,
  kF8E4M3FN = 10,
  kF8E4M3FNUZ = 11,
  kF8E5M2 = 12,
  kF8E5M2FNUZ = 13,
  kF8E8M0 = 14,
  kF4E2M1 = 17
};

struct Row {
  DType dtype;
  uint8_t code, bits;
};
constexpr Row kRows[] = {
    {DType::kBool, kBool, 8},
    {DType::kI2, kDLInt, 2},
    {DType::kI4, kDLInt, 4},
    {DType::kI8, kDLInt, 8},
    {DType::kI16, kDLInt, 16},
    {DType::kI32, kDLInt, 32},
    {DType::kI64, kDLInt, 64},
    {DType::kU2, kDLUInt, 2},
    {DType::kU4, kDLUInt, 4},
    {DType::kU8, kDLUInt, 8},
    {DType::kU16, kDLUInt, 16},
    {DType::kU32, kDLUInt, 32},
    {DType::kU64, kDLUInt, 64},
    {DType::kF16, kDLFloat, 16},
    {DType::kBF16, kDLBfloat, 16},
    {DType::kF32, kDLFloat, 32},
    {DType::kF64, kDLFloat, 64},
    {DType::kF8E4M3FN, kF8E4M3FN, 8},
    {DType::kF8E4M3FNUZ, kF8E4M3FNUZ, 8},
    {DType::kF8E5M2, kF8E5M2, 8},
    {DType::kF8E5M2FNUZ, kF8E5M2FNUZ, 8},
    {DType::kF8E8M0, kF8E8M0, 8},
    {DType::kF4E2M1, kF4E2M1, 4},
    {DType::kC64, kDLComplex, 64},
    {DType::kC128, kDLComplex, 128},
};

struct Managed {
  DLManagedTensor managed{};
  op::Tensor tensor;
  op::Dims shape;
};

bool on_host(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
         device.device_type == kDLROCMHost;
}

const std::byte* bytes_of(const DLTensor& t) {
  return static_cast<const std::byte*>(t.data) + t.byte_offset;
}

bool compact(const DLTensor& t, const op::Dims& dims) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (size_t a = dims.size(); a-- > 0; expected *= dims[a])
    if (dims[a] != 1 && t.strides[a] != expected) return false;
  return true;
}

// Calls visit(place, offset in elements of the strided side) for each element in row-major order.
template <class Visit>
void walk(const op::Dims& dims, const int64_t* strides, int64_t count, Visit visit) {
  op::Dims index(dims.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, offset);
    for (size_t a = dims.size(); a-- > 0;) {
      offset += strides[a];
      if (++index[a] < dims[a]) break;
      offset -= strides[a] * dims[a];
      index[a] = 0;
    }
  }
}

struct Described {
  DType dtype;
  op::Dims dims;
  int64_t count;
};

Result<Described> describe(const DLTensor& t) {
  if (!on_host(t.device))
    return error(Code::kUnimplemented,
                 "the tensor is on a device of DLPack's type {}, need the host (1)",
                 static_cast<int>(t.device.device_type));
  const auto dtype = from_dl(t.dtype);
  if (!dtype)
    return error(Code::kUnimplemented, "elements of DLPack's {} have no counterpart here",
                 to_string(t.dtype));
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape))
    return error(Code::kInvalidArgument, "the tensor has rank {} and {} shape", t.ndim,
                 t.shape ? "a" : "no");
  op::Dims dims(t.shape, t.shape + t.ndim);
  TRY_ASSIGN(int64_t count, op::element_count(dims));
  if (count > 0 && !t.data)
    return error(Code::kInvalidArgument, "the tensor of {} has no data", op::to_string(dims));
  return Described{*dtype, std::move(dims), count};
}

Result<op::Tensor> copy_of(const op::Tensor& t) {
  TRY_ASSIGN(op::Tensor copy, op::Tensor::make(t.dtype(), t.dims()));
  if (t.count() > 0)
    std::memcpy(copy.mutable_data(), t.data(), static_cast<size_t>(t.bytes().value));
  return copy;
}

bool overlap(const op::Tensor& a, const op::Tensor& b) {
  const std::less<const std::byte*> before;
  return a.count() > 0 && b.count() > 0 && before(a.data(), b.data() + b.bytes().value) &&
         before(b.data(), a.data() + a.bytes().value);
}

Result<op::Tensor> detach(op::Tensor t, std::span<const op::Tensor> inputs) {
  if (t.dtype() == DType::kString) return t;
  const bool own = t.storage().use_count() == 1 &&
                   std::none_of(inputs.begin(), inputs.end(),
                                [&](const op::Tensor& in) { return overlap(t, in); });
  return own ? Result<op::Tensor>(std::move(t)) : copy_of(t);
}

}  // namespace

std::optional<DLDataType> to_dl(DType dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return DLDataType{row.code, row.bits, 1};
  return std::nullopt;
}

std::optional<DType> from_dl(DLDataType dtype) {
  for (const Row& row : kRows)
    if (row.code == dtype.code && row.bits == dtype.bits && dtype.lanes == 1) return row.dtype;
  return std::nullopt;
}

std::string to_string(DLDataType dtype) {
  if (const auto known = from_dl(dtype)) return std::string(name_of(*known));
  return fmt::format("type code {} of {} bits and {} lanes", dtype.code, dtype.bits, dtype.lanes);
}

Result<op::Tensor> to_tensor(const DLTensor& t, std::shared_ptr<const void> keep) {
  TRY_ASSIGN(Described d, describe(t));
  const int bits = bits_of(d.dtype);
  if (d.count == 0) return op::Tensor::make(d.dtype, d.dims);
  const std::byte* data = bytes_of(t);
  const bool dense = compact(t, d.dims);
  const int alignment = is_complex(d.dtype) ? bits / 16 : std::max(bits / 8, 1);
  if (dense && reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) == 0)
    return op::Tensor::borrow(d.dtype, d.dims, data, std::move(keep));
  if (dense) return copy_of(op::Tensor::borrow(d.dtype, d.dims, data, nullptr));
  if (bits < 8)
    return error(Code::kUnimplemented,
                 "a strided tensor of {}: its elements are smaller than a byte", name_of(d.dtype));
  TRY_ASSIGN(op::Tensor copy, op::Tensor::make(d.dtype, d.dims));
  const int64_t size = bits / 8;
  walk(d.dims, t.strides, d.count, [&](int64_t i, int64_t offset) {
    std::memcpy(copy.mutable_data() + i * size, data + offset * size, static_cast<size_t>(size));
  });
  return copy;
}

Result<DLManagedTensor*> to_managed(op::Tensor tensor) {
  const auto dtype = to_dl(tensor.dtype());
  if (!dtype)
    return error(Code::kUnimplemented, "DLPack has no type for {}", name_of(tensor.dtype()));
  auto* owner = new (std::nothrow) Managed;
  if (!owner) return error(Code::kResourceExhausted, "no memory for a tensor's description");
  owner->shape = tensor.dims();
  owner->tensor = std::move(tensor);
  DLTensor& t = owner->managed.dl_tensor;
  t.data = const_cast<std::byte*>(owner->tensor.data());
  t.device = {kDLCPU, 0};
  t.ndim = owner->tensor.rank();
  t.dtype = *dtype;
  t.shape = owner->shape.data();
  owner->managed.manager_ctx = owner;
  owner->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Managed*>(self->manager_ctx);
  };
  return &owner->managed;
}

Status copy_into(const op::Tensor& tensor, const DLTensor& target) {
  TRY_ASSIGN(Described d, describe(target));
  if (d.dtype != tensor.dtype() || d.dims != tensor.dims())
    return error(Code::kInvalidArgument, "the buffer is {}, need {}",
                 op::Type::tensor(d.dtype, op::Shape(d.dims.begin(), d.dims.end())).str(),
                 tensor.type().str());
  if (d.count == 0) return {};
  auto* out = const_cast<std::byte*>(bytes_of(target));
  if (compact(target, d.dims)) {
    std::memmove(out, tensor.data(), static_cast<size_t>(tensor.bytes().value));
    return {};
  }
  if (bits_of(d.dtype) < 8)
    return error(Code::kUnimplemented,
                 "a strided buffer of {}: its elements are smaller than a byte", name_of(d.dtype));
  const int64_t size = bits_of(d.dtype) / 8;
  walk(d.dims, target.strides, d.count, [&](int64_t i, int64_t offset) {
    std::memcpy(out + offset * size, tensor.data() + i * size, static_cast<size_t>(size));
  });
  return {};
}

Result<op::Value> detach(op::Value value, std::span<const op::Tensor> inputs) {
  if (value.is_tensor()) {
    TRY_ASSIGN(op::Tensor t, detach(std::move(std::get<op::Tensor>(value.data)), inputs));
    return op::Value(std::move(t));
  }
  if (value.is_sequence()) {
    op::Sequence sequence{value.sequence().element, {}};
    for (const op::Value& item : value.sequence().items) {
      TRY_ASSIGN(op::Value own, detach(item, inputs));
      sequence.items.push_back(std::move(own));
    }
    return op::Value(std::move(sequence));
  }
  if (value.is_optional() && value.optional().value) {
    TRY_ASSIGN(op::Value own, detach(*value.optional().value, inputs));
    return op::Value(
        op::Optional{value.optional().element, std::make_shared<const op::Value>(std::move(own))});
  }
  return value;
}

}  // namespace tessera::dlpack
