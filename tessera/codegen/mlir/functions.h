// The functions of tile programs, written with what processors have. There are no calls: whatever
// has no instruction is a polynomial.
#pragma once

#include <span>

#include "tessera/base/result.h"
#include "tessera/codegen/mlir/writer.h"
#include "tessera/tile/functions.h"

namespace tessera::codegen::mlir {

// Why there is no code for the function on elements of `from` that yields `to`; empty if there is.
std::string refusal(const Target& target, tile::Function function, DType from, DType to);

// function(in...) as elements of `to`; inputs are of `from`, but for the condition of select.
// @pre refusal() is empty
Val apply(Writer& w, tile::Function function, DType from, DType to, std::span<const Val> in);

// Code for converting: refused and written as above.
std::string convert_refusal(const Target& target, DType from, DType to);
Val convert(Writer& w, DType from, DType to, Val in);

// Functions of f32, branch-free, the errors those of kernels/cpu/isa/math.h: exp and log 1.5 units
// in the last place, tanh and erf 2.5.
Val exp_of(Writer& w, Val x);
Val log_of(Writer& w, Val x);
Val tanh_of(Writer& w, Val x);
Val erf_of(Writer& w, Val x);

}  // namespace tessera::codegen::mlir
