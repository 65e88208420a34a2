// Recurrent weights in panels: see rnn_args.h.
#pragma once

#include "tessera/kernels/cpu/rnn_args.h"
#include "tessera/tessera_plugin.h"

namespace tessera::kernels::cpu {

void pack_rnn(const RnnPackArgs& args, const float* weights, float* packed);

// Ranges: weights, packed. Work item = (direction, panel).
void rnn_pack(const tessera_launch* launch, uint32_t first, uint32_t count);

}  // namespace tessera::kernels::cpu
