#include "tessera/hal/backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "tessera/hal/device.h"
#include "tessera/hal/failure.h"

namespace tessera::hal {
namespace {

// What fills a missing entry: says which one is missing, or does nothing if there is nothing to say
// it with.
template <class Entry, size_t Offset>
struct Missing;

const char* name_of_entry(size_t offset);

template <class... Args, size_t Offset>
struct Missing<int32_t (*)(Args...), Offset> {
  static int32_t call(Args... args) {
    tessera_error* e = nullptr;
    ((e = as_error(args)), ...);
    return to_c(Error{Code::kUnimplemented,
                      std::string("the backend has no '") + name_of_entry(Offset) + "'"},
                e);
  }
  static tessera_error* as_error(tessera_error* e) { return e; }
  template <class T>
  static tessera_error* as_error(T) {
    return nullptr;
  }
};

template <class... Args, size_t Offset>
struct Missing<void (*)(Args...), Offset> {
  static void call(Args...) {}
};

template <class Object, class... Args, size_t Offset>
struct Missing<const Object* (*)(Args...), Offset> {
  static const Object* call(Args...) { return nullptr; }
};

struct EntryRow {
  size_t offset;
  const char* name;
  void (*complete)(tessera_backend& table);
};

#define TESSERA_ENTRY(entry)                                                          \
  EntryRow {                                                                          \
    offsetof(tessera_backend, entry), #entry, [](tessera_backend& t) {                \
      if (t.entry == nullptr)                                                         \
        t.entry = Missing<decltype(t.entry), offsetof(tessera_backend, entry)>::call; \
    }                                                                                 \
  }
constexpr EntryRow kEntries[] = {
    TESSERA_ENTRY(unload),          TESSERA_ENTRY(device_count),
    TESSERA_ENTRY(device_info),     TESSERA_ENTRY(device_open),
    TESSERA_ENTRY(device_close),    TESSERA_ENTRY(device_properties),
    TESSERA_ENTRY(device_status),   TESSERA_ENTRY(device_lose),
    TESSERA_ENTRY(device_clock),    TESSERA_ENTRY(device_memory),
    TESSERA_ENTRY(slab_allocate),   TESSERA_ENTRY(slab_wrap),
    TESSERA_ENTRY(slab_free),       TESSERA_ENTRY(slab_info),
    TESSERA_ENTRY(timeline_create), TESSERA_ENTRY(timeline_destroy),
    TESSERA_ENTRY(timeline_query),  TESSERA_ENTRY(timeline_failure),
    TESSERA_ENTRY(timeline_signal), TESSERA_ENTRY(timeline_fail),
    TESSERA_ENTRY(timeline_wait),   TESSERA_ENTRY(timeline_notify),
    TESSERA_ENTRY(executable_load), TESSERA_ENTRY(executable_unload),
    TESSERA_ENTRY(queue_create),    TESSERA_ENTRY(queue_destroy),
    TESSERA_ENTRY(queue_submit),    TESSERA_ENTRY(queue_recover),
};
#undef TESSERA_ENTRY
static_assert(offsetof(tessera_backend, unload) + std::size(kEntries) * sizeof(void*) ==
                  sizeof(tessera_backend),
              "every entry has a row");

const char* name_of_entry(size_t offset) {
  return std::ranges::find(kEntries, offset, &EntryRow::offset)->name;
}

Status check_table(const tessera_backend* t, AbiRange versions) {
  if (t == nullptr) return error(Code::kInternal, "the plugin gave no table");
  if (t->struct_size < offsetof(tessera_backend, unload))
    return error(Code::kFailedPrecondition, "the plugin's table has {} bytes, need at least {}",
                 t->struct_size, offsetof(tessera_backend, unload));
  if (t->abi_version < versions.oldest || t->abi_version > versions.newest)
    return error(Code::kFailedPrecondition, "the plugin has version {}, this host takes {} to {}",
                 t->abi_version, versions.oldest, versions.newest);
  if (t->name == nullptr || *t->name == '\0')
    return error(Code::kFailedPrecondition, "the plugin's table has no name");
  return {};
}

}  // namespace

