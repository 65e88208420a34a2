// Conversion of short runs for the entries in isa/, which share no inline functions with the rest.
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/elementwise_args.h"

namespace tessera::kernels::cpu {

// `count` elements of a DType to and from a compute type (not a raw one), by the rules of base/element.h.
void convert_from(int32_t dtype, const void* from, Compute to, void* target, int64_t count);
void convert_to(Compute from, const void* source, int32_t dtype, void* target, int64_t count);

}  // namespace tessera::kernels::cpu
