// The caching allocator of every backend: cuts slabs into blocks, best fit, merges neighbours, and
// reuses a block only when the work that used it has ended.
//
// Laws: no out-of-memory while a fitting free block exists or an unused slab could make room; no
// block is handed out while held or in use; blocks of a slab never overlap; what is released
// becomes one free block again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tessera/hal/buffer.h"
#include "tessera/hal/device.h"

namespace tessera::hal {

struct AllocatorOptions {
  std::optional<uint32_t> space = {};  // default: the device's default space
  Bytes slab = Bytes(
      int64_t{32} << 20);  // what is asked of the backend at a time; larger requests get their own
  Bytes limit = Bytes(0);  // of all slabs; 0: what the device gives
};

struct AllocateOptions {
  std::string_view tag = "";             // the holder, for statistics and explanations
  std::chrono::nanoseconds patience{0};  // how long to wait for pending frees before giving up
};

struct AllocatorStatistics {
  Bytes held;       // in buffers, as rounded up
  Bytes requested;  // in buffers, as asked for
  Bytes peak_held;
  Bytes pending;  // released, but still in use by submitted work
  Bytes free;     // in blocks that can be handed out
  Bytes largest_free;
  Bytes reserved;  // in slabs: held + pending + free
  Bytes peak_reserved;
  int64_t slabs = 0;
  int64_t buffers = 0;
  int64_t allocations = 0;       // ever
  int64_t slab_allocations = 0;  // ever: the rest were hits
  int64_t failures = 0;          // ever
};

// Thread-safe. Buffers may outlive it, the device may not die before them nor before their pending
// uses.
class Allocator {
 public:
  explicit Allocator(Device& device, const AllocatorOptions& options = {});
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Its slice starts at a multiple of the space's alignment. A size of 0 is legal.
  // kResourceExhausted, with the largest hole, the pending frees and what they wait for, and the
  // holders by tag.
  Result<Buffer> allocate(Bytes size, const AllocateOptions& options = {});
  // Gives slabs without a held or pending block back to the device; returns their bytes.
  Bytes trim();
  AllocatorStatistics statistics() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::hal
