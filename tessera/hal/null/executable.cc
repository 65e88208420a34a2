#include <string_view>

#include "tessera/hal/null/device.h"

namespace tessera::hal::null {

// A driver hands source.bytes to its loader and looks each entry up by name.
Result<std::unique_ptr<Executable>> load_executable(const tessera_executable_source& source) {
  if (std::string_view(source.format) != "host_fn")
    return error(Code::kUnimplemented,
                 "device null takes executables of format 'host_fn', not '{}'", source.format);
  auto result = std::make_unique<Executable>();
  for (uint32_t i = 0; i < source.entry_count; ++i) {
    if (source.entries[i].host_fn == nullptr)
      return error(Code::kInvalidArgument, "entry {} of a host_fn executable has no function", i);
    result->entries.push_back(source.entries[i].host_fn);
  }
  return result;
}

}  // namespace tessera::hal::null
