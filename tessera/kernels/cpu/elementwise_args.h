// Element-wise functions and what they are computed in: part of constant blocks.
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

// What a function is computed in. kRawN: elements of N bytes that are only moved. kBool: bytes, of
// which any but 0 are true.
enum class Compute : int32_t {
  kF32,
  kF64,
  kI32,
  kI64,
  kU64,
  kRaw1,
  kRaw2,
  kRaw4,
  kRaw8,
  kRaw16,
  kBool
};
inline constexpr int kComputes = static_cast<int>(Compute::kBool) + 1;

inline constexpr int kMaxInputs = 3;
inline constexpr int kMaxSpaceRank = 8;
inline constexpr int kMaxParams = 4;
// Values of DType, for code that does not include base.
inline constexpr int32_t kDTypeF16 = 13, kDTypeBF16 = 14, kDTypeF32 = 15;

}  // namespace tessera::kernels::cpu
