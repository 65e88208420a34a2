// What tile programs mean: runs them on host memory, tile by tile in the order of the schedule. The
// oracle of all emitters. Floats are computed in double and rounded to the value's type after each
// instruction; integers wrap.
#pragma once

#include <cstddef>
#include <span>

#include "tessera/tile/program.h"
#include "tessera/tile/schedule.h"

namespace tessera::tile {

// @pre verify(program), check(program, schedule, symbols)
// `memory`: the bytes of each tensor, in the order of the program's. kOutOfRange: a tensor is too
// small, or an index that the program computes lies outside; kInvalidArgument: a symbol without a
// number, or a division of an integer by zero.
Status interpret(const Program& program, const Schedule& schedule, const op::Bindings& symbols,
                 std::span<const std::span<std::byte>> memory);

}  // namespace tessera::tile
