// batch_norm(x, scale, bias, mean, var) -> x * f + (bias - mean * f), f = scale / sqrt(var +
// epsilon)
//
// as a product and a sum with constants, which `scale` and `bias` then fold into what comes before.
// Must not fire where the statistics are no constants, or f is not finite.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void batch_norm(Rewriter& rewriter);

}  // namespace tessera::passes
