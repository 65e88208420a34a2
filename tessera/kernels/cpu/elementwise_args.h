// Constant block of the element-wise entry: a function over a broadcast iteration space.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

enum class Function : int32_t {
  kCopy,
  kSelect,
  // two inputs
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kMod,
  kRem,
  kPow,
  kAnd,
  kOr,
  kXor,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,
  kEq,
  kLt,
  kLe,
  kGt,
  kGe,
  kPrelu,
  // one input
  kNeg,
  kAbs,
  kSign,
  kFloor,
  kCeil,
  kRound,
  kTrunc,
  kSqrt,
  kExp,
  kLog,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kNot,
  kBitNot,
  kIsNan,
  kIsInf,
  kReciprocal,
  kRelu,
  kSigmoid,
  kGelu,
  kGeluTanh,
  kSilu,
  kHardSigmoid,
  kHardSwish,
  kLeakyRelu,
  kElu,
  kSelu,
  kCelu,
  kSoftplus,
  kSoftsign,
  kMish,
  kThresholdedRelu,
  kShrink,
};
inline constexpr int kFunctions = static_cast<int>(Function::kShrink) + 1;

// What a function is computed in. kRawN: elements of N bytes that are only moved.
enum class Compute : int32_t { kF32, kF64, kI32, kI64, kU64, kRaw1, kRaw2, kRaw4, kRaw8, kRaw16 };
inline constexpr int kComputes = 10;

inline constexpr int kMaxInputs = 3;
inline constexpr int kMaxSpaceRank = 8;
inline constexpr int kMaxParams = 4;
inline constexpr int64_t kElementwiseChunk =
    16384;  // elements of one work item; a multiple of 8, for packed types

// Values of DType, for code that does not include base.
inline constexpr int32_t kDTypeF16 = 13, kDTypeBF16 = 14;

enum class Access : int32_t { kContiguous, kUniform, kStrided };

// Ranges: the inputs, then the output.
struct ElementwiseArgs {
  Function function;
  Compute compute;
  int32_t inputs;
  int32_t rank;
  int64_t count;
  int64_t dims[kMaxSpaceRank];
  int64_t strides[kMaxInputs][kMaxSpaceRank];  // in elements
  Access access[kMaxInputs];
  int32_t in_dtypes[kMaxInputs];  // DType; -1: in the compute type already
  int32_t in_bytes[kMaxInputs];   // of a stored element
  int32_t out_dtype;              // as in_dtypes; functions that yield bool write it themselves
  int32_t out_bytes;
  double params[kMaxParams];
};

}  // namespace tessera::kernels::cpu
