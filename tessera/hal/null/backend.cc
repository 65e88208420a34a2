#include "tessera/hal/null/backend.h"

#include "tessera/hal/backend_support.h"
#include "tessera/hal/null/device.h"

namespace tessera::hal::null {
namespace {

// A handle of the table is the address of our object. Queues and timelines are those of
// hal/host_queue.h.
Device& device_of(tessera_device* d) { return static_cast<Device&>(object_of<HostDevice>(d)); }

constexpr tessera_space kSpaces[] = {
    {.struct_size = sizeof(tessera_space),
     .flags = TESSERA_SPACE_DEVICE_LOCAL | TESSERA_SPACE_HOST_VISIBLE | TESSERA_SPACE_DEFAULT,
     .name = "host",
     .capacity_bytes = 0,
     .alignment_bytes = kSlabAlignment,
     .max_slab_bytes = 0,
     .range_alignment_bytes = kRangeAlignment,
     .copy_alignment_bytes = kCopyAlignment}};
constexpr const char* kFormats[] = {"host_fn"};

// A driver asks the hardware. Only what is true may be claimed: hal/conformance tries it.
constexpr tessera_device_info kInfo = {
    .struct_size = sizeof(tessera_device_info),
    .capabilities = TESSERA_CAN_WRAP_HOST | TESSERA_CAN_RUN_HOST_CALLS | TESSERA_CAN_TIMESTAMP |
                    TESSERA_CAN_OUT_OF_ORDER | TESSERA_RUNS_ON_SUBMIT,
    .name = "Null device",
    .chip = "",
    .formats = kFormats,
    .format_count = std::size(kFormats),
    .space_count = std::size(kSpaces),
    .spaces = kSpaces,
    .space_bytes = sizeof(tessera_space),
    .compute_units = 1,
    .max_launch_ranges = 0,
    .max_constants_bytes = 0,
    .launch_overhead_ns = 0};

Status check_ordinal(uint32_t ordinal) {
  if (ordinal == 0) return {};
  return error(Code::kNotFound, "there is no device null:{}, only null:0", ordinal);
}

Status check_space(uint32_t space) {
  if (space < std::size(kSpaces)) return {};
  return error(Code::kOutOfRange, "memory space {}, device null has {}", space, std::size(kSpaces));
}

int32_t device_count(void*, uint32_t* count, tessera_error*) {
  *count = 1;
  return TESSERA_OK;
}

int32_t device_info(void*, uint32_t ordinal, tessera_device_info* info, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(check_ordinal(ordinal));
    fill_out(info, kInfo);
    return {};
  });
}

int32_t device_open(void*, uint32_t ordinal, const tessera_option* options, uint32_t option_count,
                    tessera_device** device, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(check_ordinal(ordinal));
    if (option_count > 0)
      return error(Code::kInvalidArgument, "device null has no option '{}', nor any other",
                   options[0].key);
    *device = handle_of<tessera_device>(static_cast<HostDevice*>(new Device));
    return {};
  });
}

void device_close(tessera_device* d) { delete &device_of(d); }

int32_t device_properties(tessera_device*, tessera_device_info* info, tessera_error*) {
  fill_out(info, kInfo);
  return TESSERA_OK;
}

int32_t device_memory(tessera_device* d, uint32_t space, tessera_memory* memory, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(check_space(space));
    const Device& device = device_of(d);
    fill_out(memory, {.struct_size = sizeof(tessera_memory),
                      .known = 0x3c,  // all but capacity and free bytes
                      .capacity_bytes = 0,
                      .free_bytes = 0,
                      .slab_bytes = device.slab_bytes,
                      .peak_slab_bytes = device.peak_slab_bytes,
                      .slab_count = device.slab_count,
                      .wrapped_bytes = device.wrapped_bytes});
    return {};
  });
}

int32_t slab_allocate(tessera_device* d, uint32_t space, uint64_t size_bytes, tessera_slab** slab,
                      tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(device_of(d).status());
    TRY(check_space(space));
    TRY_ASSIGN(std::unique_ptr<Slab> s, allocate_slab(device_of(d), size_bytes));
    *slab = handle_of<tessera_slab>(s.release());
    return {};
  });
}

int32_t slab_wrap(tessera_device* d, void* host, uint64_t size_bytes, tessera_slab** slab,
                  tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(device_of(d).status());
    TRY_ASSIGN(std::unique_ptr<Slab> s, wrap_slab(device_of(d), host, size_bytes));
    *slab = handle_of<tessera_slab>(s.release());
    return {};
  });
}

void slab_free(tessera_slab* slab) { free_slab(std::unique_ptr<Slab>(&object_of<Slab>(slab))); }

int32_t slab_info(tessera_slab* slab, tessera_slab_info* info, tessera_error*) {
  const Slab& s = object_of<Slab>(slab);
  fill_out(info, {.struct_size = sizeof(tessera_slab_info),
                  .space = 0,
                  .size_bytes = s.size_bytes,
                  .host = s.base});
  return TESSERA_OK;
}

int32_t executable_load(tessera_device* d, const tessera_executable_source* source,
                        tessera_executable** executable, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(device_of(d).status());
    TRY_ASSIGN(std::unique_ptr<Executable> x, load_executable(*source));
    *executable = handle_of<tessera_executable>(x.release());
    return {};
  });
}

void executable_unload(tessera_executable* x) { delete &object_of<Executable>(x); }

// A queue and what runs its commands. Work that can run at once runs inside submit; work that waits
// runs on the thread that signals (a driver that blocks for long says Deferred::kOwnThread).
struct NullQueue : Runner, HostQueue {
  NullQueue(Device& device, uint32_t flags)
      : HostQueue(device, *this, flags | TESSERA_QUEUE_ON_SUBMIT, Deferred::kSignaller) {}
};

int32_t queue_create(tessera_device* d, uint32_t flags, tessera_queue** queue, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(device_of(d).status());
    *queue = queue_handle(std::make_shared<NullQueue>(device_of(d), flags));
    return {};
  });
}

tessera_backend make_table() {
  tessera_backend t = {};  // what is left null answers "unimplemented"
  t.struct_size = sizeof t;
  t.abi_version = TESSERA_ABI_VERSION;
  t.name = "null";
  t.device_count = device_count;
  t.device_info = device_info;
  t.device_open = device_open;
  t.device_close = device_close;
  t.device_properties = device_properties;
  t.device_memory = device_memory;
  t.slab_allocate = slab_allocate;
  t.slab_wrap = slab_wrap;
  t.slab_free = slab_free;
  t.slab_info = slab_info;
  t.executable_load = executable_load;
  t.executable_unload = executable_unload;
  t.queue_create = queue_create;
  install_host_entries(t);  // device_status, device_lose, device_clock, timeline_*, queue_*
  return t;
}

}  // namespace

// A driver that cannot find its library or device answers kUnavailable here, with the reason.
int32_t plugin_main(const tessera_host* host, const tessera_backend** backend, tessera_error* e) {
  static const tessera_backend table = make_table();
  return guarded(e, [&]() -> Status {
    TRY(choose_version(*host, TESSERA_ABI_VERSION, TESSERA_ABI_VERSION));
    *backend = &table;
    return {};
  });
}

}  // namespace tessera::hal::null
