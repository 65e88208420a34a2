// Running one command. The queue engine calls Runner::run when the command's turn has come, one at
// a time per queue.
#include <array>
#include <chrono>
#include <cstring>

#include "tessera/hal/backend_support.h"
#include "tessera/hal/host_launch.h"
#include "tessera/hal/null/device.h"

namespace tessera::hal::null {
namespace {

std::byte* address(const tessera_slice& s) {
  return s.slab == nullptr ? nullptr : object_of<Slab>(s.slab).base + s.offset_bytes;
}

// Pointers may be null if there is nothing to move.
void copy_bytes(void* to, const void* from, uint64_t size_bytes) {
  if (size_bytes > 0) std::memcpy(to, from, size_bytes);
}

// A driver sets the kernel's arguments and starts it on its stream.
Status launch(const tessera_command& c) {
  const tessera_launch_command& l = c.as.launch;
  const Executable& executable = object_of<Executable>(l.executable);
  if (l.entry >= executable.entries.size())
    return error(Code::kOutOfRange, "entry {} of an executable that has {}", l.entry,
                 executable.entries.size());
  std::vector<tessera_range> ranges;
  for (uint32_t i = 0; i < l.range_count; ++i)
    ranges.push_back({address(l.ranges[i]), l.ranges[i].size_bytes});
  LaunchFailure failure;
  const tessera_launch view = launch_view(l, ranges.data(), &failure);
  if (l.grid > 0) call_entry(executable.entries[l.entry], view, 0, l.grid);
  return failure.status();
}

// A driver copies on the device.
Status copy(const tessera_command& c) {
  copy_bytes(address(c.as.copy.target), address(c.as.copy.source), c.as.copy.source.size_bytes);
  return {};
}

// A driver stages through pinned memory.
Status upload(const tessera_command& c) {
  copy_bytes(address(c.as.transfer.device), c.as.transfer.host, c.as.transfer.device.size_bytes);
  return {};
}

Status download(const tessera_command& c) {
  copy_bytes(c.as.transfer.host, address(c.as.transfer.device), c.as.transfer.device.size_bytes);
  return {};
}

Status fill(const tessera_command& c) {
  fill_bytes(address(c.as.fill.target), c.as.fill.target.size_bytes, c.as.fill);
  return {};
}

// A driver waits for the commands before it, then calls.
Status host(const tessera_command& c) {
  ErrorSlot e;
  return status_from_c(c.as.host.call(c.as.host.context, &e), e);
}

// A driver records an event. The clock is that of device_clock.
Status timestamp(const tessera_command& c) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  *c.as.timestamp.ns = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  return {};
}

// Indexed by tessera_command_kind.
constexpr std::array<Status (*)(const tessera_command&), TESSERA_COMMAND_KINDS> kRun = {
    launch, copy, upload, download, fill, host, timestamp};

}  // namespace

Status Runner::run(const tessera_command& command) {
  if (command.kind < kRun.size()) return kRun[command.kind](command);
  return error(Code::kUnimplemented, "device null has no command of kind {}", command.kind);
}

}  // namespace tessera::hal::null
