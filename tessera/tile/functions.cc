#include "tessera/tile/functions.h"

#include <algorithm>
#include <limits>

namespace tessera::tile {
namespace {

using enum Function;
constexpr FunctionInfo kTable[] = {
    {kAdd, "add", 2, kFloats | kInts, false, true},
    {kSub, "sub", 2, kFloats | kInts},
    {kMul, "mul", 2, kFloats | kInts, false, true},
    {kDiv, "div", 2, kFloats | kInts},
    {kMin, "min", 2, kAll, false, true},
    {kMax, "max", 2, kAll, false, true},
    {kMod, "mod", 2, kFloats | kInts},
    {kRem, "rem", 2, kFloats | kInts},
    {kPow, "pow", 2, kFloats | kInts},
    {kAnd, "and", 2, kInts | kBools, false, true},
    {kOr, "or", 2, kInts | kBools, false, true},
    {kXor, "xor", 2, kInts | kBools},
    {kBitAnd, "bit_and", 2, kInts},
    {kBitOr, "bit_or", 2, kInts},
    {kBitXor, "bit_xor", 2, kInts},
    {kShiftLeft, "shift_left", 2, kInts},
    {kShiftRight, "shift_right", 2, kInts},
    {kEq, "eq", 2, kAll, true},
    {kLt, "lt", 2, kAll, true},
    {kLe, "le", 2, kAll, true},
    {kGt, "gt", 2, kAll, true},
    {kGe, "ge", 2, kAll, true},
    {kNeg, "neg", 1, kFloats | kInts},
    {kAbs, "abs", 1, kFloats | kInts},
    {kSign, "sign", 1, kFloats | kInts},
    {kFloor, "floor", 1, kFloats},
    {kCeil, "ceil", 1, kFloats},
    {kRound, "round", 1, kFloats},
    {kTrunc, "trunc", 1, kFloats},
    {kSqrt, "sqrt", 1, kFloats},
    {kExp, "exp", 1, kFloats},
    {kLog, "log", 1, kFloats},
    {kSin, "sin", 1, kFloats},
    {kCos, "cos", 1, kFloats},
    {kTan, "tan", 1, kFloats},
    {kAsin, "asin", 1, kFloats},
    {kAcos, "acos", 1, kFloats},
    {kAtan, "atan", 1, kFloats},
    {kSinh, "sinh", 1, kFloats},
    {kCosh, "cosh", 1, kFloats},
    {kTanh, "tanh", 1, kFloats},
    {kAsinh, "asinh", 1, kFloats},
    {kAcosh, "acosh", 1, kFloats},
    {kAtanh, "atanh", 1, kFloats},
    {kErf, "erf", 1, kFloats},
    {kNot, "not", 1, kInts | kBools},
    {kBitNot, "bit_not", 1, kInts},
    {kIsNan, "is_nan", 1, kFloats, true},
    {kSelect, "select", 3, kAll},
    {kConvert, "convert", 1, kAll},
};
static_assert(std::size(kTable) == kFunctions);
static_assert([] {
  for (int i = 0; i < kFunctions; ++i)
    if (kTable[i].function != static_cast<Function>(i)) return false;
  return true;
}());

}  // namespace

const FunctionInfo& info(Function function) { return kTable[static_cast<int>(function)]; }

std::span<const FunctionInfo> all_functions() { return kTable; }

const FunctionInfo* find_function(std::string_view name) {
  const auto found = std::ranges::find(kTable, name, &FunctionInfo::name);
  return found == std::end(kTable) ? nullptr : &*found;
}

bool in_domain(DType dtype, int domain) {
  return (is_float(dtype) && (domain & kFloats)) || (is_int(dtype) && (domain & kInts)) ||
         (dtype == DType::kBool && (domain & kBools));
}

double float_identity(Function function) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return function == kMul ? 1 : function == kMax ? -kInfinity : function == kMin ? kInfinity : 0;
}

int64_t int_identity(Function function, DType dtype) {
  if (function == kMul || function == kAnd) return 1;
  if (function != kMin && function != kMax) return 0;
  if (dtype == DType::kBool) return function == kMin;
  const int bits = bits_of(dtype);
  if (is_unsigned_int(dtype)) {
    if (function == kMax) return 0;
    return bits == 64 ? -1 : (int64_t{1} << bits) - 1;
  }
  const int64_t lowest = INT64_MIN >> (64 - bits);
  return function == kMax ? lowest : ~lowest;
}

}  // namespace tessera::tile
