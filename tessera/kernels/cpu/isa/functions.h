// The loops behind each Function: contiguous runs in a compute type.
#pragma once

#include "tessera/kernels/cpu/elementwise_args.h"
#include "tessera/kernels/cpu/isa/math.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// Null, or why the launch fails. `out` may be the same as an input only if it does not move
// elements.
using LoopFn = const char* (*)(int64_t count, const void* const* in, void* out,
                               const double* params);

// Null where the function is not defined for the type.
LoopFn loop_for(Function function, Compute compute);

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
