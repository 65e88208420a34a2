// conv(x, w, b) * c      -> conv(x, c w, c b)      also conv_transpose; c one number per channel
// dot(x, w) * c          -> dot(x, c w)            c one number per column
// (y + b) * c            -> y * c + c b            where y takes up the factor
// (y * b) * c, y / b * c -> y * (b c), y * (c / b)
//
// w, b and c are constants of floats; division by c likewise. Must not fire where y is read
// elsewhere, too, or a finite weight would become infinite.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void scale(Rewriter& rewriter);

}  // namespace tessera::passes
