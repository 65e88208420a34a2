// An open device: what it is, and everything that is made from it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/units.h"
#include "tessera/hal/backend.h"
#include "tessera/hal/buffer.h"
#include "tessera/hal/queue.h"
#include "tessera/hal/timeline.h"

namespace tessera::hal {

struct MemorySpace {
  std::string name;
  uint32_t flags = 0;  // tessera_space_flag
  Bytes capacity;      // 0: unknown
  Bytes alignment;     // of slabs
  Bytes max_slab;      // 0: no bound but the capacity
};

struct DeviceInfo {
  std::string name;
  std::string chip;  // the id of a chip file, or ""
  std::vector<std::string> formats;
  std::vector<MemorySpace> spaces;
  uint32_t default_space = 0;
  uint32_t capabilities = 0;  // tessera_capability
  uint32_t compute_units = 0;
  uint32_t max_launch_ranges = 0;      // 0: no bound
  uint32_t max_constants_bytes = 0;    // 0: no bound
  uint64_t launch_overhead_ns = 0;     // 0: unknown
  uint64_t range_alignment_bytes = 1;  // of the offsets of launch ranges, in any space
  uint64_t copy_alignment_bytes =
      1;  // of offsets and sizes of copies, transfers and fills, in any space

  bool can(tessera_capability c) const { return (capabilities & c) != 0; }
};

// Describes a device without opening it.
Result<DeviceInfo> describe_device(const Backend& backend, uint32_t ordinal);

struct HostFunction {
  const char* name;
  tessera_entry function;
};

// Outlives everything made from it. Thread-safe.
class Device {
 public:
  static Result<std::unique_ptr<Device>> open(Backend& backend, uint32_t ordinal,
                                              const Options& options = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // "cpu:0".
  const std::string& name() const { return name_; }
  const DeviceInfo& info() const { return info_; }
  const tessera_backend& table() const { return *table_; }
  tessera_device* handle() const { return handle_; }

  // OK, or kDeviceLost with the cause.
  Status status() const;
  // Gives the device up: see device_lose in the table.
  Status lose(const Failure& cause);
  Result<uint64_t> clock_ns() const;
  // Figures of a space; those that the backend does not tell have no bit in `known`.
  Result<tessera_memory> memory(uint32_t space) const;

  // A slab of its own; see Allocator for many small ones. A size of 0 is legal. kResourceExhausted.
  Result<Buffer> allocate(Bytes size) { return allocate(size, info_.default_space); }
  Result<Buffer> allocate(Bytes size, uint32_t space);
  // Host memory used in place, without a copy; it must outlive the buffer.
  Result<Buffer> wrap(void* host, Bytes size);
  Result<Timeline> timeline(uint64_t initial = 0);
  Result<Queue> queue(const QueueOptions& options = {});
  // Format "host_fn".
  Result<Executable> load(std::span<const HostFunction> functions);
  // Any other format: the entries are found by name.
  Result<Executable> load(const std::string& format, std::span<const std::byte> bytes,
                          std::span<const std::string> entries);

 private:
  Device(const Backend& backend, uint32_t ordinal);
  Result<Executable> load(const tessera_executable_source& source);
  Result<Buffer> buffer(tessera_slab* slab);

  std::string name_;
  const tessera_backend* table_;
  tessera_device* handle_ = nullptr;
  DeviceInfo info_;
};

}  // namespace tessera::hal
