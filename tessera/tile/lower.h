// Element-wise operators, written with the functions of tile programs: the steps of a fused group.
#pragma once

#include <string>
#include <vector>

#include "tessera/tile/builder.h"

namespace tessera::tile {

// Turns operators into instructions of a builder. Values are a problem's, numbered as op::Step
// numbers them. Narrow floats are kept as f32 between operators, other types as they are.
class Lowering {
 public:
  explicit Lowering(Builder& builder) : b_(builder) {}

  // Value `number` of the problem is this tile; its type is the problem's.
  void define(int number, int tile);
  // The result of an operator becomes value `number`. kUnimplemented: not element-wise, or not on
  // these types, with the reason.
  Status apply(const op::OpDef& op, const op::Attrs& attrs, std::span<const int> in, DType out,
               int number);
  // All steps of a problem, behind its anchor.
  Status apply_steps(const op::Problem& problem);
  // The tile of a value in a type; converted once.
  int tile(int number, DType dtype);
  // In the type it has been computed in.
  int tile(int number) const { return forms(number).front(); }
  bool has(int number) const {
    return number >= 0 && static_cast<size_t>(number) < values_.size() && !forms(number).empty();
  }

  op::NumericClass numeric() const { return numeric_; }

 private:
  struct Value {
    DType dtype = DType::kF32;
    std::vector<int> forms;  // tiles; all but the first are conversions of it
  };
  const std::vector<int>& forms(int number) const {
    return values_[static_cast<size_t>(number)].forms;
  }
  Result<DType> compute_type(const op::OpDef& op, std::span<const int> in) const;

  Builder& b_;
  std::vector<Value> values_;
  op::NumericClass numeric_ = op::NumericClass::kExact;
};

// Whether a float of this type is computed in f32.
bool is_narrow(DType dtype);

}  // namespace tessera::tile
