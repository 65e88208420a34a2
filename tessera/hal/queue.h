// Commands and the queues that run them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "tessera/base/call_site.h"
#include "tessera/hal/buffer.h"
#include "tessera/hal/timeline.h"

namespace tessera::hal {

// One command, plain data. Its arrays (ranges, constants, label) need to live until submit returns;
// host memory of uploads and downloads, slabs and executables until the submission's signals.
using Command = tessera_command;

// An executable: load it with Device::load. Outlives the launches of its entries.
class Executable {
 public:
  Executable() = default;
  uint32_t entries() const { return entries_; }
  tessera_executable* handle() const { return owned_.get(); }

 private:
  friend class Device;
  Executable(const tessera_backend* table, tessera_executable* handle, uint32_t entries)
      : owned_(table, handle), entries_(entries) {}
  Owned<tessera_executable, &tessera_backend::executable_unload> owned_;
  uint32_t entries_ = 0;
};

// The entry sees `ranges` in this order; a range with a null slab is seen as a null pointer.
struct Launch {
  const Executable* executable = nullptr;
  uint32_t entry = 0;
  uint32_t grid = 1;
  std::span<const Slice> ranges = {};
  std::span<const std::byte> constants = {};
  const char* label = nullptr;  // the operator, for failures
  CallSite site = CallSite::current();
};

Command launch(const Launch& l);
Command copy(Slice source, Slice target, const char* label = nullptr,
             CallSite site = CallSite::current());
Command upload(const void* source, Slice target, const char* label = nullptr,
               CallSite site = CallSite::current());
Command download(Slice source, void* target, const char* label = nullptr,
                 CallSite site = CallSite::current());
// `pattern_bytes` 1, 2, 4 or 8: the pattern's lowest bytes, repeated.
Command fill(Slice target, uint64_t pattern, uint32_t pattern_bytes, const char* label = nullptr,
             CallSite site = CallSite::current());
// A call on the host in the queue's order; it returns a tessera_code and must not wait for work of
// its own queue.
Command host_call(int32_t (*call)(void* context, tessera_error* error), void* context,
                  const char* label = nullptr, CallSite site = CallSite::current());
Command timestamp(uint64_t* ns, CallSite site = CallSite::current());

struct QueueOptions {
  // Submissions are ordered by their waits alone.
  bool out_of_order = false;
  // Work whose waits have passed may run on the submitting thread, before submit returns: the
  // lowest overhead, and no overlap with the host. Always so on a CPU device of one thread.
  bool run_on_submit = false;
};

// Thread-safe. Submissions to an in-order queue depend on those before: after a failure, all later
// ones fail with its cause, until recover().
class Queue {
 public:
  Queue() = default;

  // When all waits passed, the commands run in turn, then the signals fire; or all signals fail
  // with the first cause. An error means that nothing was submitted; the signals then fail with it.
  // Points of other devices are legal; they
  // have passed or failed before either device is closed. Returns the submission's number.
  Result<uint64_t> submit(std::span<const Command> commands, std::span<const Point> waits,
                          std::span<const Point> signals);
  Result<uint64_t> submit(std::initializer_list<Command> commands,
                          std::initializer_list<Point> waits = {},
                          std::initializer_list<Point> signals = {}) {
    return submit(std::span(commands.begin(), commands.size()),
                  std::span(waits.begin(), waits.size()),
                  std::span(signals.begin(), signals.size()));
  }
  // Forgets the failure that an in-order queue holds.
  Status recover();

 private:
  friend class Device;
  Queue(Device* device, const tessera_backend* table, tessera_queue* handle)
      : device_(device), owned_(table, handle) {}
  Status check(const Command& c) const;
  Device* device_ = nullptr;
  Owned<tessera_queue, &tessera_backend::queue_destroy> owned_;
};

}  // namespace tessera::hal
