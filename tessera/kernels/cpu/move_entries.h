// Entries that move elements: compiled once, since they compute nothing.
#pragma once

#include "tessera/tessera_plugin.h"

namespace tessera::kernels::cpu {

void copy(const tessera_launch* launch, uint32_t first, uint32_t count);
void pad(const tessera_launch* launch, uint32_t first, uint32_t count);
void store(const tessera_launch* launch, uint32_t first, uint32_t count);
void convert(const tessera_launch* launch, uint32_t first, uint32_t count);

}  // namespace tessera::kernels::cpu
