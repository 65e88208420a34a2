// The objects behind the handles of hal/cpu.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "tessera/base/thread_pool.h"
#include "tessera/hal/host_queue.h"

namespace tessera::hal::cpu {

struct Options {
  int threads = 0;                  // 0: a thread per core this process may use
  uint64_t memory_limit_bytes = 0;  // 0: what the machine allows
};

Result<Options> parse_options(const tessera_option* options, uint32_t count);

// `threads` as device_info shall tell it.
tessera_device_info describe(int threads);

class Device : public HostDevice {
 public:
  explicit Device(const Options& options);

  ThreadPool& pool() { return pool_; }
  tessera_device_info info() const { return describe(pool_.threads()); }
  tessera_memory memory() const;

  // Counts slab bytes against the limit.
  Status reserve(uint64_t size_bytes);
  void release(uint64_t size_bytes);
  std::atomic<uint64_t>& wrapped_bytes() { return wrapped_bytes_; }

 private:
  ThreadPool pool_;
  uint64_t limit_bytes_;
  mutable std::mutex memory_mutex_;
  uint64_t slab_bytes_ = 0, peak_bytes_ = 0, slab_count_ = 0;
  std::atomic<uint64_t> wrapped_bytes_{0};
};

struct Slab {
  Device* device;
  std::byte* base;
  uint64_t size_bytes;
  bool wrapped;
};

Result<Slab*> allocate_slab(Device& device, uint64_t size_bytes);
Slab* wrap_slab(Device& device, void* host, uint64_t size_bytes);
void free_slab(Slab* slab);

// Pages that hold code, readable or executable, never writable.
class MappedCode {
 public:
  MappedCode() = default;
  MappedCode(std::byte* base, uint64_t size) : base_(base), size_(size) {}
  MappedCode(MappedCode&& other) noexcept { *this = std::move(other); }
  MappedCode& operator=(MappedCode&& other) noexcept;
  ~MappedCode();

  std::byte* base() const { return base_; }
  uint64_t size() const { return size_; }

 private:
  std::byte* base_ = nullptr;
  uint64_t size_ = 0;
};

struct Executable {
  std::vector<tessera_entry> entries;
  MappedCode code;  // of format elf
};

Result<std::unique_ptr<Executable>> load_executable(const tessera_executable_source& source);

class Runner : public CommandRunner {
 public:
  explicit Runner(Device& device) : device_(device) {}
  Status run(const tessera_command& command) override;

 private:
  Status launch(const tessera_command& c);
  Status copy(const tessera_command& c);
  Status upload(const tessera_command& c);
  Status download(const tessera_command& c);
  Status fill(const tessera_command& c);
  Status host(const tessera_command& c);
  Status timestamp(const tessera_command& c);
  void move(std::byte* to, const std::byte* from, uint64_t size_bytes);

  Device& device_;
};

}  // namespace tessera::hal::cpu
