// max(x, 0), max(0, x) -> relu(x)
// relu(relu(x))        -> relu(x)
//
// Must not fire where the zeros have another shape than x.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void relu(Rewriter& rewriter);

}  // namespace tessera::passes
