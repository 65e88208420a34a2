// mean(x) over all spatial axes, kept as 1 -> global_average_pool(x)
//                                dropped   -> reshape(global_average_pool(x))
//
// x is (N, C, ...), of rank 3 or more. Must not fire for other axes, or where their sizes are
// unknown.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void mean_pool(Rewriter& rewriter);

}  // namespace tessera::passes
