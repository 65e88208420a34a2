// What every tile program satisfies: names, scopes, types, axes, and that every access is inside.
#pragma once

#include "tessera/tile/program.h"

namespace tessera::tile {

// kInvalidArgument with the instruction, or tensor, and what is wrong with it.
//
//   scopes    an axis is in scope once: in the grid, or whole, or inside of one loop; a value is
//             made before it is read and not read outside of the loop that makes it
//   types     a function takes its domain; a value's axes are those of what it is made from, less
//             those that are folded
//   bounds    loads without `pad` and stores lie within the tensor for all indices, provably for
//             all symbols
//   writers   two work items, or two trips of a loop, never write one element
Status verify(const Program& program);

}  // namespace tessera::tile
