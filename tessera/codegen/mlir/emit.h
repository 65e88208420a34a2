// A tile program as text of MLIR: loops over elements and, along one axis, over vectors.
//
//   llvm.func @run(launch, first, count)
//     for item in [first, first + count)         the pieces of the grid's axes that it is
//       for i in piece of i ... for j in piece of j step 16
//         loads, maps, loops over what is folded, stores
//
// Every axis is walked by single elements, but for the schedule's vector axis, which is walked by
// vectors and, behind them, by one masked vector or by single elements. Values are thus scalars or
// vectors in registers. A fold along the vector axis keeps a vector of partial results until its
// loop has ended.
#pragma once

#include <string>
#include <vector>

#include "tessera/codegen/mlir/target.h"
#include "tessera/tile/schedule.h"

namespace tessera::codegen::mlir {

inline constexpr std::string_view kEntry = "run";

// Why there is no code for the program; empty if there is. @pre tile::verify(program)
std::string refusal(const tile::Program& program, const Target& target);

// The sizes that the code reads from a launch's constants, as 64-bit integers in this order; after
// them come, for each axis of the grid, the elements of a piece and the number of pieces.
Result<std::vector<tile::Expr>> constants_of(const tile::Program& program);

// @pre refusal() is empty; `schedule` has one vector axis, or none. Pieces are not part of the
// code: only the vector is.
Result<std::string> emit(const tile::Program& program, const tile::Schedule& schedule,
                         const Target& target);

// Where an access lies: the sum of coefficient * index over the axes, plus the offset, in elements.
struct Access {
  std::vector<std::pair<int, tile::Expr>> terms;
  tile::Expr offset;
  // 0 if the access does not walk the axis.
  tile::Expr coefficient(int axis) const;
};
Result<Access> access_of(const tile::Program& program, const tile::Instruction& instruction);

}  // namespace tessera::codegen::mlir
