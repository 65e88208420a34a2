// 1 / (1 + exp(-x))          -> sigmoid(x)
// x * sigmoid(a x)           -> silu(x; a)
// x * tanh(softplus(x))      -> mish(x)
//
// Products and sums in any order. Must not fire where a value in between is read elsewhere, too.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void sigmoid(Rewriter& rewriter);

}  // namespace tessera::passes
