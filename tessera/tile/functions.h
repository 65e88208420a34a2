// The functions of elements that tile programs are made of: few, so that an emitter is short. They
// mean what the operators of the same names mean. Activations and the like are written with them
// (lower.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/base/dtype.h"

namespace tessera::tile {

enum class Function : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,  // integers truncate; division by zero fails the launch
  kMin,  // NaN wins
  kMax,
  kMod,  // the divisor's sign
  kRem,  // the dividend's sign
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
  kNeg,
  kAbs,
  kSign,
  kFloor,
  kCeil,
  kRound,  // ties to even
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
  kSelect,   // a bool, then two of one type
  kConvert,  // to the result's type, by the rules of base/element.h
};
inline constexpr int kFunctions = static_cast<int>(Function::kConvert) + 1;

// Which types of elements a function takes.
enum Domain : uint8_t { kFloats = 1, kInts = 2, kBools = 4, kAll = 7 };

struct FunctionInfo {
  Function function;
  std::string_view name;
  int inputs;
  int domain;
  bool yields_bool = false;
  bool reduces = false;  // associative and commutative: may fold an axis
};

const FunctionInfo& info(Function function);
inline std::string_view name_of(Function function) { return info(function).name; }
std::span<const FunctionInfo> all_functions();
// Null if there is none of that name.
const FunctionInfo* find_function(std::string_view name);

// Whether a function with this domain takes elements of this type.
bool in_domain(DType dtype, int domain);

// What a reduction over nothing yields: 0 of add, the lowest value of max, ... As a float, or, of
// other types, as bits in two's complement. @pre info(function).reduces
double float_identity(Function function);
int64_t int_identity(Function function, DType dtype);

}  // namespace tessera::tile
