// Short notation for tile programs. Types and axes of results follow from the operands; the first
// mistake sticks, and finish() tells it.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/tile/program.h"

namespace tessera::tile {

class Builder {
 public:
  explicit Builder(std::string name) { program_.name = std::move(name); }

  // Axes in the order in which tiles shall have them.
  int axis(std::string name, Expr extent);
  void grid(int axis) { program_.grid.push_back(axis); }
  void whole(int axis) { program_.whole.push_back(axis); }
  int tensor(Tensor tensor);
  const Program& program() const { return program_; }
  DType dtype(int value) const { return program_.value(value).dtype; }
  const std::vector<int>& axes(int value) const { return program_.value(value).axes; }
  bool ok() const { return !error_; }
  void fail(Error e) {
    if (!error_) error_ = std::move(e);
  }
  // The axis as a subscript, or as a term of one.
  Expr at(int axis) const { return Expr::symbol(program_.axis(axis).name); }

  int constant(DType dtype, double value);
  int whole(DType dtype, int64_t value);  // of a type that is no float
  int constant_like(int value, double number) { return constant(dtype(value), number); }
  int index(int axis);
  int size(Expr size);
  int load(int tensor, std::vector<Subscript> at, std::optional<double> pad = {});
  void store(int tensor, std::vector<Subscript> at, int value);
  int map(Function function, std::initializer_list<int> in);
  // To another type; the value itself if it has it.
  int convert(int value, DType to);
  int reduce(Function function, int value, std::vector<int> over);
  // sum over `over` of a b, plus `c` unless it is kNone, in the type `sum`.
  int dot(int a, int b, int c, std::vector<int> over, DType sum);
  // The loop over the pieces of an axis. `carried` says which axes each carried value has. `body`
  // gets the carried values and yields the next ones.
  using Body = std::function<std::vector<int>(const std::vector<int>&)>;
  std::vector<int> loop(int axis, std::vector<int> in, const std::vector<std::vector<int>>& carried,
                        const Body& body);

  int add(int a, int b) { return map(Function::kAdd, {a, b}); }
  int sub(int a, int b) { return map(Function::kSub, {a, b}); }
  int mul(int a, int b) { return map(Function::kMul, {a, b}); }
  int div(int a, int b) { return map(Function::kDiv, {a, b}); }
  int max(int a, int b) { return map(Function::kMax, {a, b}); }
  int select(int condition, int a, int b) { return map(Function::kSelect, {condition, a, b}); }

  // @post verify(*result)
  Result<Program> finish();

 private:
  // A new value, with its axes in the order of the program's.
  int make(DType dtype, std::vector<int> axes);
  int emit(Instruction i, DType dtype, std::vector<int> axes);
  std::vector<int> axes_of(const std::vector<int>& values) const;
  std::vector<int> axes_of(const std::vector<Subscript>& at);

  Program program_;
  std::vector<std::vector<Instruction>> bodies_{1};  // by nesting
  std::optional<Error> error_;
};

}  // namespace tessera::tile
