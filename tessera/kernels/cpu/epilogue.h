// Steps behind a matrix-like result as an Epilogue.
#pragma once

#include <string>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/epilogue_args.h"

namespace tessera::kernels::cpu {

// The anchor's result as a matrix. Its columns are the last axis, or axis 1 if it is channels-last;
// its rows all other axes, in order.
struct ResultShape {
  Dims dims;  // logical
  bool channels_last = false;
};

// Why the problem's steps are no chain of f32 functions that an epilogue can hold; empty if they
// are, or if there are none. A chain: each step reads the result before it, once, and at most one
// input of the problem, which is a scalar, one value per column or per row, or of the result's
// shape: row-major with any stride between rows, or of output 0's layout. Only the last result
// leaves the group.
std::string no_epilogue(const Problem& p, const ResultShape& shape);

// @pre no_epilogue(p, shape).empty(). Appends the operands' ranges to `arguments`, to which the
// steps refer by position, and fills `epilogue`.
void make_epilogue(const Problem& p, const ResultShape& shape, std::vector<Argument>& arguments,
                   Epilogue& epilogue);

}  // namespace tessera::kernels::cpu
