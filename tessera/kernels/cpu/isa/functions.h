// The loops behind each Function: contiguous runs in a compute type.
#pragma once

#include "tessera/kernels/cpu/elementwise_args.h"
#include "tessera/kernels/cpu/isa/math.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Null, or why the launch fails. Bit k of `uniform`: in[k] is one element for all. `out` may be the
// same as an input that is not, if their elements are of one size and the function is not kSelect.
using LoopFn = const char* (*)(int64_t count, const void* const* in, uint32_t uniform, void* out,
                               const double* params);

// Null where the function is not defined for the type.
LoopFn loop_for(Function function, Compute compute);

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
