// What an entry does to its result in registers before it stores it: part of constant blocks.
// The result is seen as a matrix (rows, cols), cols innermost: (pixels, channels), (M, N).
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/elementwise_args.h"

namespace tessera::kernels::cpu {

inline constexpr int kMaxEpilogue = 8;  // steps

enum class Broadcast : int32_t {
  kNone,    // a function of one input
  kScalar,  // operand[0]
  kCols,    // operand[col]: bias, scale per channel
  kRows,    // operand[row * ld]
  kFull,    // operand[row * ld + col]: a residual
};

struct EpilogueStep {
  Function function;  // x = f(x, operand), or f(operand, x) if `swapped`, or f(x)
  Broadcast broadcast;
  int32_t range;  // index of the operand's range in the launch
  int32_t swapped;
  int64_t ld;  // elements between rows of the operand
  float params[2];
};

struct Epilogue {
  int32_t count;
  EpilogueStep steps[kMaxEpilogue];
};

}  // namespace tessera::kernels::cpu
