// Any bytes as an executable of format elf: loaded or refused, never run.
#include <cstdint>

#include "tessera/hal/cpu/backend.h"
#include "tessera/hal/device.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static hal::Registry registry({{"cpu", hal::cpu::plugin_main, ""}});
  static const std::unique_ptr<hal::Device> device = *registry.open("cpu", {{"threads", "1"}});
  const std::vector<std::string> names = {"add", "trap"};
  const auto code = device->load("elf", {reinterpret_cast<const std::byte*>(data), size}, names);
  if (!code && code.error().message.empty()) __builtin_trap();
  return 0;
}
