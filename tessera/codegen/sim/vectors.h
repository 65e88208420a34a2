// Tile programs on a chip's vector unit: the grid's pieces are dealt out to the cores; what a piece
// needs is loaded, computed on and stored, with two slots for what comes and goes, so that copies
// run beside computing.
//
//   elementwise(x, y)  ->  for t = core to pieces by cores { load x, y | map ... | store z }
//
// Products are taken where a matrix unit works on the same memory; elsewhere the program is
// refused.
#pragma once

#include "tessera/tile/engine_paths.h"
#include "tessera/tile/program.h"

namespace tessera::codegen::sim {

// For the sizes of the instance. kUnimplemented: what this chip cannot, with the reason.
// @post tile::engine::verify(*result, chip)
Result<tile::engine::Program> vectors(const tile::Instance& instance, const chip::Chip& chip);

}  // namespace tessera::codegen::sim
