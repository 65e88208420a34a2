// The objects behind the handles of hal/null.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "tessera/hal/host_queue.h"

namespace tessera::hal::null {

// Every slab begins at a multiple of kSlabAlignment; kernels may count on kRangeAlignment; copies
// move whole words.
inline constexpr uint64_t kSlabAlignment = 256;
inline constexpr uint64_t kRangeAlignment = 16;
inline constexpr uint64_t kCopyAlignment = 4;

// A driver keeps its context here.
class Device : public HostDevice {
 public:
  std::atomic<uint64_t> slab_bytes{0}, peak_slab_bytes{0}, slab_count{0}, wrapped_bytes{0};
};

struct Slab {
  Device* device;
  std::byte* base;
  uint64_t size_bytes;
  bool wrapped;
};

Result<std::unique_ptr<Slab>> allocate_slab(Device& device, uint64_t size_bytes);
Result<std::unique_ptr<Slab>> wrap_slab(Device& device, void* host, uint64_t size_bytes);
void free_slab(std::unique_ptr<Slab> slab);

struct Executable {
  std::vector<tessera_entry> entries;
};

Result<std::unique_ptr<Executable>> load_executable(const tessera_executable_source& source);

// Runs one command to its end; an error fails the submission.
class Runner : public CommandRunner {
 public:
  Status run(const tessera_command& command) override;
};

}  // namespace tessera::hal::null
