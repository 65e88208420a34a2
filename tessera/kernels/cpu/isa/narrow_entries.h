// Entries whose operands are narrower than f32, as isa/entries.h: compiled for avx512bf16 and
// amx too.
#pragma once

#include "tessera/tessera_plugin.h"

#define TESSERA_NARROW_ENTRIES(X) \
  X(gemm_bf16)                    \
  X(gemm_f16)                     \
  X(narrow_attention)             \
  X(narrow_conv)                  \
  X(narrow_keys)                  \
  X(narrow_peak)                  \
  X(narrow_pixels)                \
  X(narrow_rows)

#define TESSERA_DECLARE_ENTRY(name) \
  void name(const tessera_launch* launch, uint32_t first, uint32_t count);

namespace tessera::kernels::cpu::generic {
TESSERA_NARROW_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::neon {
TESSERA_NARROW_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::avx2 {
TESSERA_NARROW_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::avx512 {
TESSERA_NARROW_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::avx512bf16 {
TESSERA_NARROW_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::amx {
TESSERA_NARROW_ENTRIES(TESSERA_DECLARE_ENTRY)
}
// Tiles in plain C++, in tests only.
namespace tessera::kernels::cpu::emulated {
TESSERA_NARROW_ENTRIES(TESSERA_DECLARE_ENTRY)
}
