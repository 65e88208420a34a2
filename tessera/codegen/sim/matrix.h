// Products on a chip's matrix unit: c[z,m,n] = sum over k of a[z,m,k] b[z,k,n], tile by tile of c,
// each summed over pieces of k that come in two slots at every memory on the way, so that copies
// run beside the unit.
//
//   Ascend   gm -> l1 -> l0a, l0b | cube | l0c -> gm       TPU   hbm -> vmem | mxu | vmem -> hbm
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/codegen/sim/emit.h"
#include "tessera/tile/engine_paths.h"

namespace tessera::codegen::sim {

// One side of a product.
struct Side {
  engine::Buffer buffer;  // the argument
  // Where element (row or column i, inner k) of piece `chunk` of tile `t` is: indices of `buffer`
  // over a step's axes, of which the first are `along` (rows or columns, outermost first), those
  // behind them `inner`.
  std::vector<engine::StepAxis> along, inner;
  std::vector<engine::Index> at;  // of the symbols t and chunk
  bool inner_first = false;       // rows lie beside one another: k is the outer axis in memory
  bool pads = false;              // what lies outside is 0
};

struct Product {
  std::string name;
  std::string compute;         // how the unit takes its operands
  DType stored = DType::kF16;  // of operands in memory
  DType sums = DType::kF32;
  int64_t rows = 1, columns = 1;  // of a tile of c, at most
  int64_t inner = 1;              // of a piece of k, at most
  int64_t step = 1;               // of k that the unit takes at once, at most; divides `inner`
  int64_t items = 1;              // tiles of c
  int64_t chunks = 1;             // pieces of k
  Side a, b, c;                   // c: without `inner`
  // Symbols of the program that `a`, `b` and `c` are written in.
  engine::Program program;
  int t = 0, chunk = 0;
};

// Bytes that tiles of these sizes take in each memory, a little too many.
bool fits(const chip::Chip& chip, const engine::MatrixPath& path, const Product& p, int slots_of_c);

// @post tile::engine::verify(*result, chip)
Result<engine::Program> matrix(const chip::Chip& chip, const engine::MatrixPath& path, Product p);

// How large tiles of c and pieces of k are best, by what the unit and the engines take for them.
struct Tiling {
  int64_t rows = 0, columns = 0, inner = 0, step = 0;
};
struct TilingRequest {
  std::string compute;
  DType stored = DType::kF16, sums = DType::kF32, out = DType::kF16;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t rows_unit = 1;   // rows come in multiples of this: those of a convolution's line
  int64_t inner_unit = 0;  // k in pieces of this, if not 0
  int64_t inner_most = 0;  // and of this at most, if not 0
};
Result<Tiling> choose_tiling(const chip::Chip& chip, const engine::MatrixPath& path,
                             const TilingRequest& request);

}  // namespace tessera::codegen::sim
