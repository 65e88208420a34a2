// Entries of quantised numbers. Those that gain from dot products of 8-bit integers are compiled
// for more instruction sets than the others.
#pragma once

#include "tessera/tessera_plugin.h"

#define TESSERA_QUANTIZE_ENTRIES(X) \
  X(dequantize)                     \
  X(pool_bytes)                     \
  X(quantize)

#define TESSERA_INTEGER_ENTRIES(X) \
  X(integer_conv)                  \
  X(integer_depthwise)             \
  X(integer_dot)                   \
  X(integer_peak)

#define TESSERA_DECLARE_INTEGER(name) \
  void name(const tessera_launch* launch, uint32_t first, uint32_t count);

namespace tessera::kernels::cpu::generic {
TESSERA_QUANTIZE_ENTRIES(TESSERA_DECLARE_INTEGER)
TESSERA_INTEGER_ENTRIES(TESSERA_DECLARE_INTEGER)
}  // namespace tessera::kernels::cpu::generic
namespace tessera::kernels::cpu::neon {
TESSERA_QUANTIZE_ENTRIES(TESSERA_DECLARE_INTEGER)
TESSERA_INTEGER_ENTRIES(TESSERA_DECLARE_INTEGER)
}  // namespace tessera::kernels::cpu::neon
namespace tessera::kernels::cpu::avx2 {
TESSERA_QUANTIZE_ENTRIES(TESSERA_DECLARE_INTEGER)
TESSERA_INTEGER_ENTRIES(TESSERA_DECLARE_INTEGER)
}  // namespace tessera::kernels::cpu::avx2
namespace tessera::kernels::cpu::avx512 {
TESSERA_QUANTIZE_ENTRIES(TESSERA_DECLARE_INTEGER)
TESSERA_INTEGER_ENTRIES(TESSERA_DECLARE_INTEGER)
}  // namespace tessera::kernels::cpu::avx512
namespace tessera::kernels::cpu::avx512vnni {
TESSERA_INTEGER_ENTRIES(TESSERA_DECLARE_INTEGER)
}
namespace tessera::kernels::cpu::amx {
TESSERA_INTEGER_ENTRIES(TESSERA_DECLARE_INTEGER)
}
// Tiles in plain C++, in tests only.
namespace tessera::kernels::cpu::emulated {
TESSERA_INTEGER_ENTRIES(TESSERA_DECLARE_INTEGER)
}
