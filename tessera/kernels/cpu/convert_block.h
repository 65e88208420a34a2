// Conversion of runs of elements, by the rules of base/element.h; pairs of common types have loops
// of their own.
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/elementwise_args.h"

namespace tessera::kernels::cpu {

// `count` elements of one DType to another. Floats are rounded to nearest even.
void convert_run(int32_t from, const void* source, int32_t to, void* target, int64_t count);

// The same from and to a compute type (not a raw one): for the entries in isa/, which share no
// inline functions with us.
void convert_from(int32_t dtype, const void* source, Compute to, void* target, int64_t count);
void convert_to(Compute from, const void* source, int32_t dtype, void* target, int64_t count);

}  // namespace tessera::kernels::cpu
