// Running one command. The queue engine calls Runner::run when the command's turn has come, one at
// a time per queue; the device's clock goes on by what it takes.
#include <array>
#include <cstring>

#include "tessera/hal/backend_support.h"
#include "tessera/hal/host_launch.h"
#include "tessera/hal/sim/device.h"

namespace tessera::hal::sim {
namespace {

std::byte* address(const tessera_slice& s) {
  return s.slab == nullptr ? nullptr : object_of<Slab>(s.slab).base + s.offset_bytes;
}

// Pointers may be null if there is nothing to move.
void copy_bytes(void* to, const void* from, uint64_t size_bytes) {
  if (size_bytes > 0) std::memcpy(to, from, size_bytes);
}

}  // namespace

// Between host and device, by the first link that leads to the host.
void Runner::pass_transfer(uint64_t bytes) {
  for (const auto& [name, link] : device_.chip()->links)
    if (link.kind == chip::LinkKind::kHost) {
      const double latency = link.latency_seconds ? link.latency_seconds->value.value : 0;
      device_.pass((latency + static_cast<double>(bytes) / link.bytes_per_second.value) * 1e12);
      return;
    }
}

void Runner::pass_memory(uint64_t bytes) {
  const chip::Chip& chip = *device_.chip();
  const double rate = chip.bandwidth_of(chip.device_memory());
  if (rate > 0) device_.pass(static_cast<double>(bytes) / rate * 1e12);
}

Status Runner::launch(const tessera_command& c) {
  const tessera_launch_command& l = c.as.launch;
  const Executable& executable = object_of<Executable>(l.executable);
  if (l.entry >= executable.entries.size())
    return error(Code::kOutOfRange, "entry {} of an executable that has {}", l.entry,
                 executable.entries.size());
  if (l.grid == 0) return {};
  Arguments arguments;
  arguments.grid = l.grid;
  for (uint32_t i = 0; i < l.range_count; ++i)
    arguments.ranges.push_back(
        {address(l.ranges[i]), static_cast<int64_t>(l.ranges[i].size_bytes)});
  arguments.constants.resize(l.constants_bytes / sizeof(int64_t));
  copy_bytes(arguments.constants.data(), l.constants, arguments.constants.size() * sizeof(int64_t));
  TRY_ASSIGN(const LaunchTime time,
             sim::run(executable.entries[l.entry], arguments, device_.mode(), device_.pool()));
  device_.pass(time.ps);
  return {};
}

Status Runner::copy(const tessera_command& c) {
  copy_bytes(address(c.as.copy.target), address(c.as.copy.source), c.as.copy.source.size_bytes);
  pass_memory(2 * c.as.copy.source.size_bytes);
  return {};
}

Status Runner::upload(const tessera_command& c) {
  copy_bytes(address(c.as.transfer.device), c.as.transfer.host, c.as.transfer.device.size_bytes);
  pass_transfer(c.as.transfer.device.size_bytes);
  return {};
}

Status Runner::download(const tessera_command& c) {
  copy_bytes(c.as.transfer.host, address(c.as.transfer.device), c.as.transfer.device.size_bytes);
  pass_transfer(c.as.transfer.device.size_bytes);
  return {};
}

Status Runner::fill(const tessera_command& c) {
  fill_bytes(address(c.as.fill.target), c.as.fill.target.size_bytes, c.as.fill);
  pass_memory(c.as.fill.target.size_bytes);
  return {};
}

Status Runner::host(const tessera_command& c) {
  ErrorSlot e;
  return status_from_c(c.as.host.call(c.as.host.context, &e), e);
}

Status Runner::timestamp(const tessera_command& c) {
  *c.as.timestamp.ns = device_.now_ns();
  return {};
}

Status Runner::run(const tessera_command& command) {
  // Indexed by tessera_command_kind.
  constexpr std::array<Status (Runner::*)(const tessera_command&), TESSERA_COMMAND_KINDS> kRun = {
      &Runner::launch, &Runner::copy, &Runner::upload,   &Runner::download,
      &Runner::fill,   &Runner::host, &Runner::timestamp};
  if (command.kind < kRun.size()) return (this->*kRun[command.kind])(command);
  return error(Code::kUnimplemented, "a simulated device has no command of kind {}", command.kind);
}

}  // namespace tessera::hal::sim
