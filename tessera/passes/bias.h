// conv(x, w, b) + c -> conv(x, w, b + c)    also conv_transpose; b may be absent; c one number per
//                                           channel
// (y + b) + c       -> y + (b + c)
// y - c             -> y + (-c)
//
// b and c are constants of floats. Must not fire where the inner sum is read elsewhere, too.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void bias(Rewriter& rewriter);

}  // namespace tessera::passes
