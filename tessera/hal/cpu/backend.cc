#include "tessera/hal/cpu/backend.h"

#include "tessera/hal/backend_support.h"
#include "tessera/hal/cpu/device.h"

namespace tessera::hal::cpu {
namespace {

Device& device_of(tessera_device* d) { return static_cast<Device&>(object_of<HostDevice>(d)); }

Status check_ordinal(uint32_t ordinal) {
  if (ordinal != 0) return error(Code::kNotFound, "there is no device cpu:{}, only cpu:0", ordinal);
  return {};
}

int32_t device_count(void*, uint32_t* count, tessera_error*) {
  *count = 1;
  return TESSERA_OK;
}

int32_t device_info(void*, uint32_t ordinal, tessera_device_info* info, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(check_ordinal(ordinal));
    fill_out(info, describe(default_threads()));
    return {};
  });
}

int32_t device_open(void*, uint32_t ordinal, const tessera_option* options, uint32_t option_count,
                    tessera_device** device, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(check_ordinal(ordinal));
    TRY_ASSIGN(const Options parsed, parse_options(options, option_count));
    *device = handle_of<tessera_device>(static_cast<HostDevice*>(new Device(parsed)));
    return {};
  });
}

void device_close(tessera_device* d) { delete &device_of(d); }

int32_t device_properties(tessera_device* d, tessera_device_info* info, tessera_error*) {
  fill_out(info, device_of(d).info());
  return TESSERA_OK;
}

int32_t device_memory(tessera_device* d, uint32_t space, tessera_memory* memory, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    if (space != 0) return error(Code::kOutOfRange, "memory space {}, device cpu has 1", space);
    fill_out(memory, device_of(d).memory());
    return {};
  });
}

int32_t slab_allocate(tessera_device* d, uint32_t space, uint64_t size_bytes, tessera_slab** slab,
                      tessera_error* e) {
  return guarded(e, [&]() -> Status {
    if (space != 0) return error(Code::kOutOfRange, "memory space {}, device cpu has 1", space);
    TRY_ASSIGN(Slab* const s, allocate_slab(device_of(d), size_bytes));
    *slab = handle_of<tessera_slab>(s);
    return {};
  });
}

int32_t slab_wrap(tessera_device* d, void* host, uint64_t size_bytes, tessera_slab** slab,
                  tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(device_of(d).status());
    *slab = handle_of<tessera_slab>(wrap_slab(device_of(d), host, size_bytes));
    return {};
  });
}

void slab_free(tessera_slab* slab) { free_slab(&object_of<Slab>(slab)); }

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

// A queue and what runs its commands.
struct CpuQueue : Runner, HostQueue {
  CpuQueue(Device& device, uint32_t flags)
      : Runner(device), HostQueue(device, *this, flags, Deferred::kOwnThread) {}
};

int32_t queue_create(tessera_device* d, uint32_t flags, tessera_queue** queue, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(device_of(d).status());
    if (device_of(d).pool().threads() == 1) flags |= TESSERA_QUEUE_ON_SUBMIT;
    *queue = queue_handle(std::make_shared<CpuQueue>(device_of(d), flags));
    return {};
  });
}

tessera_backend make_table() {
  tessera_backend t = {};
  t.struct_size = sizeof t;
  t.abi_version = TESSERA_ABI_VERSION;
  t.name = "cpu";
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
  install_host_entries(t);
  return t;
}

}  // namespace

int32_t plugin_main(const tessera_host* host, const tessera_backend** backend, tessera_error* e) {
  static const tessera_backend table = make_table();
  return guarded(e, [&]() -> Status {
    TRY(choose_version(*host, TESSERA_ABI_VERSION, TESSERA_ABI_VERSION));
    *backend = &table;
    return {};
  });
}

}  // namespace tessera::hal::cpu
