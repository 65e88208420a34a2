#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "tessera/hal/backend_support.h"
#include "tessera/hal/cpu/device.h"
#include "tessera/hal/host_launch.h"

namespace tessera::hal::cpu {
namespace {

constexpr uint64_t kCopyChunk = uint64_t{1} << 20;  // worth a wake-up of another core
constexpr size_t kInlineRanges = 16;

std::byte* address(const tessera_slice& s) { return object_of<Slab>(s.slab).base + s.offset_bytes; }

}  // namespace

Status Runner::run(const tessera_command& command) {
  // Indexed by tessera_command_kind.
  static constexpr std::array<Status (Runner::*)(const tessera_command&), TESSERA_COMMAND_KINDS>
      kRun = {&Runner::launch, &Runner::copy, &Runner::upload,   &Runner::download,
              &Runner::fill,   &Runner::host, &Runner::timestamp};
  if (command.kind >= kRun.size())
    return error(Code::kUnimplemented, "device cpu has no command of kind {}", command.kind);
  return (this->*kRun[command.kind])(command);
}

Status Runner::launch(const tessera_command& c) {
  const tessera_launch_command& l = c.as.launch;
  const Executable& executable = object_of<Executable>(l.executable);
  if (l.entry >= executable.entries.size())
    return error(Code::kOutOfRange, "entry {} of an executable that has {}", l.entry,
                 executable.entries.size());
  std::array<tessera_range, kInlineRanges> few;
  std::vector<tessera_range> many(l.range_count > few.size() ? l.range_count : 0);
  tessera_range* ranges = many.empty() ? few.data() : many.data();
  for (uint32_t i = 0; i < l.range_count; ++i) {
    const tessera_slice& s = l.ranges[i];
    ranges[i] = {s.slab == nullptr ? nullptr : address(s), s.size_bytes};
  }
  LaunchFailure failure;
  const tessera_launch view = launch_view(l, ranges, &failure);
  const tessera_entry entry = executable.entries[l.entry];
  device_.pool().parallel_for(
      l.grid, [&](uint32_t first, uint32_t count) { call_entry(entry, view, first, count); });
  return failure.status();
}

void Runner::move(std::byte* to, const std::byte* from, uint64_t size_bytes) {
  const auto chunks = static_cast<uint32_t>((size_bytes + kCopyChunk - 1) / kCopyChunk);
  device_.pool().parallel_for(chunks, [&](uint32_t first, uint32_t count) {
    const uint64_t begin = first * kCopyChunk;
    std::memcpy(to + begin, from + begin, std::min(count * kCopyChunk, size_bytes - begin));
  });
}

Status Runner::copy(const tessera_command& c) {
  move(address(c.as.copy.target), address(c.as.copy.source), c.as.copy.source.size_bytes);
  return {};
}

Status Runner::upload(const tessera_command& c) {
  const auto& t = c.as.transfer;
  move(address(t.device), static_cast<const std::byte*>(t.host), t.device.size_bytes);
  return {};
}

Status Runner::download(const tessera_command& c) {
  const auto& t = c.as.transfer;
  move(static_cast<std::byte*>(t.host), address(t.device), t.device.size_bytes);
  return {};
}

Status Runner::fill(const tessera_command& c) {
  fill_bytes(address(c.as.fill.target), c.as.fill.target.size_bytes, c.as.fill);
  return {};
}

Status Runner::host(const tessera_command& c) {
  ErrorSlot e;
  return status_from_c(c.as.host.call(c.as.host.context, &e), e);
}

Status Runner::timestamp(const tessera_command& c) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  *c.as.timestamp.ns = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  return {};
}

}  // namespace tessera::hal::cpu
