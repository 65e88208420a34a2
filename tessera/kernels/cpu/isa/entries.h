// Entries compiled per instruction set, one line each; the name in the table is "cpu.<name>".
#pragma once

#include "tessera/tessera_plugin.h"

#define TESSERA_ISA_ENTRIES(X) \
  X(attention)                 \
  X(attention_few)             \
  X(attention_append)          \
  X(attention_join)            \
  X(attention_keys)            \
  X(gemm)                      \
  X(gemv)                      \
  X(pack_b)                    \
  X(dot_plain)                 \
  X(conv)                      \
  X(conv_first)                \
  X(conv_last)                 \
  X(conv_transpose)            \
  X(depthwise)                 \
  X(depthwise_last)            \
  X(fed_product)               \
  X(winograd)                  \
  X(winograd_in)               \
  X(resize)                    \
  X(rnn)                       \
  X(rnn_input)                 \
  X(rotary)                    \
  X(chain)                     \
  X(reduce)                    \
  X(pool)                      \
  X(pool_last)                 \
  X(softmax)                   \
  X(row_norm)                  \
  X(batch_norm)                \
  X(lrn)                       \
  X(peak)

#define TESSERA_DECLARE_ENTRY(name) \
  void name(const tessera_launch* launch, uint32_t first, uint32_t count);

namespace tessera::kernels::cpu::generic {
TESSERA_ISA_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::neon {
TESSERA_ISA_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::avx2 {
TESSERA_ISA_ENTRIES(TESSERA_DECLARE_ENTRY)
}
namespace tessera::kernels::cpu::avx512 {
TESSERA_ISA_ENTRIES(TESSERA_DECLARE_ENTRY)
}
