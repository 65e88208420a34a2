// The objects behind the handles of hal/sim.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/base/thread_pool.h"
#include "tessera/hal/host_queue.h"
#include "tessera/hal/sim/run.h"

namespace tessera::hal::sim {

inline constexpr uint64_t kSlabAlignment = 512;
inline constexpr uint64_t kRangeAlignment = 64;
inline constexpr uint64_t kCopyAlignment = 4;

struct Options {
  int threads = 0;            // 0: as many as the process may use
  uint64_t memory_limit = 0;  // bytes; 0: what the chip has
  Mode mode;
};
Result<Options> parse_options(const tessera_option* options, uint32_t count);

class Device : public HostDevice {
 public:
  Device(std::shared_ptr<const chip::Chip> chip, const Options& options)
      : chip_(std::move(chip)), options_(options), pool_(options.threads) {}

  const std::shared_ptr<const chip::Chip>& chip() const { return chip_; }
  Mode mode() const { return options_.mode; }
  ThreadPool& pool() { return pool_; }

  // Bytes that slabs may take together.
  uint64_t capacity() const;
  Status reserve(uint64_t size_bytes);
  void release(uint64_t size_bytes);
  tessera_memory memory() const;
  std::atomic<uint64_t> wrapped_bytes{0};

  // The simulated time.
  void pass(double ps);
  uint64_t now_ns() const;

 private:
  std::shared_ptr<const chip::Chip> chip_;
  Options options_;
  ThreadPool pool_;
  mutable std::mutex mutex_;
  double clock_ps_ = 0;
  uint64_t slab_bytes_ = 0, peak_bytes_ = 0, slabs_ = 0;
};

struct Slab {
  Device* device;
  std::byte* base;
  uint64_t size_bytes;
  bool wrapped;
};
Result<std::unique_ptr<Slab>> allocate_slab(Device& device, uint64_t size_bytes);
std::unique_ptr<Slab> wrap_slab(Device& device, void* host, uint64_t size_bytes);
void free_slab(std::unique_ptr<Slab> slab);

struct Executable {
  std::vector<Loaded> entries;
};
Result<std::unique_ptr<Executable>> load_executable(const Device& device,
                                                    const tessera_executable_source& source);

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
  void pass_transfer(uint64_t bytes);
  void pass_memory(uint64_t bytes);

  Device& device_;
};

}  // namespace tessera::hal::sim
