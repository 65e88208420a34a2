// The element-wise operators as functions that entries compute.
#pragma once

#include <array>
#include <string_view>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/elementwise_args.h"

namespace tessera::kernels::cpu {

// What the inputs of a function may be. kAnything: elements are only moved.
enum Domain : uint8_t { kFloats = 1, kInts = 2, kBools = 4, kAnything = 8 };

// A parameter of a function: an attribute of the operator.
struct FunctionParam {
  std::string_view attr = "";  // empty: always `otherwise`
  double otherwise = 0;
};

struct FunctionRow {
  std::string_view op;
  Function function;
  int inputs;
  int domain;
  NumericClass numeric = NumericClass::kExact;
  double flops = 1;  // per element
  std::array<FunctionParam, 3> params = {};
  bool yields_bool = false;
};

std::span<const FunctionRow> function_rows();
// The row of an operator; null if it is not element-wise.
const FunctionRow* function_row(std::string_view op);
// The function that an operator of the row is with these attributes.
Function function_of(const FunctionRow& row, const op::Attrs& attrs);
std::array<double, kMaxParams> params_of(const FunctionRow& row, const op::Attrs& attrs);

}  // namespace tessera::kernels::cpu
