// x + 0, x - 0, x * 1, x / 1, pow(x, 1), max(x, -inf), min(x, inf), x and true, x or false -> x
// --x, not not x -> x;  select(c, x, y) -> x or y where c is constant
// reshape, unsqueeze, squeeze, broadcast_to, slice, pad, tile, transpose, convert that change
// nothing, identity, concat of one -> x
// convert(convert(x, wider), type of x) -> x;  concat(..., empty, ...) -> concat(...)
//
// Must not fire where the result has another type or shape than x. x + 0 is x up to the sign of
// zero.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void identities(Rewriter& rewriter);

}  // namespace tessera::passes
