// Constant block of the chain entry: a program of element-wise loops that is run block by block
// over a broadcast iteration space.
#pragma once

#include "tessera/kernels/cpu/elementwise_args.h"

namespace tessera::kernels::cpu {

inline constexpr int kMaxChain = 96;  // instructions
inline constexpr int kMaxChainInputs = 24, kMaxChainOutputs = 8;
inline constexpr int kMaxChainSlots = 64;
inline constexpr int64_t kChainArena = 32768;  // bytes of all slots: they stay in the first cache
inline constexpr int64_t kChainBlock = 1024;   // elements, at most
// Values of DType that are quantised in a chain.
inline constexpr int32_t kDTypeI8 = 3, kDTypeU8 = 9;

// How a block's elements lie in an operand.
enum class Access : int32_t {
  kContiguous,  // at the block's own linear position
  kUniform,     // one element for all
  kRow,         // blocks lie within rows: neighbours there, or one element for the row
  kPeriodic,    // repeats every `period` elements, of which blocks are multiples: laid out once
  kGather,      // copied to, or of outputs from, a slot of its own
};

struct ChainOperand {
  Access access;
  int32_t bytes;  // of an element
  int32_t slot;   // kPeriodic, kGather
  int64_t period;
  int64_t strides[kMaxSpaceRank];  // in elements
};

// out = function(in...). Places: the inputs, the outputs, then the slots.
struct ChainInstr {
  Function function;
  Compute compute;
  int32_t inputs, in[kMaxInputs], out;
  uint32_t uniform;  // bit k: in[k] holds one element for all
  int32_t once;      // all inputs are uniform and so is the result
  // Unless -1, a conversion between these DTypes instead of a function; with more than one input a
  // quantisation or its reverse, with a scale and perhaps a zero point in f32.
  int32_t from, to;
  double params[kMaxParams];
};

// Ranges: the inputs, then the outputs. Block b is `block` elements (the last is shorter) of the
// whole space, or, of spaces walked by rows, of row b / pieces. Work item = `chunk` blocks.
struct ChainArgs {
  int32_t inputs, outputs, instrs, rank;
  int32_t by_rows, slot_bytes;
  int64_t count, row;  // elements of the space and of its last axis
  int64_t block, pieces, blocks, chunk;
  int64_t dims[kMaxSpaceRank];
  ChainOperand operands[kMaxChainInputs + kMaxChainOutputs];
  ChainInstr program[kMaxChain];  // stored up to `instrs`
};

}  // namespace tessera::kernels::cpu
