// conv(pad(x, p, 0))         -> conv(x), p added to its pads
// max_pool(pad(x, p, -inf))  -> max_pool(x) likewise
// average_pool(pad(x, p, 0)) -> average_pool(x) likewise, where padding counts or there was none
// pad(pad(x, p), q)          -> pad(x, p + q)     the same value, nothing cropped
//
// Must not fire where p pads other axes than spatial ones or crops, or where the pads follow from
// auto_pad or ceil_mode.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void pad(Rewriter& rewriter);

}  // namespace tessera::passes
