#include "tessera/hal/sim/backend.h"

#include "tessera/chip/catalog.h"
#include "tessera/hal/backend_support.h"
#include "tessera/hal/sim/device.h"

namespace tessera::hal::sim {
namespace {

Device& device_of(tessera_device* d) { return static_cast<Device&>(object_of<HostDevice>(d)); }

constexpr const char* kFormats[] = {"engine"};

// A device that may be opened, and what the table tells of it.
struct Entry {
  explicit Entry(chip::Chip c) : chip(std::make_shared<const chip::Chip>(std::move(c))) {
    name = "Simulated " + chip->name;
    const chip::Memory& memory = chip->device_memory();
    space_name = engine::device_space(*chip);
    space = {
        .struct_size = sizeof(tessera_space),
        .flags = TESSERA_SPACE_DEVICE_LOCAL | TESSERA_SPACE_HOST_VISIBLE | TESSERA_SPACE_DEFAULT,
        .name = space_name.c_str(),
        .capacity_bytes = static_cast<uint64_t>(memory.capacity_bytes.value.value),
        .alignment_bytes = kSlabAlignment,
        .max_slab_bytes = 0,
        .range_alignment_bytes = kRangeAlignment,
        .copy_alignment_bytes = kCopyAlignment};
    int64_t cores = 0;
    for (const auto& [kind, core] : chip->cores) cores += core.count.value;
    info = {.struct_size = sizeof(tessera_device_info),
            .capabilities = TESSERA_CAN_WRAP_HOST | TESSERA_CAN_RUN_HOST_CALLS |
                            TESSERA_CAN_TIMESTAMP | TESSERA_CAN_OUT_OF_ORDER |
                            TESSERA_RUNS_ON_SUBMIT,
            .name = name.c_str(),
            .chip = chip->id.c_str(),
            .formats = kFormats,
            .format_count = std::size(kFormats),
            .space_count = 1,
            .spaces = &space,
            .space_bytes = sizeof(tessera_space),
            .compute_units = static_cast<uint32_t>(std::max<int64_t>(cores, 1)),
            .max_launch_ranges = 0,
            .max_constants_bytes = 0,
            .launch_overhead_ns = static_cast<uint64_t>(chip->launch.seconds.value.value * 1e9)};
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  std::shared_ptr<const chip::Chip> chip;
  std::string name, space_name;
  tessera_space space{};
  tessera_device_info info{};
};

struct Chips {
  std::vector<std::unique_ptr<Entry>> entries;
};

Result<const Entry*> entry_of(void* context, uint32_t ordinal) {
  const auto& entries = static_cast<const Chips*>(context)->entries;
  if (ordinal < entries.size()) return entries[ordinal].get();
  return error(Code::kNotFound, "there is no simulated device {}, there are {}", ordinal,
               entries.size());
}

// A device of the table: what was opened, with its entry.
struct Open : Device {
  Open(const Entry& e, const Options& options) : Device(e.chip, options), entry(e) {}
  const Entry& entry;
};
const Open& open_of(tessera_device* d) { return static_cast<const Open&>(device_of(d)); }

Status check_space(uint32_t space) {
  if (space == 0) return {};
  return error(Code::kOutOfRange, "memory space {}, a simulated device has 1", space);
}

int32_t device_count(void* context, uint32_t* count, tessera_error*) {
  *count = static_cast<uint32_t>(static_cast<const Chips*>(context)->entries.size());
  return TESSERA_OK;
}

int32_t device_info(void* context, uint32_t ordinal, tessera_device_info* info, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY_ASSIGN(const Entry* entry, entry_of(context, ordinal));
    fill_out(info, entry->info);
    return {};
  });
}

int32_t device_open(void* context, uint32_t ordinal, const tessera_option* options,
                    uint32_t option_count, tessera_device** device, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY_ASSIGN(const Entry* entry, entry_of(context, ordinal));
    TRY_ASSIGN(const Options parsed, parse_options(options, option_count));
    *device = handle_of<tessera_device>(static_cast<HostDevice*>(new Open(*entry, parsed)));
    return {};
  });
}

void device_close(tessera_device* d) { delete &device_of(d); }

int32_t device_properties(tessera_device* d, tessera_device_info* info, tessera_error*) {
  fill_out(info, open_of(d).entry.info);
  return TESSERA_OK;
}

int32_t device_clock(tessera_device* d, uint64_t* ns, tessera_error*) {
  *ns = device_of(d).now_ns();
  return TESSERA_OK;
}

int32_t device_memory(tessera_device* d, uint32_t space, tessera_memory* memory, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(check_space(space));
    fill_out(memory, device_of(d).memory());
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
    *slab = handle_of<tessera_slab>(wrap_slab(device_of(d), host, size_bytes).release());
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
    TRY_ASSIGN(std::unique_ptr<Executable> x, load_executable(device_of(d), *source));
    *executable = handle_of<tessera_executable>(x.release());
    return {};
  });
}

void executable_unload(tessera_executable* x) { delete &object_of<Executable>(x); }

struct SimQueue : Runner, HostQueue {
  SimQueue(Device& device, uint32_t flags)
      : Runner(device),
        HostQueue(device, *this, flags | TESSERA_QUEUE_ON_SUBMIT, Deferred::kSignaller) {}
};

int32_t queue_create(tessera_device* d, uint32_t flags, tessera_queue** queue, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(device_of(d).status());
    *queue = queue_handle(std::make_shared<SimQueue>(device_of(d), flags));
    return {};
  });
}

void unload(void* context) { delete static_cast<Chips*>(context); }

tessera_backend make_table(Chips* chips) {
  tessera_backend t = {};
  t.struct_size = sizeof t;
  t.abi_version = TESSERA_ABI_VERSION;
  t.name = "sim";
  t.context = chips;
  t.unload = unload;
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
  t.device_clock = device_clock;
  return t;
}

Result<std::unique_ptr<Chips>> catalog() {
  const chip::Catalog all = chip::Catalog::of_environment();
  TRY_ASSIGN(const std::vector<std::string> ids, all.ids());
  auto chips = std::make_unique<Chips>();
  for (const std::string& id : ids) {
    TRY_ASSIGN(chip::Chip c, all.load(id));
    chips->entries.push_back(std::make_unique<Entry>(std::move(c)));
  }
  return chips;
}

}  // namespace

int32_t plugin_main(const tessera_host* host, const tessera_backend** backend, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    TRY(choose_version(*host, TESSERA_ABI_VERSION, TESSERA_ABI_VERSION));
    TRY_ASSIGN(std::unique_ptr<Chips> chips, catalog());
    // The host copies the table, and frees the chips by `unload`.
    static thread_local tessera_backend table;
    table = make_table(chips.release());
    *backend = &table;
    return {};
  });
}

Result<std::unique_ptr<Backend>> load(std::vector<chip::Chip> chips) {
  auto list = std::make_unique<Chips>();
  for (chip::Chip& c : chips) list->entries.push_back(std::make_unique<Entry>(std::move(c)));
  return Backend::adopt(make_table(list.release()));
}

}  // namespace tessera::hal::sim
