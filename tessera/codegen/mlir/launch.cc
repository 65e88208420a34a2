#include "tessera/codegen/mlir/launch.h"

#include <algorithm>
#include <cstring>

namespace tessera::codegen::mlir {

Result<LaunchShape> launch_shape(const tile::Program& p, const tile::Schedule& s,
                                 const op::Bindings& symbols,
                                 const std::vector<tile::Expr>& constants) {
  std::vector<int64_t> numbers;
  for (const tile::Expr& e : constants) {
    TRY_ASSIGN(const int64_t number, e.eval(symbols));
    numbers.push_back(number);
  }
  int64_t grid = 1;
  for (int a : p.grid) {
    TRY_ASSIGN(const int64_t extent, p.axis(a).extent.eval(symbols));
    const int64_t tile = s.axis(a).tile == 0 ? std::max<int64_t>(extent, 1) : s.axis(a).tile;
    // An axis without elements has one piece without elements.
    const int64_t pieces = std::max<int64_t>(1, tile::pieces(extent, tile));
    numbers.push_back(tile);
    numbers.push_back(pieces);
    if (__builtin_mul_overflow(grid, pieces, &grid) || grid > INT32_MAX)
      return error(Code::kOutOfRange, "the grid of {} has too many items", p.name);
  }
  LaunchShape shape;
  shape.grid = static_cast<uint32_t>(grid);
  shape.constants.resize(numbers.size() * sizeof(int64_t));
  if (!numbers.empty()) std::memcpy(shape.constants.data(), numbers.data(), shape.constants.size());
  return shape;
}

}  // namespace tessera::codegen::mlir
