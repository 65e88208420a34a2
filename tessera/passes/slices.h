// gather(x, i), i constant and rising by 1 -> slice(x), reshaped
// slice(transpose(x))                      -> transpose(slice(x))
// slice(reshape(x))                        -> reshape(slice(x))    the slice is one run of x's axis
// slice(concat(x, y...))                   -> x                    where it is just that
//
// so that what follows is a view of x. Must not fire for steps other than 1, or where sizes or
// bounds are unknown.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void slices(Rewriter& rewriter);

}  // namespace tessera::passes
