// e / sum(e), e = exp(x - max(x))      -> softmax(x)        over one axis, max and sum kept as 1
// d - log(sum(exp(d))), d = x - max(x) -> log_softmax(x)
//
// Must not fire where a value in between is read elsewhere, too. exp(x) / sum(exp(x)) stays: it
// overflows where softmax does not.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void softmax(Rewriter& rewriter);

}  // namespace tessera::passes
