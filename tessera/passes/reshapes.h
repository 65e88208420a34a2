// squeeze(x), unsqueeze(x), reshape(reshape(x)) -> reshape(x)
// transpose(x), moving axes of size 1 only      -> reshape(x)
// reshape(transpose(x)), adding or dropping axes of size 1 only -> transpose(reshape(x))
// reshape(f(reshape(x)))                        -> f(reshape(x))
//
// f is a chain of element-wise operators with constants, of products with weights and of
// normalisations, none of which sees the axes that the outer reshape changes. Must not fire where
// open sizes leave no constant shape; for f, where a value in between is read elsewhere, too, or
// nothing is won: the inner reshape does not vanish, and no element-wise operator follows.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void reshapes(Rewriter& rewriter);

}  // namespace tessera::passes
