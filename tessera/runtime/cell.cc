#include "tessera/runtime/cell.h"

#include <cstring>

namespace tessera::runtime {

Result<Cell> allocate(const Memory& memory, DType dtype, op::Dims dims, std::string_view tag) {
  TRY_ASSIGN(int64_t count, op::element_count(dims));
  const int64_t bytes = packed_bytes(dtype, count);
  if (bytes < 0)
    return error(Code::kOutOfRange, "a tensor of {} is beyond any memory", op::to_string(dims));
  // The buffer goes first, then what it came from.
  struct Owner {
    Memory memory;
    hal::Buffer buffer;
  };
  auto owner = std::make_shared<Owner>();
  owner->memory = memory;
  TRY_ASSIGN(owner->buffer, memory.allocator->allocate(Bytes(bytes), {.tag = tag}));
  Cell cell{dtype, std::move(dims), owner->buffer.slice(), owner->buffer.host(), nullptr, {}};
  if (!cell.host && bytes > 0)
    return error(Code::kUnimplemented, "the host cannot see the memory of '{}'",
                 memory.device->name());
  // An empty tensor has a place, too.
  static std::byte nowhere[kAlignment];
  if (!cell.host) cell.host = nowhere;
  cell.keep = std::move(owner);
  return cell;
}

Result<Cell> from_tensor(const Memory& memory, const op::Tensor& tensor) {
  if (tensor.dtype() == DType::kString) {
    Cell cell;
    cell.dtype = tensor.dtype();
    cell.dims = tensor.dims();
    cell.value = op::Value(tensor);
    return cell;
  }
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data()) % kAlignment == 0;
  if (!aligned || tensor.count() == 0) {
    TRY_ASSIGN(Cell cell, allocate(memory, tensor.dtype(), tensor.dims()));
    if (tensor.count() > 0)
      std::memcpy(cell.host, tensor.data(), static_cast<size_t>(tensor.bytes().value));
    return cell;
  }
  struct Wrapped {
    Memory memory;
    std::shared_ptr<const void> storage;
    hal::Buffer buffer;
  };
  auto owner = std::make_shared<Wrapped>();
  owner->memory = memory;
  owner->storage = tensor.storage();
  TRY_ASSIGN(owner->buffer,
             memory.device->wrap(const_cast<std::byte*>(tensor.data()), tensor.bytes()));
  Cell cell{tensor.dtype(),
            tensor.dims(),
            owner->buffer.slice(),
            const_cast<std::byte*>(tensor.data()),
            nullptr,
            {}};
  cell.keep = std::move(owner);
  return cell;
}

op::Value to_value(const Cell& cell) {
  if (cell.value) return *cell.value;
  return op::Value(op::Tensor::borrow(cell.dtype, cell.dims, cell.host, cell.keep));
}

Result<Cell> owned(const Memory& memory, const Cell& cell) {
  if (cell.keep || cell.value) return cell;
  TRY_ASSIGN(Cell copy, allocate(memory, cell.dtype, cell.dims));
  if (const int64_t bytes = cell.bytes().value; bytes > 0)
    std::memcpy(copy.host, cell.host, static_cast<size_t>(bytes));
  return copy;
}

}  // namespace tessera::runtime