Result<std::unique_ptr<Backend>> Backend::adopt(const tessera_backend& table, AbiRange versions) {
  TRY(check_table(&table, versions));
  std::unique_ptr<Backend> b(new Backend);
  std::memcpy(&b->supplied_, &table, std::min<size_t>(table.struct_size, sizeof table));
  b->supplied_.struct_size = sizeof(tessera_backend);
  b->table_ = b->supplied_;
  for (const EntryRow& row : kEntries) row.complete(b->table_);
  return b;
}

Result<std::unique_ptr<Backend>> Backend::load(tessera_plugin_entry entry, AbiRange versions) {
  const tessera_host host = {.struct_size = sizeof host,
                             .abi_oldest = versions.oldest,
                             .abi_newest = versions.newest,
                             .reserved = 0};
  const tessera_backend* table = nullptr;
  ErrorSlot e;
  TRY(status_from_c(entry(&host, &table, &e), e));
  if (table == nullptr) return error(Code::kInternal, "the plugin gave no table");
  return adopt(*table, versions);
}

Result<std::unique_ptr<Backend>> Backend::open(const std::string& path, AbiRange versions) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return error(Code::kUnavailable, "cannot load plugin: {}", dlerror());
  const auto entry = reinterpret_cast<tessera_plugin_entry>(dlsym(library, TESSERA_PLUGIN_SYMBOL));
  auto result = entry != nullptr ? load(entry, versions)
                                 : error(Code::kNotFound, "'{}' is no plugin: it exports no {}",
                                         path, TESSERA_PLUGIN_SYMBOL);
  if (result) {
    (*result)->library_ = library;
  } else {
    dlclose(library);
    result.error().message += "; plugin '" + path + "'";
  }
  return result;
}

Backend::~Backend() {
  table_.unload(table_.context);
  if (library_ != nullptr) dlclose(library_);
}

Result<uint32_t> Backend::device_count() const {
  uint32_t count = 0;
  ErrorSlot e;
  TRY(status_from_c(table_.device_count(table_.context, &count, &e), e));
  return count;
}

Result<DeviceName> parse_device_name(std::string_view text) {
  const size_t colon = text.find(':');
  DeviceName name{std::string(text.substr(0, colon)), 0, {}};
  bool ok = !name.backend.empty();
  if (colon != std::string_view::npos) {
    std::string_view digits = text.substr(colon + 1);
    if (!digits.empty() && std::isalpha(static_cast<unsigned char>(digits[0]))) {
      const size_t second = digits.find(':');
      name.chip = digits.substr(0, second);
      digits = second == digits.npos ? "0" : digits.substr(second + 1);
    }
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), name.ordinal);
    ok = ok && problem == std::errc() && end == digits.data() + digits.size();
  }
  if (!ok)
    return error(Code::kInvalidArgument,
                 "device '{}' is not of the form backend[:number] or backend:chip[:number]", text);
  return name;
}

Result<Backend*> Registry::find(std::string_view name) {
  const auto row = std::ranges::find(rows_, name, &BackendRow::name);
  if (row == rows_.end()) {
    std::string known;
    for (const BackendRow& r : rows_) known += (known.empty() ? "" : ", ") + r.name;
    return error(Code::kNotFound, "there is no backend '{}'; there are: {}", name, known);
  }
  const std::lock_guard lock(mutex_);
  auto loaded = loaded_.find(name);
  if (loaded == loaded_.end())
    loaded =
        loaded_
            .emplace(row->name, row->entry ? Backend::load(row->entry) : Backend::open(row->path))
            .first;
  if (!loaded->second) return error(loaded->second.error());
  return loaded->second->get();
}

Result<std::unique_ptr<Device>> Registry::open(std::string_view device, const Options& options) {
  TRY_ASSIGN(const DeviceName name, parse_device_name(device));
  TRY_ASSIGN(Backend* const backend, find(name.backend));
  if (name.chip.empty()) return Device::open(*backend, name.ordinal, options);
  TRY_ASSIGN(const uint32_t count, backend->device_count());
  for (uint32_t n = 0; n < count; ++n)
    if (const auto info = describe_device(*backend, n); info && info->chip == name.chip)
      return Device::open(*backend, n, options);
  return error(Code::kNotFound, "backend '{}' has no device of chip '{}'", name.backend, name.chip);
}

}  // namespace tessera::hal
