// Instruction sets that the kernels are compiled for.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tessera::kernels::cpu {

// generic: what every processor of the architecture has; neon: the same for the 32 registers of
// aarch64; avx2: with FMA and F16C; avx512: F, BW, DQ, VL; avx512vnni: those and VNNI; avx512bf16:
// those and BF16; amx: those and tiles of 8-bit integers and of bf16. Of the last three, only the
// kernels that gain are others.
enum class Isa { kGeneric, kNeon, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

std::string_view name_of(Isa isa);  // "generic", "neon", "avx2", "avx512", ...
// Nothing for those of other architectures.
std::optional<Isa> isa_from_name(std::string_view name);

// What processor and operating system support, slowest first.
std::vector<Isa> available_isas();
// The fastest available one, no faster than the environment variable TESSERA_ISA names (other
// values are ignored).
Isa best_isa();

}  // namespace tessera::kernels::cpu
