// A range of device memory that its holder owns.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tessera/base/units.h"
#include "tessera/hal/timeline.h"

namespace tessera::hal {

class Allocator;

// Who takes a block back, if it was cut from a shared slab.
class BlockOwner {
 public:
  virtual ~BlockOwner() = default;
  // `uses`: work that may still run on the block.
  virtual void release(void* block, std::vector<Point> uses) = 0;
};

// Bytes of a slab, as commands take them. Plain data: it owns nothing.
using Slice = tessera_slice;

// Destroyed only when no pending work uses it; one that came from an Allocator may go earlier, if
// each pending use was told to used_until.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& o) noexcept { swap(o); }
  Buffer& operator=(Buffer&& o) noexcept {
    swap(o);
    return *this;
  }
  ~Buffer();

  explicit operator bool() const { return slice_.slab != nullptr; }
  Bytes size() const { return Bytes(static_cast<int64_t>(slice_.size_bytes)); }
  // All of it.
  Slice slice() const { return slice_; }
  // Bytes [offset, offset + size). kOutOfRange.
  Result<Slice> slice(Bytes offset, Bytes size) const;
  // Where the host sees it; null if it does not.
  std::byte* host() const { return host_; }
  // Work that ends at `point` uses the buffer.
  void used_until(const Point& point) { uses_.push_back(point); }

 private:
  friend class Device;
  friend class Allocator;
  void swap(Buffer& o) noexcept;

  const tessera_backend* table_ = nullptr;
  Slice slice_{};
  std::byte* host_ = nullptr;
  std::shared_ptr<BlockOwner> owner_;  // null: the slab is the buffer's own
  void* block_ = nullptr;              // the owner's
  std::vector<Point> uses_;
};

}  // namespace tessera::hal
