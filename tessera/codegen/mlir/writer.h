// Writes operations of MLIR as text, one a line. Values are scalars or vectors of one length;
// where a scalar meets a vector it is spread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tessera/base/dtype.h"
#include "tessera/codegen/mlir/target.h"

namespace tessera::codegen::mlir {

// Types of registers. Narrow floats are held as their bits.
enum class Elem : uint8_t { kI1, kI8, kI16, kI32, kI64, kF32, kF64, kPointer };

Elem elem_of(DType dtype);
int bits_of(Elem elem);
std::string_view name_of(Elem elem);

struct Val {
  int id = -1;
  Elem elem = Elem::kI64;
  int lanes = 1;        // 1: a scalar
  bool number = false;  // a constant, and no NaN
};

class Writer {
 public:
  explicit Writer(const Target& made_for) : target(made_for) {}

  const Target& target;
  const std::string& text() const { return text_; }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  // A region's beginning and end.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}}");
  }
  void otherwise() {
    --depth_;
    open("}} else {{");
  }

  // A value that the next line names.
  Val fresh(Elem elem, int lanes = 1) { return {next_++, elem, lanes, false}; }
  static std::string type(Elem elem, int lanes);
  static std::string type(const Val& v) { return type(v.elem, v.lanes); }

  Val number(Elem elem, double value, int lanes = 1);  // of floats
  Val whole(Elem elem, int64_t value, int lanes = 1);  // of integers
  Val like(const Val& v, double value) { return number(v.elem, value, v.lanes); }
  Val whole_like(const Val& v, int64_t value) { return whole(v.elem, value, v.lanes); }
  Val spread(const Val& v, int lanes);

  // "arith.addf" and the like, on operands of one type.
  Val binary(std::string_view op, Val a, Val b);
  Val unary(std::string_view op, Val a);
  Val compare(std::string_view op, std::string_view predicate, Val a, Val b);  // i1
  Val select(Val condition, Val a, Val b);
  Val cast(std::string_view op, Val a, Elem to);  // the type as it is if it is the same
  Val fma(Val a, Val b, Val c);                   // in two roundings where the target has none
  // Lanes [from, from + count) of a vector; two vectors as one.
  Val part(Val v, int from, int count);
  Val joined(Val low, Val high);
  Val bits(Val a);    // of a float, as an integer
  Val floats(Val a);  // and back

  Val add(Val a, Val b) { return binary(a.elem < Elem::kF32 ? "arith.addi" : "arith.addf", a, b); }
  Val sub(Val a, Val b) { return binary(a.elem < Elem::kF32 ? "arith.subi" : "arith.subf", a, b); }
  Val mul(Val a, Val b) { return binary(a.elem < Elem::kF32 ? "arith.muli" : "arith.mulf", a, b); }
  Val div(Val a, Val b) { return binary("arith.divf", a, b); }
  // a where it is greater (less), else b: b where either is NaN, as x86 has it.
  Val greater_of(Val a, Val b) { return select(compare("cmpf", "ogt", a, b), a, b); }
  Val less_of(Val a, Val b) { return select(compare("cmpf", "olt", a, b), a, b); }

 private:
  void match(Val& a, Val& b);

  std::string text_;
  int depth_ = 0;
  int next_ = 0;
};

}  // namespace tessera::codegen::mlir

// Values are written as MLIR names them.
template <>
struct fmt::formatter<tessera::codegen::mlir::Val> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const tessera::codegen::mlir::Val& v, Context& context) const {
    return fmt::format_to(context.out(), "%{}", v.id);
  }
};
