// What a slot holds while a plan runs: bytes on the device, or a value on the host, or both views
// of the same bytes.
#pragma once

#include <memory>
#include <optional>

#include "tessera/hal/allocator.h"
#include "tessera/hal/device.h"
#include "tessera/op/tensor.h"

namespace tessera::runtime {

// Alignment of every range that a kernel sees.
inline constexpr size_t kAlignment = 64;

struct Cell {
  DType dtype = DType::kF32;
  op::Dims dims;
  hal::Slice slice{};         // no slab: not (yet) on the device
  std::byte* host = nullptr;  // where the host sees the bytes
  std::shared_ptr<const void>
      keep;  // null: the bytes belong to a slab or to the caller, and end with the run
  std::optional<op::Value> value;  // strings, sequences, optionals, maps
  // How the elements lie: the text of the layout (it outlives the cell), and elements per logical
  // axis where they are not packed.
  std::string_view layout = {};  // empty: row-major
  op::Dims strides = {};

  bool filled() const { return host != nullptr || value.has_value(); }
  int64_t count() const { return op::element_count(dims).value_or(0); }
  Bytes bytes() const { return value ? value->bytes() : Bytes(packed_bytes(dtype, count())); }
};

// A device and where its memory comes from. What is allocated keeps both alive.
struct Memory {
  std::shared_ptr<hal::Device> device;
  std::shared_ptr<hal::Allocator> allocator;
};

// A fresh block of device memory that the host sees. kResourceExhausted with the device's
// explanation.
Result<Cell> allocate(const Memory& memory, DType dtype, op::Dims dims,
                      std::string_view tag = "value");
// The tensor's bytes in place where they are aligned, else a copy.
Result<Cell> from_tensor(const Memory& memory, const op::Tensor& tensor);
// A view of the cell for the host; valid as long as the cell's bytes. Its storage() is the cell's
// keep. @pre the cell is packed and row-major
op::Value to_value(const Cell& cell);
// The same of any cell: a copy in row-major order where it lies otherwise.
Result<op::Value> plain_value(const Cell& cell);
// Writes a tensor of the cell's type to where the cell's elements lie.
Status store_plain(const op::Tensor& tensor, const Cell& cell);
// The cell itself if it owns its bytes, else a copy that does.
Result<Cell> owned(const Memory& memory, const Cell& cell);

}  // namespace tessera::runtime
