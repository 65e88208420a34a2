// y = f(a), z = f(a) -> y for both. Constants are equal if they share their bytes or are small and
// alike; random numbers are, with equal keys. Must not fire for operators with bodies.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void common(Rewriter& rewriter);

}  // namespace tessera::passes
