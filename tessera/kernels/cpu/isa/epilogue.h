// An Epilogue bound to a launch's ranges, and what an entry does with it: some steps on vectors in
// registers, the others on rows in the cache.
#pragma once

#include "tessera/kernels/cpu/epilogue_args.h"
#include "tessera/kernels/cpu/isa/vec.h"
#include "tessera/tessera_plugin.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// What is done in registers. Full: the operand has the result's rows and columns.
enum class Fused : int32_t {
  kNone,  // by rows
  kAddScalar,
  kAddCols,
  kAddFull,
  kMulScalar,
  kMulCols,
  kMulFull,
  kMaxScalar,  // relu too; the scalar is a number
  kMinScalar,
  kLeakyRelu,
  kHardSigmoid,
  kHardSwish,
};

struct BoundStep {
  Fused fused;
  Function function;
  Broadcast broadcast;
  bool swapped;
  float scalar;          // operand[0] of a scalar
  const float* operand;  // where the result's row 0 and column 0 read
  int64_t ld;
  float params[2];
};

struct BoundEpilogue {
  int count;
  int fused;  // the first so many steps are done in registers
  BoundStep steps[kMaxEpilogue];
};

// From what the result's row 0 and column 0 read to what row `row` and column `col` do.
TESSERA_INLINE int64_t offset_in(const BoundStep& s, int64_t row, int64_t col) {
  switch (s.broadcast) {
    case Broadcast::kCols:
      return col;
    case Broadcast::kRows:
      return row * s.ld;
    case Broadcast::kFull:
      return row * s.ld + col;
    default:
      return 0;
  }
}

// Reads the scalars: the operands of the launch must be there.
BoundEpilogue bind(const Epilogue& epilogue, const tessera_launch* launch);

// Applies the steps from `first` on to `x` (rows, cols), ldx apart, whose first element is at `row`
// and `col` of the result.
void apply_rows(const BoundEpilogue& epilogue, int first, int64_t row, int64_t col, int64_t rows,
                int64_t cols, float* x, int64_t ldx);

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
