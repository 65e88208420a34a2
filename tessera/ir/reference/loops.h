// Loops shared by reference functions.
#pragma once

#include "tessera/ir/reference/interpreter.h"
#include "tessera/op/index.h"

namespace tessera::ir::reference {

using op::broadcast_strides;
using op::Index;

// Copies element `source` of `from` to element `target` of `to`; any dtype (strings and packed ones
// included), equal on both.
void copy_element(const Tensor& from, int64_t source, Tensor& to, int64_t target);

// All elements (not complex, not strings) as doubles.
std::vector<double> to_doubles(const Tensor& t);

// One tensor as the only result.
inline Result<std::vector<Value>> one(Tensor t) { return std::vector<Value>{Value(std::move(t))}; }

}  // namespace tessera::ir::reference
