// A graph as text for people (inspect --ir).
#pragma once

#include <string>

#include "tessera/ir/graph.h"

namespace tessera::cli {

// One line per node: results with types, operator, operands, attributes, and the source nodes
// behind '#'.
std::string graph_text(const ir::Graph& graph, int indent = 0);

}  // namespace tessera::cli
