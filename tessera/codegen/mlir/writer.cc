#include "tessera/codegen/mlir/writer.h"

#include <algorithm>
#include <bit>

namespace tessera::codegen::mlir {

Elem elem_of(DType dtype) {
  if (dtype == DType::kBool) return Elem::kI1;
  if (dtype == DType::kF32) return Elem::kF32;
  if (dtype == DType::kF64) return Elem::kF64;
  const int bits = tessera::bits_of(dtype);
  return bits <= 8 ? Elem::kI8 : bits == 16 ? Elem::kI16 : bits == 32 ? Elem::kI32 : Elem::kI64;
}

int bits_of(Elem elem) {
  constexpr int kBits[] = {1, 8, 16, 32, 64, 32, 64, 64};
  return kBits[static_cast<int>(elem)];
}

std::string_view name_of(Elem elem) {
  constexpr std::string_view kNames[] = {"i1",  "i8",  "i16", "i32",
                                         "i64", "f32", "f64", "!llvm.ptr"};
  return kNames[static_cast<int>(elem)];
}

std::string Writer::type(Elem elem, int lanes) {
  if (lanes == 1) return std::string(name_of(elem));
  if (elem == Elem::kPointer) return fmt::format("!llvm.vec<{} x ptr>", lanes);
  return fmt::format("vector<{}x{}>", lanes, name_of(elem));
}

Val Writer::number(Elem elem, double value, int lanes) {
  Val v = fresh(elem, lanes);
  v.number = value == value;
  const std::string digits =
      elem == Elem::kF32
          ? fmt::format("0x{:08X}", std::bit_cast<uint32_t>(static_cast<float>(value)))
          : fmt::format("0x{:016X}", std::bit_cast<uint64_t>(value));
  if (lanes == 1)
    line("{} = arith.constant {} : {}", v, digits, type(v));
  else
    line("{} = arith.constant dense<{}> : {}", v, digits, type(v));
  return v;
}

Val Writer::whole(Elem elem, int64_t value, int lanes) {
  const Val v = fresh(elem, lanes);
  const std::string digits = elem != Elem::kI1 ? std::to_string(value) : value ? "true" : "false";
  if (lanes == 1)
    elem == Elem::kI1 ? line("{} = arith.constant {}", v, digits)
                      : line("{} = arith.constant {} : {}", v, digits, type(v));
  else
    line("{} = arith.constant dense<{}> : {}", v, digits, type(v));
  return v;
}

Val Writer::spread(const Val& v, int lanes) {
  if (v.lanes == lanes) return v;
  Val wide = fresh(v.elem, lanes);
  wide.number = v.number;
  line("{} = vector.broadcast {} : {} to {}", wide, v, type(v), type(wide));
  return wide;
}

void Writer::match(Val& a, Val& b) {
  const int lanes = std::max(a.lanes, b.lanes);
  a = spread(a, lanes);
  b = spread(b, lanes);
}

Val Writer::binary(std::string_view op, Val a, Val b) {
  match(a, b);
  const Val v = fresh(a.elem, a.lanes);
  line("{} = {} {}, {} : {}", v, op, a, b, type(v));
  return v;
}

Val Writer::unary(std::string_view op, Val a) {
  const Val v = fresh(a.elem, a.lanes);
  line("{} = {} {} : {}", v, op, a, type(v));
  return v;
}

Val Writer::compare(std::string_view op, std::string_view predicate, Val a, Val b) {
  match(a, b);
  const Val v = fresh(Elem::kI1, a.lanes);
  line("{} = arith.{} {}, {}, {} : {}", v, op, predicate, a, b, type(a));
  return v;
}

Val Writer::select(Val condition, Val a, Val b) {
  match(a, b);
  const int lanes = std::max(condition.lanes, a.lanes);
  a = spread(a, lanes);
  b = spread(b, lanes);
  const Val v = fresh(a.elem, lanes);
  if (condition.lanes == 1)
    line("{} = arith.select {}, {}, {} : {}", v, condition, a, b, type(v));
  else
    line("{} = arith.select {}, {}, {} : {}, {}", v, condition, a, b, type(condition), type(v));
  return v;
}

Val Writer::cast(std::string_view op, Val a, Elem to) {
  if (a.elem == to) return a;
  const Val v = fresh(to, a.lanes);
  line("{} = {} {} : {} to {}", v, op, a, type(a), type(v));
  return v;
}

Val Writer::fma(Val a, Val b, Val c) {
  if (!target.fma) return add(mul(a, b), c);
  const int lanes = std::max({a.lanes, b.lanes, c.lanes});
  a = spread(a, lanes);
  b = spread(b, lanes);
  c = spread(c, lanes);
  const Val v = fresh(a.elem, lanes);
  line("{} = math.fma {}, {}, {} : {}", v, a, b, c, type(v));
  return v;
}

namespace {

std::string lanes(int from, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += (k ? ", " : "") + std::to_string(from + k);
  return text;
}

}  // namespace

Val Writer::part(Val v, int from, int count) {
  const Val out = fresh(v.elem, count);
  if (count == 1)
    line("{} = vector.extract {}[{}] : {} from {}", out, v, from, name_of(v.elem), type(v));
  else
    line("{} = vector.shuffle {}, {} [{}] : {}, {}", out, v, v, lanes(from, count), type(v),
         type(v));
  return out;
}

Val Writer::joined(Val low, Val high) {
  const Val out = fresh(low.elem, low.lanes + high.lanes);
  line("{} = vector.shuffle {}, {} [{}] : {}, {}", out, low, high, lanes(0, out.lanes), type(low),
       type(high));
  return out;
}

Val Writer::bits(Val a) {
  return cast("arith.bitcast", a, a.elem == Elem::kF64 ? Elem::kI64 : Elem::kI32);
}
Val Writer::floats(Val a) {
  return cast("arith.bitcast", a, a.elem == Elem::kI64 ? Elem::kF64 : Elem::kF32);
}

}  // namespace tessera::codegen::mlir
