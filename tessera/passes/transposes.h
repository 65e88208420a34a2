// transpose(transpose(x))            -> transpose(x)
// f(transpose(x)), f(transpose(x), c) -> transpose(f(x, c))           f element-wise, c constant
// f(transpose(x), transpose(y))      -> transpose(f(x, y))            the same permutation
// concat(transpose(x), transpose(y)) -> transpose(concat(x, y))       the same permutation
// dot(a, transpose(b))               -> dot(a, b; transpose_b)        the last two axes swapped
//                                       or a transpose that keeps rows whole
//
// Must not fire where the transpose is read elsewhere, too, or c would have to be repeated.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void transposes(Rewriter& rewriter);

}  // namespace tessera::passes
