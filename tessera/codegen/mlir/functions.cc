#include "tessera/codegen/mlir/functions.h"

#include <cmath>

namespace tessera::codegen::mlir {
namespace {

using enum tile::Function;
using tile::Function;

bool plain_float(DType d) { return d == DType::kF32 || d == DType::kF64; }
bool half_float(DType d) { return d == DType::kF16 || d == DType::kBF16; }

Val is_nan(Writer& w, Val x) { return w.compare("cmpf", "uno", x, x); }

// NaN wins. x86 yields the second operand where either is NaN: a constant goes first.
Val extreme(Writer& w, std::string_view predicate, Val a, Val b) {
  if (b.number) std::swap(a, b);
  const Val r = w.select(w.compare("cmpf", predicate, a, b), a, b);
  return a.number ? r : w.select(is_nan(w, a), a, r);
}

Val sign(Writer& w, Val x) {
  const Val zero = w.like(x, 0);
  const Val rest = w.select(is_nan(w, x), x, zero);
  const Val below = w.select(w.compare("cmpf", "olt", x, zero), w.like(x, -1), rest);
  return w.select(w.compare("cmpf", "ogt", x, zero), w.like(x, 1), below);
}

Val floats(Writer& w, Function f, std::span<const Val> in) {
  const Val a = in[0], b = in[in.size() - 1];
  switch (f) {
    case kAdd:
      return w.add(a, b);
    case kSub:
      return w.sub(a, b);
    case kMul:
      return w.mul(a, b);
    case kDiv:
      return w.div(a, b);
    case kMin:
      return extreme(w, "olt", a, b);
    case kMax:
      return extreme(w, "ogt", a, b);
    case kEq:
      return w.compare("cmpf", "oeq", a, b);
    case kLt:
      return w.compare("cmpf", "olt", a, b);
    case kLe:
      return w.compare("cmpf", "ole", a, b);
    case kGt:
      return w.compare("cmpf", "ogt", a, b);
    case kGe:
      return w.compare("cmpf", "oge", a, b);
    case kNeg:
      return w.unary("arith.negf", a);
    case kAbs:
      return w.unary("math.absf", a);
    case kSign:
      return sign(w, a);
    case kFloor:
      return w.unary("math.floor", a);
    case kCeil:
      return w.unary("math.ceil", a);
    case kRound:
      return w.unary("math.roundeven", a);
    case kTrunc:
      return w.unary("math.trunc", a);
    case kSqrt:
      return w.unary("math.sqrt", a);
    case kExp:
      return exp_of(w, a);
    case kLog:
      return log_of(w, a);
    case kTanh:
      return tanh_of(w, a);
    case kErf:
      return erf_of(w, a);
    default:
      return is_nan(w, a);
  }
}

std::string float_refusal(const Target& target, Function f, DType dtype) {
  switch (f) {
    case kFloor:
    case kCeil:
    case kRound:
    case kTrunc:
      return target.round ? "" : "no instruction rounds to whole numbers";
    case kExp:
    case kLog:
    case kTanh:
    case kErf:
      return dtype == DType::kF32 ? "" : fmt::format("{} of f64", name_of(f));
    case kMod:
    case kRem:
    case kPow:
    case kSin:
    case kCos:
    case kTan:
    case kAsin:
    case kAcos:
    case kAtan:
    case kSinh:
    case kCosh:
    case kAsinh:
    case kAcosh:
    case kAtanh:
      return fmt::format("{} of floats", name_of(f));
    default:
      return "";
  }
}

Val truth(Writer& w, Val x) {
  return x.elem == Elem::kI1 ? x : w.compare("cmpi", "ne", x, w.whole_like(x, 0));
}

// By at least the width: nothing is left, or the sign.
Val shifted(Writer& w, Function f, bool is_unsigned, Val a, Val b) {
  const int width = bits_of(a.elem);
  const Val inside = w.compare("cmpi", "ult", b, w.whole_like(b, width));
  const Val by = w.select(inside, b, w.whole_like(b, width - 1));
  if (f == kShiftRight && !is_unsigned) return w.binary("arith.shrsi", a, by);
  const Val some = w.binary(f == kShiftLeft ? "arith.shli" : "arith.shrui", a, by);
  return w.select(inside, some, w.whole_like(a, 0));
}

// Integers and bools.
Val ints(Writer& w, Function f, DType dtype, std::span<const Val> in) {
  const Val a = in[0], b = in[in.size() - 1];
  const bool is_unsigned = is_unsigned_int(dtype) || dtype == DType::kBool;
  const auto compare = [&](std::string_view of_unsigned, std::string_view of_signed) {
    return w.compare("cmpi", is_unsigned ? of_unsigned : of_signed, a, b);
  };
  const auto logic = [&](std::string_view op) {
    return w.cast("arith.extui", w.binary(op, truth(w, a), truth(w, b)), a.elem);
  };
  switch (f) {
    case kAdd:
      return w.add(a, b);
    case kSub:
      return w.sub(a, b);
    case kMul:
      return w.mul(a, b);
    case kMin:
      return w.select(compare("ult", "slt"), a, b);
    case kMax:
      return w.select(compare("ugt", "sgt"), a, b);
    case kAnd:
      return logic("arith.andi");
    case kOr:
      return logic("arith.ori");
    case kXor:
      return logic("arith.xori");
    case kBitAnd:
      return w.binary("arith.andi", a, b);
    case kBitOr:
      return w.binary("arith.ori", a, b);
    case kBitXor:
      return w.binary("arith.xori", a, b);
    case kShiftLeft:
    case kShiftRight:
      return shifted(w, f, is_unsigned, a, b);
    case kEq:
      return w.compare("cmpi", "eq", a, b);
    case kLt:
      return compare("ult", "slt");
    case kLe:
      return compare("ule", "sle");
    case kGt:
      return compare("ugt", "sgt");
    case kGe:
      return compare("uge", "sge");
    case kNeg:
      return w.sub(w.whole_like(a, 0), a);
    case kAbs: {
      if (is_unsigned) return a;
      const Val zero = w.whole_like(a, 0);
      return w.select(w.compare("cmpi", "slt", a, zero), w.sub(zero, a), a);
    }
    case kSign: {
      const Val zero = w.whole_like(a, 0);
      const Val some = w.cast("arith.extui", w.compare("cmpi", "ne", a, zero), a.elem);
      if (is_unsigned) return some;
      return w.select(w.compare("cmpi", "slt", a, zero), w.whole_like(a, -1), some);
    }
    case kNot:
      if (a.elem == Elem::kI1) return w.binary("arith.xori", a, w.whole_like(a, 1));
      return w.cast("arith.extui", w.compare("cmpi", "eq", a, w.whole_like(a, 0)), a.elem);
    default:
      return w.binary("arith.xori", a, w.whole_like(a, -1));  // kBitNot
  }
}

std::string int_refusal(Function f, DType dtype) {
  switch (f) {
    case kDiv:
    case kMod:
    case kRem:
    case kPow:
      return fmt::format("{} of {}", name_of(f), name_of(dtype));
    default:
      return "";
  }
}

// ---- Conversions

Val narrow(Writer& w, std::string_view op, Val x, std::string_view from, std::string_view to,
           Elem result) {
  const Val half = w.fresh(Elem::kI16, x.lanes), out = w.fresh(result, x.lanes);
  const auto type = [&](std::string_view elem) {
    return x.lanes == 1 ? std::string(elem) : fmt::format("vector<{}x{}>", x.lanes, elem);
  };
  const bool widens = op == "arith.extf";
  w.line("{} = {} {} : {} to {}", half, widens ? "arith.bitcast" : op, x, type(from), type("f16"));
  w.line("{} = {} {} : {} to {}", out, widens ? op : "arith.bitcast", half, type("f16"), type(to));
  return out;
}

Val from_bf16(Writer& w, Val x) {
  const Val wide = w.cast("arith.extui", x, Elem::kI32);
  return w.floats(w.binary("arith.shli", wide, w.whole_like(wide, 16)));
}
// To the nearest, ties to even; a NaN stays one.
Val to_bf16(Writer& w, Val x) {
  const Val b = w.bits(x);
  const Val sixteen = w.whole_like(b, 16);
  const Val odd = w.binary("arith.andi", w.binary("arith.shrui", b, sixteen), w.whole_like(b, 1));
  const Val rounded = w.add(b, w.add(odd, w.whole_like(b, 0x7fff)));
  const Val quiet = w.binary("arith.ori", b, w.whole_like(b, 0x400000));
  const Val all = w.select(is_nan(w, x), quiet, rounded);
  return w.cast("arith.trunci", w.binary("arith.shrui", all, sixteen), Elem::kI16);
}

Val widened(Writer& w, DType from, Val x) {
  if (from == DType::kBF16) return from_bf16(w, x);
  if (from == DType::kF16) return narrow(w, "arith.extf", x, "i16", "f32", Elem::kF32);
  return x;
}

Val float_to_float(Writer& w, DType from, DType to, Val x) {
  x = widened(w, from, x);
  if (to == DType::kBF16) return to_bf16(w, x);
  if (to == DType::kF16) return narrow(w, "arith.truncf", x, "f32", "i16", Elem::kI16);
  return w.cast(to == DType::kF64 ? "arith.extf" : "arith.truncf", x, elem_of(to));
}

// Truncated; what 64 bits hold is reduced to the low ones, beyond them it is the type's end.
Val float_to_int(Writer& w, DType to, Val x) {
  constexpr double kEnd = 9223372036854775808.0;
  const Val too_high = w.compare("cmpf", "oge", x, w.like(x, kEnd));
  const Val too_low = w.compare("cmpf", "olt", x, w.like(x, -kEnd));
  const Val ordered = w.compare("cmpf", "ord", x, x);
  const Val beyond = w.binary("arith.ori", too_high, too_low);
  const Val fine =
      w.binary("arith.andi", ordered, w.binary("arith.xori", beyond, w.whole_like(beyond, 1)));
  const Val safe = w.select(fine, x, w.like(x, 0));
  const Val wide = w.cast("arith.fptosi", safe, Elem::kI64);
  const Val low = w.cast("arith.trunci", wide, elem_of(to));
  const Val most = w.whole_like(low, tile::int_identity(kMin, to));
  const Val least = w.whole_like(low, tile::int_identity(kMax, to));
  return w.select(too_high, most, w.select(too_low, least, low));
}

}  // namespace

std::string convert_refusal(const Target& target, DType from, DType to) {
  const auto known = [](DType d) {
    return plain_float(d) || half_float(d) || d == DType::kBool ||
           (is_int(d) && tessera::bits_of(d) >= 8);
  };
  const auto none = [&] {
    return fmt::format("convert from {} to {}", name_of(from), name_of(to));
  };
  if (from == to && known(from)) return "";
  if (!known(from) || !known(to)) return none();
  if ((from == DType::kF16 || to == DType::kF16) && !target.half)
    return "no instruction converts f16";
  if (half_float(to) && (from == DType::kF64 || (is_int(from) && tessera::bits_of(from) > 16)))
    return none();
  if (to == DType::kU64 && is_float(from)) return none();
  return "";
}

Val convert(Writer& w, DType from, DType to, Val x) {
  if (from == to) return x;
  if (is_float(from)) {
    if (is_float(to)) return float_to_float(w, from, to, x);
    x = widened(w, from, x);
    if (to == DType::kBool) return w.compare("cmpf", "une", x, w.like(x, 0));
    return float_to_int(w, to, x);
  }
  const bool is_unsigned = is_unsigned_int(from) || from == DType::kBool;
  if (is_float(to)) {
    const Elem wide = to == DType::kF64 ? Elem::kF64 : Elem::kF32;
    const Val y = w.cast(is_unsigned ? "arith.uitofp" : "arith.sitofp", x, wide);
    return half_float(to) ? float_to_float(w, DType::kF32, to, y) : y;
  }
  if (to == DType::kBool) return truth(w, x);
  const Elem elem = elem_of(to);
  if (bits_of(elem) < bits_of(x.elem)) return w.cast("arith.trunci", x, elem);
  return w.cast(is_unsigned ? "arith.extui" : "arith.extsi", x, elem);
}

std::string refusal(const Target& target, Function f, DType from, DType to) {
  if (f == kConvert) return convert_refusal(target, from, to);
  if (f == kSelect) return convert_refusal(target, from, from);
  if (is_float(from))
    return plain_float(from) ? float_refusal(target, f, from)
                             : fmt::format("{} of {}", name_of(f), name_of(from));
  if (std::string why = convert_refusal(target, from, from); !why.empty()) return why;
  return int_refusal(f, from);
}

Val apply(Writer& w, Function f, DType from, DType to, std::span<const Val> in) {
  if (f == kConvert) return convert(w, from, to, in[0]);
  if (f == kSelect) return w.select(in[0], in[1], in[2]);
  return is_float(from) ? floats(w, f, in) : ints(w, f, from, in);
}

}  // namespace tessera::codegen::mlir
