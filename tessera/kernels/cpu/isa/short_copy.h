// Copies of a few floats, for which a call to memcpy would cost more than the copy.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "tessera/kernels/cpu/isa/vec.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

TESSERA_INLINE void copy_short(float* to, const float* from, int64_t count) {
#if defined(__AVX512F__)
  for (; count > 0; count -= kLanes, to += kLanes, from += kLanes) {
    const __mmask16 mask = static_cast<__mmask16>(count >= kLanes ? 0xffffu : (1u << count) - 1);
    _mm512_mask_storeu_ps(to, mask, _mm512_maskz_loadu_ps(mask, from));
  }
#else
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  for (; i < count; ++i) to[i] = from[i];
#endif
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
