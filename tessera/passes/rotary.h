// x c + concat(-x2, x1) s                 -> rotary(x, c1, s1)    x = concat(x1, x2), in halves; c
// and
//                                                               s repeat their first half c1, s1
// concat(x1 c - x2 s, x1 s + x2 c)        -> rotary(x, c, s)
// concat(rotary(x[:d]), x[d:])            -> rotary(x; dim = d)
// rotary(x, c, s, positions)              -> rotary(x, c[positions], s[positions])
//
// along the last axis of 4, which has a known size; c and s are the same for all heads. Must not
// fire where a value in between is read elsewhere, too, or nothing shows that halves are equal.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void rotary(Rewriter& rewriter);

}  // namespace tessera::passes
