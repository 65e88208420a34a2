// min(max(a x + b, 0), c) / c -> hard_sigmoid(x; a/c, b/c)   max and min in either order
// x * hard_sigmoid(x; 1/6, 1/2) -> hard_swish(x)
//
// Must not fire where a value in between is read elsewhere, too; for a clip alone, which is as
// cheap; or, of hard_swish, where a number is off by more than its rounding.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void hard_swish(Rewriter& rewriter);

}  // namespace tessera::passes
