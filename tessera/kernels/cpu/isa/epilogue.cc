#include "tessera/kernels/cpu/isa/epilogue.h"

#include "tessera/kernels/cpu/isa/functions.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

Fused fused_form(const BoundStep& s) {
  const bool scalar = s.broadcast == Broadcast::kScalar, cols = s.broadcast == Broadcast::kCols,
             full = s.broadcast == Broadcast::kFull;
  switch (s.function) {
    case Function::kAdd:
      return scalar ? Fused::kAddScalar
             : cols ? Fused::kAddCols
             : full ? Fused::kAddFull
                    : Fused::kNone;
    case Function::kMul:
      return scalar ? Fused::kMulScalar
             : cols ? Fused::kMulCols
             : full ? Fused::kMulFull
                    : Fused::kNone;
    case Function::kMax:
      return scalar && s.scalar == s.scalar ? Fused::kMaxScalar : Fused::kNone;
    case Function::kMin:
      return scalar && s.scalar == s.scalar ? Fused::kMinScalar : Fused::kNone;
    case Function::kRelu:
      return Fused::kMaxScalar;
    case Function::kLeakyRelu:
      return Fused::kLeakyRelu;
    case Function::kHardSigmoid:
      return Fused::kHardSigmoid;
    case Function::kHardSwish:
      return Fused::kHardSwish;
    default:
      return Fused::kNone;
  }
}

void apply_run(const BoundStep& s, int64_t row, int64_t col, int64_t count, float* x) {
  const LoopFn loop = loop_for(s.function, Compute::kF32);
  const double params[kMaxParams] = {s.params[0], s.params[1]};
  const float* operand = nullptr;
  const bool uniform = s.broadcast == Broadcast::kScalar || s.broadcast == Broadcast::kRows;
  switch (s.broadcast) {
    case Broadcast::kNone:
      break;
    case Broadcast::kScalar:
      operand = &s.scalar;
      break;
    case Broadcast::kRows:
      operand = s.operand + row * s.ld;
      break;
    case Broadcast::kCols:
      operand = s.operand + col;
      break;
    case Broadcast::kFull:
      operand = s.operand + row * s.ld + col;
      break;
  }
  const void* in[2] = {s.swapped ? operand : x, s.swapped ? x : operand};
  loop(count, in, uniform ? (s.swapped ? 1u : 2u) : 0u, x, params);
}

}  // namespace

BoundEpilogue bind(const Epilogue& epilogue, const tessera_launch* launch) {
  BoundEpilogue bound{};
  bound.count = epilogue.count;
  for (int i = 0; i < epilogue.count; ++i) {
    const EpilogueStep& step = epilogue.steps[i];
    BoundStep& s = bound.steps[i];
    s.function = step.function;
    s.broadcast = step.broadcast;
    s.swapped = step.swapped != 0;
    s.ld = step.ld;
    s.params[0] = step.params[0];
    s.params[1] = step.params[1];
    if (s.broadcast != Broadcast::kNone)
      s.operand = static_cast<const float*>(launch->ranges[step.range].data);
    if (s.broadcast == Broadcast::kScalar) s.scalar = s.operand[0];
    s.fused = fused_form(s);
    if (bound.fused == i && s.fused != Fused::kNone) ++bound.fused;
  }
  return bound;
}

void apply_rows(const BoundEpilogue& epilogue, int first, int64_t row, int64_t col, int64_t rows,
                int64_t cols, float* x, int64_t ldx) {
  for (int i = first; i < epilogue.count; ++i) {
    const BoundStep& s = epilogue.steps[i];
    // A function of one input does not know where rows end.
    if (s.broadcast == Broadcast::kNone && ldx == cols) {
      apply_run(s, row, col, rows * cols, x);
      continue;
    }
    for (int64_t r = 0; r < rows; ++r) apply_run(s, row + r, col, cols, x + r * ldx);
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
