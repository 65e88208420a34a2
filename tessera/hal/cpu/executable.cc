#include <string_view>

#include "tessera/hal/cpu/device.h"

namespace tessera::hal::cpu {

Result<std::unique_ptr<Executable>> load_executable(const tessera_executable_source& source) {
  const std::string_view format = source.format;
  if (format == "elf")
    return error(Code::kUnimplemented,
                 "device cpu does not load format 'elf' in this build; it takes 'host_fn'");
  if (format != "host_fn")
    return error(Code::kUnimplemented,
                 "device cpu does not take executables of format '{}'; it takes 'host_fn'", format);
  auto result = std::make_unique<Executable>();
  for (uint32_t i = 0; i < source.entry_count; ++i) {
    if (source.entries[i].host_fn == nullptr)
      return error(Code::kInvalidArgument,
                   "entry {} ('{}') of a host_fn executable has no function", i,
                   source.entries[i].name ? source.entries[i].name : "");
    result->entries.push_back(source.entries[i].host_fn);
  }
  return result;
}

}  // namespace tessera::hal::cpu
