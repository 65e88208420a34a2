// x/2 (1 + erf(x / sqrt 2))                              -> gelu(x)
// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))          -> gelu(x; tanh)
//
// whatever the order of products and sums, the powers written in any way. Must not fire where a
// value in between is read elsewhere, too, or a number is off by more than its rounding.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void gelu(Rewriter& rewriter);

}  // namespace tessera::passes
