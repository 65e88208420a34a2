#include "tessera/codegen/mlir/object.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto image = tessera::codegen::mlir::link({bytes, size}, "run");
  // What is accepted can be loaded.
  if (image && !tessera::read_elf(tessera::write_elf(*image))) __builtin_trap();
  return 0;
}
