#include "tessera/hal/sim/device.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace tessera::hal::sim {
namespace {

template <class T>
Status parse_number(const tessera_option& o, T* out) {
  const std::string_view text = o.value;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (problem != std::errc() || end != text.data() + text.size() || *out < T{1})
    return error(Code::kInvalidArgument,
                 "option '{}' of a simulated device is '{}', need a whole number of at least 1",
                 o.key, text);
  return {};
}

Status parse_choice(const tessera_option& o, std::string_view no, std::string_view yes, bool* out) {
  const std::string_view text = o.value;
  if (text != no && text != yes)
    return error(Code::kInvalidArgument, "option '{}' of a simulated device is '{}', need {} or {}",
                 o.key, text, no, yes);
  *out = text == yes;
  return {};
}

}  // namespace

Result<Options> parse_options(const tessera_option* options, uint32_t count) {
  Options result;
  for (const tessera_option* o = options; o != options + count; ++o) {
    const std::string_view key = o->key;
    if (key == "threads") {
      TRY(parse_number(*o, &result.threads));
    } else if (key == "memory_limit") {
      TRY(parse_number(*o, &result.memory_limit));
    } else if (key == "mode") {
      TRY(parse_choice(*o, "timing", "functional", &result.mode.computes));
      if (!result.mode.computes) result.mode.checks = false;
    } else if (key == "checks") {
      TRY(parse_choice(*o, "off", "on", &result.mode.checks));
    } else {
      return error(Code::kInvalidArgument,
                   "a simulated device has no option '{}'; it has threads, memory_limit, mode "
                   "(functional, timing), checks (on, off)",
                   key);
    }
  }
  return result;
}

uint64_t Device::capacity() const {
  const auto all = static_cast<uint64_t>(chip_->device_memory().capacity_bytes.value.value);
  return options_.memory_limit == 0 ? all : std::min(all, options_.memory_limit);
}

Status Device::reserve(uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (size_bytes > capacity() || slab_bytes_ > capacity() - size_bytes)
    return error(Code::kResourceExhausted, "space '{}' of {}: {} bytes beside {}, it has {}",
                 engine::device_space(*chip_), chip_->id, size_bytes, slab_bytes_, capacity());
  slab_bytes_ += size_bytes;
  peak_bytes_ = std::max(peak_bytes_, slab_bytes_);
  ++slabs_;
  return {};
}

void Device::release(uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  slab_bytes_ -= size_bytes;
  --slabs_;
}

tessera_memory Device::memory() const {
  const std::lock_guard lock(mutex_);
  return {.struct_size = sizeof(tessera_memory),
          .known = 0x3f,
          .capacity_bytes = capacity(),
          .free_bytes = capacity() - slab_bytes_,
          .slab_bytes = slab_bytes_,
          .peak_slab_bytes = peak_bytes_,
          .slab_count = slabs_,
          .wrapped_bytes = wrapped_bytes};
}

void Device::pass(double ps) {
  const std::lock_guard lock(mutex_);
  clock_ps_ += ps;
}

uint64_t Device::now_ns() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(clock_ps_ * 1e-3);
}

}  // namespace tessera::hal::sim
