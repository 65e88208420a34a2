#include "tessera/runtime/cell.h"

#include <cstring>

#include "tessera/layout/convert.h"

namespace tessera::runtime {
namespace {

// Places of the elements in row-major order, in elements, for strides per logical axis.
template <class Visit>
void each_place(const op::Dims& dims, const op::Dims& strides, Visit visit) {
  op::Dims at(dims.size(), 0);
  const int64_t count = op::element_count(dims).value_or(0);
  int64_t place = 0;
  for (int64_t k = 0; k < count; ++k) {
    visit(k, place);
    for (size_t a = dims.size(); a-- > 0;) {
      place += strides[a];
      if (++at[a] < dims[a]) break;
      place -= strides[a] * dims[a];
      at[a] = 0;
    }
  }
}

// Packed row-major bytes to or from where the cell's elements lie.
Status move_elements(const Cell& cell, std::byte* plain, bool out) {
  const int64_t count = cell.count();
  if (count == 0) return {};
  const int bits = bits_of(cell.dtype);
  if (!cell.strides.empty()) {
    if (bits % 8 != 0)
      return error(Code::kUnimplemented, "a strided view of {}", name_of(cell.dtype));
    const size_t size = static_cast<size_t>(bits / 8);
    each_place(cell.dims, cell.strides, [&](int64_t k, int64_t place) {
      std::byte* there = cell.host + place * static_cast<int64_t>(size);
      std::byte* here = plain + static_cast<size_t>(k) * size;
      std::memcpy(out ? here : there, out ? there : here, size);
    });
    return {};
  }
  const int rank = static_cast<int>(cell.dims.size());
  TRY_ASSIGN(layout::Layout text, layout::Layout::parse(cell.layout));
  TRY_ASSIGN(auto there, layout::BoundLayout::bind(text, cell.dtype, cell.dims));
  TRY_ASSIGN(auto here, layout::BoundLayout::bind(layout::Layout::plain(cell.dtype, rank),
                                                  cell.dtype, cell.dims));
  const std::span cell_bytes(cell.host, static_cast<size_t>(there.bytes().value));
  const std::span plain_bytes(plain, static_cast<size_t>(here.bytes().value));
  return out ? layout::convert(there, cell_bytes, here, plain_bytes)
             : layout::convert(here, plain_bytes, there, cell_bytes);
}

}  // namespace

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

Result<op::Value> plain_value(const Cell& cell) {
  if (cell.layout.empty() && cell.strides.empty()) return to_value(cell);
  TRY_ASSIGN(op::Tensor tensor, op::Tensor::make(cell.dtype, cell.dims));
  TRY(move_elements(cell, tensor.mutable_data(), true));
  return op::Value(std::move(tensor));
}

Status store_plain(const op::Tensor& tensor, const Cell& cell) {
  if (tensor.dims() != cell.dims || tensor.dtype() != cell.dtype)
    return error(Code::kInternal, "{} came out, planned was {} of {}", tensor.type().str(),
                 name_of(cell.dtype), op::to_string(cell.dims));
  if (cell.layout.empty() && cell.strides.empty()) {
    if (tensor.count() > 0)
      std::memmove(cell.host, tensor.data(), static_cast<size_t>(tensor.bytes().value));
    return {};
  }
  return move_elements(cell, const_cast<std::byte*>(tensor.data()), false);
}

Result<Cell> owned(const Memory& memory, const Cell& cell) {
  if (cell.keep || cell.value) return cell;
  TRY_ASSIGN(Cell copy, allocate(memory, cell.dtype, cell.dims));
  if (const int64_t bytes = cell.bytes().value; bytes > 0)
    std::memcpy(copy.host, cell.host, static_cast<size_t>(bytes));
  return copy;
}

}  // namespace tessera::runtime
