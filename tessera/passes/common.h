// y = f(a), z = f(a) -> y for both. Constants are equal if they share their bytes or are small and
// alike; random numbers are, with equal keys. Must not fire for operators with bodies.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void common(Rewriter& rewriter);

// The same names, with values of the same bits.
bool same_attrs(const op::Attrs& a, const op::Attrs& b);

}  // namespace tessera::passes
