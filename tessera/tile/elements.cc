#include "tessera/tile/elements.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/element.h"
#include "tessera/base/float.h"

namespace tessera::tile {
namespace {

uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }
int64_t s(uint64_t v) { return static_cast<int64_t>(v); }

double float_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double floats(Function f, double a, double b) {
  using enum Function;
  switch (f) {
    case kAdd:
      return a + b;
    case kSub:
      return a - b;
    case kMul:
      return a * b;
    case kDiv:
      return a / b;
    case kMin:
      return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    case kMax:
      return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case kMod:
      return float_mod(a, b);
    case kRem:
      return std::fmod(a, b);
    case kPow:
      return std::pow(a, b);
    case kNeg:
      return -a;
    case kAbs:
      return std::fabs(a);
    case kSign:
      return std::isnan(a) ? a : double((a > 0) - (a < 0));
    case kFloor:
      return std::floor(a);
    case kCeil:
      return std::ceil(a);
    case kRound:
      return std::nearbyint(a);
    case kTrunc:
      return std::trunc(a);
    case kSqrt:
      return std::sqrt(a);
    case kExp:
      return std::exp(a);
    case kLog:
      return std::log(a);
    case kSin:
      return std::sin(a);
    case kCos:
      return std::cos(a);
    case kTan:
      return std::tan(a);
    case kAsin:
      return std::asin(a);
    case kAcos:
      return std::acos(a);
    case kAtan:
      return std::atan(a);
    case kSinh:
      return std::sinh(a);
    case kCosh:
      return std::cosh(a);
    case kTanh:
      return std::tanh(a);
    case kAsinh:
      return std::asinh(a);
    case kAcosh:
      return std::acosh(a);
    case kAtanh:
      return std::atanh(a);
    case kErf:
      return std::erf(a);
    default:
      return NAN;
  }
}

template <class T>
bool compare(Function f, T a, T b) {
  using enum Function;
  switch (f) {
    case kEq:
      return a == b;
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kGe:
      return a >= b;
    default:
      return a != a;  // kIsNan
  }
}

int64_t int_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (uint64_t base = u(a); b; b >>= 1, base *= base)
    if (b & 1) result *= base;
  return s(result);
}

// By at least the width: what is left of it.
int64_t shift_right(int64_t a, int64_t by, int bits, bool is_unsigned) {
  const bool out = u(by) >= u(bits);
  if (is_unsigned) return out ? 0 : s(u(a) >> by);
  return a >> (out ? 63 : by);
}

template <class T>
T quotient(Function f, T a, T b) {
  using enum Function;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return f == kDiv ? s(0 - u(a)) : 0;
  if (f == kDiv) return a / b;
  const T r = static_cast<T>(a % b);
  return f == kMod && r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}

Result<int64_t> ints(Function f, DType dtype, int64_t a, int64_t b) {
  using enum Function;
  const bool is_unsigned = is_unsigned_int(dtype);
  switch (f) {
    case kAdd:
      return s(u(a) + u(b));
    case kSub:
      return s(u(a) - u(b));
    case kMul:
      return s(u(a) * u(b));
    case kDiv:
    case kMod:
    case kRem:
      if (b == 0) return error(Code::kInvalidArgument, "an integer is divided by zero");
      return is_unsigned ? s(quotient(f, u(a), u(b))) : quotient(f, a, b);
    case kMin:
      return (is_unsigned ? u(b) < u(a) : b < a) ? b : a;
    case kMax:
      return (is_unsigned ? u(a) < u(b) : a < b) ? b : a;
    case kPow:
      return int_pow(a, b);
    case kAnd:
      return int64_t{a != 0 && b != 0};
    case kOr:
      return int64_t{a != 0 || b != 0};
    case kXor:
      return int64_t{(a != 0) != (b != 0)};
    case kBitAnd:
      return a & b;
    case kBitOr:
      return a | b;
    case kBitXor:
      return a ^ b;
    case kShiftLeft:
      return u(b) > 63 ? 0 : s(u(a) << b);
    case kShiftRight:
      return shift_right(a, b, bits_of(dtype), is_unsigned);
    case kNeg:
      return s(0 - u(a));
    case kAbs:
      return !is_unsigned && a < 0 ? s(0 - u(a)) : a;
    case kSign:
      return is_unsigned ? int64_t{a != 0} : int64_t{(a > 0) - (a < 0)};
    case kNot:
      return int64_t{a == 0};
    case kBitNot:
      return ~a;
    default:
      return error(Code::kInternal, "{} is no function of integers", name_of(f));
  }
}

Element convert(DType from, DType to, const Element& in) {
  Element out;
  alignas(8) std::byte source[8] = {}, target[8] = {};
  if (is_float(from))
    store_f64(from, source, 0, in.f);
  else
    store_i64(from, source, 0, in.i);
  convert_elements(from, source, to, target, 1);
  if (is_float(to))
    out.f = load_f64(to, target, 0);
  else
    out.i = load_i64(to, target, 0);
  return out;
}

}  // namespace

double round_to(DType dtype, double value) {
  if (dtype == DType::kF64) return value;
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  return decode(float_format(dtype), encode(float_format(dtype), value));
}

int64_t wrap_to(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  const int unused = 64 - bits_of(dtype);
  return is_unsigned_int(dtype) ? s(u(value) << unused >> unused) : s(u(value) << unused) >> unused;
}

Result<Element> apply(Function function, DType from, DType to, const Element* in) {
  const FunctionInfo& f = info(function);
  Element out;
  if (function == Function::kConvert) return convert(from, to, in[0]);
  if (function == Function::kSelect) return in[0].i != 0 ? in[1] : in[2];
  if (f.yields_bool) {
    const Element& b = in[f.inputs - 1];
    out.i = is_float(from)          ? compare(function, in[0].f, b.f)
            : is_unsigned_int(from) ? compare(function, u(in[0].i), u(b.i))
                                    : compare(function, in[0].i, b.i);
    return out;
  }
  if (is_float(from)) {
    out.f = round_to(to, floats(function, in[0].f, f.inputs > 1 ? in[1].f : 0));
    return out;
  }
  TRY_ASSIGN(const int64_t whole, ints(function, from, in[0].i, f.inputs > 1 ? in[1].i : 0));
  out.i = wrap_to(to, whole);
  return out;
}

}  // namespace tessera::tile
