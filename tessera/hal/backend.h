// A loaded backend: its C table, completed so that every entry can be called; and the visible list
// of backends.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/tessera_plugin.h"

namespace tessera::hal {

class Device;

// Options of Device::open, such as {"threads", "4"}.
using Options = std::vector<std::pair<std::string, std::string>>;

// The plugin versions that a host takes.
struct AbiRange {
  uint32_t oldest = TESSERA_ABI_VERSION;
  uint32_t newest = TESSERA_ABI_VERSION;
};

// Outlives the devices opened from it.
class Backend {
 public:
  // Calls `entry`. kFailedPrecondition where the versions do not meet; else the plugin's own
  // reason.
  static Result<std::unique_ptr<Backend>> load(tessera_plugin_entry entry, AbiRange versions = {});
  // Opens a shared library and calls its tessera_plugin_main. kUnavailable where the library, or
  // one that it needs, cannot be loaded; kNotFound where it is no plugin.
  static Result<std::unique_ptr<Backend>> open(const std::string& path, AbiRange versions = {});
  // Takes a table made in this process, such as a wrapper's.
  static Result<std::unique_ptr<Backend>> adopt(const tessera_backend& table,
                                                AbiRange versions = {});
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  std::string_view name() const { return table_.name; }
  // Never null entries: missing ones answer TESSERA_UNIMPLEMENTED and name themselves.
  const tessera_backend& table() const { return table_; }
  // Whether the plugin itself supplies the entry, e.g. has(&tessera_backend::slab_wrap).
  template <class Entry>
  bool has(Entry tessera_backend::*entry) const {
    return supplied_.*entry != nullptr;
  }

  Result<uint32_t> device_count() const;

 private:
  Backend() = default;
  tessera_backend table_{};     // completed
  tessera_backend supplied_{};  // as it came, missing entries null
  void* library_ = nullptr;
};

// One row of the list of backends.
struct BackendRow {
  std::string name;
  tessera_plugin_entry entry = nullptr;  // compiled in,
  std::string path;                      // or a shared library
};

// "cpu", "opencl:1" -> {"cpu", 0}, {"opencl", 1}. "sim:h100_sxm", "sim:h100_sxm:1" name a chip, of
// which the backend has a device; the number then only tells devices apart.
struct DeviceName {
  std::string backend;
  uint32_t ordinal = 0;
  std::string chip = {};
};
Result<DeviceName> parse_device_name(std::string_view text);

// Loads the rows of a visible list, each when first asked for. Outlives what it loaded.
// Thread-safe.
class Registry {
 public:
  explicit Registry(std::vector<BackendRow> rows) : rows_(std::move(rows)) {}

  std::span<const BackendRow> rows() const { return rows_; }
  // kNotFound for a name that is not listed (the message lists those that are); else the reason why
  // it cannot load.
  Result<Backend*> find(std::string_view name);
  // "cpu", "cpu:0", "sim:h100_sxm", with its options. kNotFound: no device of that number or chip.
  Result<std::unique_ptr<Device>> open(std::string_view device, const Options& options = {});

 private:
  std::vector<BackendRow> rows_;
  std::mutex mutex_;
  std::map<std::string, Result<std::unique_ptr<Backend>>, std::less<>> loaded_;
};

}  // namespace tessera::hal
