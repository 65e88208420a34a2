// attention(q, concat(a, k), concat(b, v)) -> attention(q, k, v, past a, past b)
//
// where keys and values are joined along the keys (axis 2) from two parts each, the first of the
// same length. Who else reads the concats reads the results of the attention in their place.
//
// Must not fire where the attention is causal, or has a past already: both count from the past.
// The concats stay where what is made of them is needed for the attention.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void past(Rewriter& rewriter);

// The concat that yields keys or values (B, H, P + T, E) from two parts; null if they are not that.
const ir::Node* joined_parts(const ir::Graph& graph, ir::ValueId id);

}  // namespace tessera::passes
