// attention(q, k, v) -> dot, softmax, dot: a composite that no kernel takes becomes its
// decomposition, if kernels take all of that. Must not fire where they do not: the interpreter does
// the composite at once then.
#pragma once

#include "tessera/passes/choices.h"
#include "tessera/passes/fuse.h"

namespace tessera::passes {

// Rewrites the graph in place, body graphs included; how many composites were expanded. Kernels are
// asked for `bindings`; what is not bound counts as 1.
// @post verify(graph)
Result<int> expand(ir::Graph& graph, const op::Bindings& bindings, Sources sources);
// As `accepts` says who takes what.
Result<int> expand(ir::Graph& graph, const op::Bindings& bindings, const Accepts& accepts);

}  // namespace tessera::passes
