// dot(softmax(scale * dot(q, transpose(k)) + mask), v) -> attention(q, k, v, mask; scale)
//
// of (B, H, S, E), or (H, S, E) with one batch. The scale may stand in any place before the mask,
// also divided between q and k, and behind views of them; a soft cap c tanh(x / c) may follow it.
// Masks are sums, also several; select(visible, scores, -inf); and
//   what is 0 where j <= i and lowest above -> causal, where there are as many keys as queries, or
//                                              keys and values are a past and as many new ones
//   what hides nothing                      -> no mask
// Keys and values repeated for groups of query heads are taken as they are before.
//
// Must not fire where a value in between is read elsewhere, too, or where a mask is scaled or hides
// by a number that scores may exceed.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void attention(Rewriter& rewriter);

}  // namespace tessera::passes
