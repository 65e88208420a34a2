// MLIR, opened when it is first needed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/codegen/mlir/driver.h"
#include "tessera/codegen/mlir/target.h"

namespace tessera::codegen::mlir {

// The shared object with MLIR in it. It stays open until the process ends. Thread-safe.
class Compiler {
 public:
  // Opened once for all. kUnavailable: there is none, and where it has been looked for:
  // $TESSERA_MLIR_DRIVER; or beside the program or library that this code is in, in its folder
  // tessera, or where libraries are installed.
  static Result<const Compiler*> open();

  std::string version() const { return version_(); }
  // An executable of format "elf" with the entry kEntry, from what emit() writes. kInternal with
  // MLIR's words if it does not take the text.
  Result<std::vector<std::byte>> compile(std::string_view text, const Target& target) const;

 private:
  static Result<Compiler> open_driver();

  tessera_mlir_compile_fn compile_ = nullptr;
  tessera_mlir_version_fn version_ = nullptr;
};

}  // namespace tessera::codegen::mlir
