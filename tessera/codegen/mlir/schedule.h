// How the axes of a program are cut for CPUs: the axis of vectors, which is part of the code, and
// the pieces of the grid, which are not.
#pragma once

#include "tessera/codegen/mlir/target.h"
#include "tessera/tile/schedule.h"

namespace tessera::codegen::mlir {

// Vectors along the axis along which most of what is read and written lies side by side; none where
// that is no axis. The same for all sizes.
tile::Schedule vectors_of(const tile::Program& program, const Target& target);

// Pieces of the grid's axes for these sizes: work items of enough elements each, so that handing
// one out costs little beside it.
Status cut(const tile::Program& program, const op::Bindings& symbols, tile::Schedule& schedule);

}  // namespace tessera::codegen::mlir
