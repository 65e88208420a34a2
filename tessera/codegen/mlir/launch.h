// What a launch of compiled code is given beside its tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "tessera/tile/schedule.h"

namespace tessera::codegen::mlir {

struct LaunchShape {
  uint32_t grid = 1;
  std::vector<std::byte> constants;  // as emit.h says
};

// For these sizes and pieces of the grid. `constants` is constants_of(program).
Result<LaunchShape> launch_shape(const tile::Program& program, const tile::Schedule& schedule,
                                 const op::Bindings& symbols,
                                 const std::vector<tile::Expr>& constants);

}  // namespace tessera::codegen::mlir
