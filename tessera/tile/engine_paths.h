// Ways through a chip's memories: what a code generator asks before it writes engine programs.
#pragma once

#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/tile/engine.h"

namespace tessera::tile::engine {

// A copy by one engine of a core.
struct Hop {
  std::string engine;
  std::string from, to;  // memories
};
// The shortest way by engines of this kind of core, through memories of it; of ways of one length
// the first by name. kUnimplemented if there is none.
Result<std::vector<Hop>> find_path(const chip::Chip& chip, std::string_view core,
                                   std::string_view from, std::string_view to);

// Where vectors are computed.
struct VectorPath {
  std::string core, unit;
  std::string space;        // that data come to straight from the device's memory, and leave from
  std::string load, store;  // engines
};
// kUnimplemented: no vector unit whose core has such a memory.
Result<VectorPath> find_vector_path(const chip::Chip& chip);

// Where products are taken.
struct MatrixPath {
  std::string core, unit;
  std::string a, b, c;  // memories
  std::vector<Hop> to_a, to_b, from_c;
};
// kUnimplemented: no matrix unit, or none that data reach.
Result<MatrixPath> find_matrix_path(const chip::Chip& chip);

}  // namespace tessera::tile::engine
