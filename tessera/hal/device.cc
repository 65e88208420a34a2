#include "tessera/hal/device.h"

#include <algorithm>
#include <utility>

#include "tessera/hal/failure.h"

namespace tessera::hal {
namespace {

std::string text(const char* s) { return s == nullptr ? "" : s; }

Result<DeviceInfo> info_from_c(const tessera_device_info& c) {
  DeviceInfo info{.name = text(c.name),
                  .chip = text(c.chip),
                  .formats = {},
                  .spaces = {},
                  .default_space = 0,
                  .capabilities = c.capabilities,
                  .compute_units = c.compute_units,
                  .max_launch_ranges = c.max_launch_ranges,
                  .max_constants_bytes = c.max_constants_bytes,
                  .launch_overhead_ns = c.launch_overhead_ns,
                  .range_alignment_bytes = 1,
                  .copy_alignment_bytes = 1};
  for (uint32_t i = 0; i < c.format_count; ++i) info.formats.push_back(text(c.formats[i]));
  for (uint32_t i = 0; i < c.space_count; ++i) {
    const auto* at = reinterpret_cast<const std::byte*>(c.spaces) + size_t{i} * c.space_bytes;
    const auto& s = *reinterpret_cast<const tessera_space*>(at);
    const auto bytes = [](uint64_t n) { return Bytes(static_cast<int64_t>(n)); };
    info.spaces.push_back({text(s.name), s.flags, bytes(s.capacity_bytes),
                           bytes(std::max<uint64_t>(s.alignment_bytes, 1)),
                           bytes(s.max_slab_bytes)});
    info.range_alignment_bytes = std::max(info.range_alignment_bytes, s.range_alignment_bytes);
    info.copy_alignment_bytes = std::max(info.copy_alignment_bytes, s.copy_alignment_bytes);
    if ((s.flags & TESSERA_SPACE_DEFAULT) != 0) info.default_space = i;
  }
  if (info.spaces.empty()) return error(Code::kInternal, "the backend describes no memory space");
  return info;
}

}  // namespace

Result<DeviceInfo> describe_device(const Backend& backend, uint32_t ordinal) {
  tessera_device_info c = {};
  c.struct_size = sizeof c;
  ErrorSlot e;
  const tessera_backend& t = backend.table();
  TRY(status_from_c(t.device_info(t.context, ordinal, &c, &e), e));
  return info_from_c(c);
}

Device::Device(const Backend& backend, uint32_t ordinal)
    : name_(fmt::format("{}:{}", backend.name(), ordinal)), table_(&backend.table()) {}

Result<std::unique_ptr<Device>> Device::open(Backend& backend, uint32_t ordinal,
                                             const Options& options) {
  std::unique_ptr<Device> device(new Device(backend, ordinal));
  std::vector<tessera_option> c_options;
  for (const auto& [key, value] : options) c_options.push_back({key.c_str(), value.c_str()});
  ErrorSlot e;
  const tessera_backend& t = backend.table();
  TRY(status_from_c(t.device_open(t.context, ordinal, c_options.data(),
                                  static_cast<uint32_t>(c_options.size()), &device->handle_, &e),
                    e));
  tessera_device_info c = {};
  c.struct_size = sizeof c;
  TRY(status_from_c(t.device_properties(device->handle_, &c, &e), e));
  TRY_ASSIGN(device->info_, info_from_c(c));
  return device;
}

Device::~Device() {
  if (handle_ != nullptr) table_->device_close(handle_);
}

Status Device::status() const {
  ErrorSlot e;
  return status_from_c(table_->device_status(handle_, &e), e);
}

Status Device::lose(const Failure& cause) {
  const tessera_failure f = view(cause);
  ErrorSlot e;
  return status_from_c(table_->device_lose(handle_, &f, &e), e);
}

Result<uint64_t> Device::clock_ns() const {
  uint64_t ns = 0;
  ErrorSlot e;
  TRY(status_from_c(table_->device_clock(handle_, &ns, &e), e));
  return ns;
}

Result<tessera_memory> Device::memory(uint32_t space) const {
  tessera_memory m = {};
  m.struct_size = sizeof m;
  ErrorSlot e;
  TRY(status_from_c(table_->device_memory(handle_, space, &m, &e), e));
  return m;
}

Result<Buffer> Device::buffer(tessera_slab* slab) {
  Buffer b;
  b.table_ = table_;
  b.slice_.slab = slab;
  tessera_slab_info info = {};
  info.struct_size = sizeof info;
  ErrorSlot e;
  TRY(status_from_c(table_->slab_info(slab, &info, &e), e));
  b.slice_.size_bytes = info.size_bytes;
  b.host_ = static_cast<std::byte*>(info.host);
  return b;
}

Result<Buffer> Device::allocate(Bytes size, uint32_t space) {
  if (space >= info_.spaces.size())
    return error(Code::kOutOfRange, "memory space {} of device {}, which has {}", space, name_,
                 info_.spaces.size());
  if (size.value < 0) return error(Code::kInvalidArgument, "a buffer of {} bytes", size.value);
  const Bytes max = info_.spaces[space].max_slab;
  if (max.value > 0 && size > max)
    return error(Code::kResourceExhausted,
                 "a buffer of {} bytes on device {}, whose slabs have at most {}", size.value,
                 name_, max.value);
  tessera_slab* slab = nullptr;
  ErrorSlot e;
  TRY(status_from_c(
      table_->slab_allocate(handle_, space, static_cast<uint64_t>(std::max<int64_t>(size.value, 1)),
                            &slab, &e),
      e));
  TRY_ASSIGN(Buffer b, buffer(slab));
  b.slice_.size_bytes = static_cast<uint64_t>(size.value);
  return b;
}

Result<Buffer> Device::wrap(void* host, Bytes size) {
  if (host == nullptr || size.value <= 0)
    return error(Code::kInvalidArgument, "cannot wrap {} bytes at {}", size.value, host);
  tessera_slab* slab = nullptr;
  ErrorSlot e;
  TRY(status_from_c(table_->slab_wrap(handle_, host, static_cast<uint64_t>(size.value), &slab, &e),
                    e));
  return buffer(slab);
}

Result<Timeline> Device::timeline(uint64_t initial) {
  tessera_timeline* t = nullptr;
  ErrorSlot e;
  TRY(status_from_c(table_->timeline_create(handle_, initial, &t, &e), e));
  return Timeline(this, table_, t);
}

Result<Queue> Device::queue(const QueueOptions& options) {
  if (options.out_of_order && !info_.can(TESSERA_CAN_OUT_OF_ORDER))
    return error(Code::kUnimplemented, "device {} has no out-of-order queues", name_);
  uint32_t flags = options.out_of_order ? TESSERA_QUEUE_OUT_OF_ORDER : 0;
  if (options.run_on_submit) flags |= TESSERA_QUEUE_ON_SUBMIT;
  tessera_queue* q = nullptr;
  ErrorSlot e;
  TRY(status_from_c(table_->queue_create(handle_, flags, &q, &e), e));
  return Queue(this, table_, q);
}

Result<Executable> Device::load(const tessera_executable_source& source) {
  tessera_executable* x = nullptr;
  ErrorSlot e;
  TRY(status_from_c(table_->executable_load(handle_, &source, &x, &e), e));
  return Executable(table_, x, source.entry_count);
}

Result<Executable> Device::load(std::span<const HostFunction> functions) {
  std::vector<tessera_entry_source> entries;
  for (const HostFunction& f : functions) entries.push_back({f.name, f.function});
  return load({.struct_size = sizeof(tessera_executable_source),
               .entry_count = static_cast<uint32_t>(entries.size()),
               .format = "host_fn",
               .bytes = nullptr,
               .size_bytes = 0,
               .entries = entries.data()});
}

Result<Executable> Device::load(const std::string& format, std::span<const std::byte> bytes,
                                std::span<const std::string> names) {
  std::vector<tessera_entry_source> entries;
  for (const std::string& n : names) entries.push_back({n.c_str(), nullptr});
  return load({.struct_size = sizeof(tessera_executable_source),
               .entry_count = static_cast<uint32_t>(entries.size()),
               .format = format.c_str(),
               .bytes = bytes.data(),
               .size_bytes = bytes.size(),
               .entries = entries.data()});
}

}  // namespace tessera::hal
