// Reading arithmetic off a graph: constants by value, products and polynomials whatever the order
// in which they are written.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

// The number that all elements of a constant are; nullopt for others, and for what is empty.
std::optional<double> number(const Site& at, ir::ValueId id);
// Equal up to what rounding to `dtype` explains: four units in the last place.
bool about(DType dtype, double value, double expected);

// coefficient * factors[0] * factors[1] * ..., as `node` computes it through mul, neg and division
// by a number. Values in between that others read too are factors.
struct Product {
  double coefficient = 1;
  std::vector<ir::ValueId> factors;
  std::vector<const ir::Node*> nodes;  // without `node` itself
};
Product product(const Site& at, const ir::Node& node);

// c[0] + c[1] x + c[2] x^2 + ...
inline constexpr size_t kDegree = 4;
using Polynomial = std::array<double, kDegree + 1>;
// Value `id` as a polynomial of value `x`, computed through add, sub, mul, neg, pow and division by
// a number; what takes part is appended to `nodes`. nullopt where it is none, of a higher degree,
// or a value in between is read elsewhere, too.
std::optional<Polynomial> polynomial(const Site& at, ir::ValueId id, ir::ValueId x,
                                     std::vector<const ir::Node*>& nodes);

// If `id` is the mean of a value over some of its axes, which are kept as 1: that value and the
// axes, in rising order.
struct Mean {
  ir::ValueId of = ir::kAbsent;
  std::vector<int> axes;
  bool keepdims = true;
  std::vector<const ir::Node*> nodes;
};
std::optional<Mean> mean_of(const Site& at, const ir::Node& node);

}  // namespace tessera::passes
