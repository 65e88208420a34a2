// The functions of one element, as the interpreter and simulated chips compute them.
#pragma once

#include "tessera/base/result.h"
#include "tessera/tile/functions.h"

namespace tessera::tile {

// An element of any type: floats in `f`, whole numbers and bools in `i` (u64 as its bits).
struct Element {
  double f = 0;
  int64_t i = 0;
};

// Rounded, or wrapped, to the type.
double round_to(DType dtype, double value);
int64_t wrap_to(DType dtype, int64_t value);

// function(in...) for inputs of type `from`, as an element of type `to`. kInvalidArgument where an
// integer is divided by zero.
Result<Element> apply(Function function, DType from, DType to, const Element* in);

}  // namespace tessera::tile
