// Element-wise problems, fused or not, as programs over blocks.
#pragma once

#include "tessera/kernels/cpu/claims.h"

namespace tessera::kernels::cpu {

// The rows of all element-wise operators have these. Operands may be row-major, channels-last or
// strided, steps of any element-wise operator may follow, and several values may be outputs if they
// have the shape of the whole.
Claim probe_chain(const Problem& p);
Result<std::vector<LaunchSpec>> prepare_chain(const Problem& p, const Claim& claim);

}  // namespace tessera::kernels::cpu
