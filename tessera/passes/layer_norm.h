// d / sqrt(mean(d^2) + epsilon), d = x - mean(x) -> layer_norm(x)
// x / sqrt(mean(x^2) + epsilon)                  -> rms_norm(x, 1)
// layer_norm(x) * c, rms_norm(x, 1) * c          -> layer_norm(x, c), rms_norm(x, c)
// layer_norm(x, c) + b                           -> layer_norm(x, c, b)
//
// over all axes from one on; squares and roots written in any way; c and b have the sizes of those
// axes. Must not fire where a value in between is read elsewhere, too.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void layer_norm(Rewriter& rewriter);

}  // namespace tessera::passes
