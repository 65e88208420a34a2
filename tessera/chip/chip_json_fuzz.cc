// What reads as a chip prints to JSON that reads back the same, and its figures can be computed.
#include <cstdlib>

#include "tessera/chip/catalog.h"
#include "tessera/chip/figures.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const auto find = [](std::string_view id) -> Result<chip::Source> {
    for (const chip::BuiltIn& file : chip::built_in())
      if (file.id == id) return chip::Source{std::string(id), std::string(file.text)};
    return error(Code::kNotFound, "no chip '{}'", id);
  };
  const auto chip =
      chip::read_chip({"input", {reinterpret_cast<const char*>(data), size}}, "input", find);
  if (!chip) return 0;
  const std::string json = chip::to_json(*chip);
  const auto again = chip::read_chip({"again", json}, "input", find);
  if (!again || chip::to_json(*again) != json) std::abort();
  static_cast<void>(chip::peaks(*chip));
  static_cast<void>(chip::occupancy(*chip, {128, 32, Bytes(1024)}));
  return 0;
}
