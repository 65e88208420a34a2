// Types of values: a tensor of a dtype and a shape, or a sequence, an optional or a map of such.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/result.h"
#include "tessera/op/expr.h"

namespace tessera::op {

using Shape = std::vector<Expr>;
using Dims = std::vector<int64_t>;

enum class TypeKind : uint8_t { kTensor, kSequence, kOptional, kMap };

struct Type {
  TypeKind kind = TypeKind::kTensor;
  DType dtype = DType::kF32;   // of a tensor; of a map's keys
  std::optional<Shape> shape;  // of a tensor; nullopt: rank unknown until it has been computed
  std::shared_ptr<const Type> element;  // of a sequence, an optional, a map's values

  static Type tensor(DType dtype, Shape shape) {
    return {TypeKind::kTensor, dtype, std::move(shape), nullptr};
  }
  static Type unranked(DType dtype) { return {TypeKind::kTensor, dtype, std::nullopt, nullptr}; }
  static Type sequence(Type element) {
    return {TypeKind::kSequence, DType::kF32, std::nullopt,
            std::make_shared<const Type>(std::move(element))};
  }
  static Type optional(Type element) {
    return {TypeKind::kOptional, DType::kF32, std::nullopt,
            std::make_shared<const Type>(std::move(element))};
  }

  bool is_tensor() const { return kind == TypeKind::kTensor; }
  bool ranked() const { return is_tensor() && shape.has_value(); }
  int rank() const { return static_cast<int>(shape->size()); }  // @pre ranked()
  const Expr& dim(int axis) const { return (*shape)[static_cast<size_t>(axis)]; }
  // All sizes are numbers.
  bool is_static() const;
  // @pre is_static()
  Dims dims() const;
  // "f32[1,3,2*s]", "seq<f32[*]>", "opt<...>"; parse(str()) == *this.
  std::string str() const;
  static Result<Type> parse(std::string_view text);

  friend bool operator==(const Type& a, const Type& b);
};

// Product of the sizes; kOutOfRange where one is negative or the product does not fit.
Result<int64_t> element_count(const Dims& dims);
// The product as an expression.
Expr element_count(const Shape& shape);
std::string to_string(const Dims& dims);    // "1x3x224x224"; "scalar" for rank 0
std::string to_string(const Shape& shape);  // "[1,3,2*s]"

}  // namespace tessera::op
