#include "tessera/hal/host_launch.h"

#include <cstring>
#include <exception>

namespace tessera::hal {

void LaunchFailure::set(std::string message) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  message_ = std::move(message);
  failed_.store(true, std::memory_order_release);
}

Status LaunchFailure::status() const {
  if (!failed()) return {};
  const std::lock_guard lock(mutex_);
  return error(Error{Code::kInvalidArgument, message_});
}

tessera_launch launch_view(const tessera_launch_command& l, const tessera_range* ranges,
                           LaunchFailure* failure) {
  return {.struct_size = sizeof(tessera_launch),
          .grid = l.grid,
          .range_count = l.range_count,
          .constants_bytes = l.constants_bytes,
          .ranges = ranges,
          .constants = l.constants,
          .fail =
              [](const tessera_launch* launch, const char* message) {
                static_cast<LaunchFailure*>(launch->fail_context)->set(message);
              },
          .fail_context = failure};
}

void call_entry(tessera_entry entry, const tessera_launch& launch, uint32_t first, uint32_t count) {
  auto* failure = static_cast<LaunchFailure*>(launch.fail_context);
  if (failure->failed()) return;
  try {
    entry(&launch, first, count);
  } catch (const std::exception& e) {
    failure->set(std::string("the kernel threw: ") + e.what());
  } catch (...) {
    failure->set("the kernel threw");
  }
}

void fill_bytes(std::byte* to, uint64_t size_bytes, const tessera_fill_command& f) {
  if (size_bytes == 0) return;
  if (f.pattern_bytes == 1) {
    std::memset(to, static_cast<int>(f.pattern & 0xff), size_bytes);
    return;
  }
  for (uint64_t i = 0; i < size_bytes; i += f.pattern_bytes)
    std::memcpy(to + i, &f.pattern, f.pattern_bytes);
}

}  // namespace tessera::hal
