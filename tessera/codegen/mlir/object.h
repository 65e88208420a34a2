// From an object file to code that needs no linking.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "tessera/base/elf.h"

namespace tessera::codegen::mlir {

// Lays the sections with code and constants of an x86-64 object file side by side and resolves the
// distances between them. kUnimplemented: it needs a symbol from elsewhere or an absolute address;
// kInvalidArgument: no such file. Never reads outside of `object`.
Result<CodeImage> link(std::span<const std::byte> object, std::string_view entry);

}  // namespace tessera::codegen::mlir
