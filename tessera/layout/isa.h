// Instruction sets that the copy kernels are compiled for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::layout {

enum class Isa : uint8_t { kGeneric, kAvx2, kAvx512 };  // avx512: F and BW

std::string_view name_of(Isa isa);  // "generic", "avx2", "avx512"
// What processor and operating system support, slowest first.
std::vector<Isa> available_isas();
// The fastest available one, no faster than the environment variable TESSERA_ISA names (other
// values are ignored).
Isa best_isa();

}  // namespace tessera::layout
