// Calls host_fn entries: ranges resolved to pointers, failures collected, exceptions kept inside.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "tessera/hal/failure.h"

namespace tessera::hal {

// What a launch's kernels report. The first failure wins.
class LaunchFailure {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void set(std::string message);
  // kInvalidArgument with the kernel's text.
  Status status() const;

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string message_;
};

// The view that a kernel gets of `l`; `ranges` has l.range_count elements. All three must outlive
// the launch.
tessera_launch launch_view(const tessera_launch_command& l, const tessera_range* ranges,
                           LaunchFailure* failure);

// Work items [first, first + count); skipped once the launch has failed.
void call_entry(tessera_entry entry, const tessera_launch& launch, uint32_t first, uint32_t count);

// Repeats the pattern over `size_bytes`, a multiple of f.pattern_bytes.
void fill_bytes(std::byte* to, uint64_t size_bytes, const tessera_fill_command& f);

}  // namespace tessera::hal
