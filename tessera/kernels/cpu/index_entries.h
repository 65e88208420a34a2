// Entries whose places are data.
#pragma once

#include "tessera/tessera_plugin.h"

namespace tessera::kernels::cpu {

void gather(const tessera_launch* launch, uint32_t first, uint32_t count);
void gather_elements(const tessera_launch* launch, uint32_t first, uint32_t count);
void gather_nd(const tessera_launch* launch, uint32_t first, uint32_t count);
void scatter_elements(const tessera_launch* launch, uint32_t first, uint32_t count);
void scatter_nd(const tessera_launch* launch, uint32_t first, uint32_t count);
void arg_extreme(const tessera_launch* launch, uint32_t first, uint32_t count);
void cumulative(const tessera_launch* launch, uint32_t first, uint32_t count);
void top_k(const tessera_launch* launch, uint32_t first, uint32_t count);
void range(const tessera_launch* launch, uint32_t first, uint32_t count);

}  // namespace tessera::kernels::cpu
