#include "tessera/hal/cpu/device.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "tessera/base/machine.h"

namespace tessera::hal::cpu {
namespace {

constexpr const char* kFormats[] = {"host_fn", "elf"};
constexpr uint64_t kAlignment = 64;  // a cache line, and the widest vector

template <class T>
Status parse_number(const tessera_option& o, T lowest, T* out) {
  const std::string_view text = o.value;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (problem != std::errc() || end != text.data() + text.size() || *out < lowest)
    return error(Code::kInvalidArgument,
                 "option '{}' of device cpu is '{}', need a whole number of at least {}", o.key,
                 text, lowest);
  return {};
}

}  // namespace

Result<Options> parse_options(const tessera_option* options, uint32_t count) {
  Options result;
  for (const tessera_option* o = options; o != options + count; ++o) {
    const std::string_view key = o->key;
    if (key == "threads") {
      TRY(parse_number(*o, 1, &result.threads));
    } else if (key == "memory_limit") {
      TRY(parse_number(*o, uint64_t{1}, &result.memory_limit_bytes));
    } else {
      return error(Code::kInvalidArgument,
                   "device cpu has no option '{}'; it has threads, memory_limit", key);
    }
  }
  return result;
}

tessera_device_info describe(int threads) {
  static const tessera_space space = {
      .struct_size = sizeof(tessera_space),
      .flags = TESSERA_SPACE_DEVICE_LOCAL | TESSERA_SPACE_HOST_VISIBLE | TESSERA_SPACE_DEFAULT,
      .name = "host",
      .capacity_bytes = static_cast<uint64_t>(usable_memory().value),
      .alignment_bytes = kAlignment,
      .max_slab_bytes = 0,
      .range_alignment_bytes = 1,
      .copy_alignment_bytes = 1};
  uint32_t capabilities = TESSERA_CAN_WRAP_HOST | TESSERA_CAN_RUN_HOST_CALLS |
                          TESSERA_CAN_TIMESTAMP | TESSERA_CAN_OUT_OF_ORDER;
  if (threads == 1) capabilities |= TESSERA_RUNS_ON_SUBMIT;
  return {.struct_size = sizeof(tessera_device_info),
          .capabilities = capabilities,
          .name = "CPU",
          .chip = "",
          .formats = kFormats,
          .format_count = std::size(kFormats),
          .space_count = 1,
          .spaces = &space,
          .space_bytes = sizeof(tessera_space),
          .compute_units = static_cast<uint32_t>(threads),
          .max_launch_ranges = 0,
          .max_constants_bytes = 0,
          .launch_overhead_ns = 500};
}

Device::Device(const Options& options)
    : pool_(options.threads),
      limit_bytes_(options.memory_limit_bytes != 0 ? options.memory_limit_bytes
                                                   : static_cast<uint64_t>(usable_memory().value)) {
}

tessera_memory Device::memory() const {
  const std::lock_guard lock(memory_mutex_);
  const bool bounded = limit_bytes_ != 0;
  return {.struct_size = sizeof(tessera_memory),
          .known = bounded ? 0x3fu : 0x3cu,
          .capacity_bytes = limit_bytes_,
          .free_bytes = bounded ? limit_bytes_ - slab_bytes_ : 0,
          .slab_bytes = slab_bytes_,
          .peak_slab_bytes = peak_bytes_,
          .slab_count = slab_count_,
          .wrapped_bytes = wrapped_bytes_.load()};
}

Status Device::reserve(uint64_t size_bytes) {
  const std::lock_guard lock(memory_mutex_);
  if (limit_bytes_ != 0 && size_bytes > limit_bytes_ - slab_bytes_)
    return error(
        Code::kResourceExhausted,
        "a slab of {} bytes does not fit: {} of {} bytes are in use by {} slabs of device cpu",
        size_bytes, slab_bytes_, limit_bytes_, slab_count_);
  slab_bytes_ += size_bytes;
  ++slab_count_;
  peak_bytes_ = std::max(peak_bytes_, slab_bytes_);
  return {};
}

void Device::release(uint64_t size_bytes) {
  const std::lock_guard lock(memory_mutex_);
  slab_bytes_ -= size_bytes;
  --slab_count_;
}

}  // namespace tessera::hal::cpu
