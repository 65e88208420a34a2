// Any text: programs that are read print what reads back, and verifying them ends.
#include <cstdlib>
#include <string_view>

#include "tessera/chip/catalog.h"
#include "tessera/tile/engine_chip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace engine = tessera::tile::engine;
  static const tessera::chip::Chip chip = *tessera::chip::Catalog().load("ascend910b2");
  const auto programs = engine::parse({reinterpret_cast<const char*>(data), size});
  if (!programs) return 0;
  for (const engine::Program& p : *programs) {
    const std::string text = print(p);
    const auto again = engine::parse(text);
    if (!again || print(again->front()) != text) std::abort();
    (void)engine::verify(p, chip);
  }
  return 0;
}
