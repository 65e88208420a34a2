// Steps behind a matrix-like result as an Epilogue.
#pragma once

#include <string>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/epilogue_args.h"

namespace tessera::kernels::cpu {

// How rows and columns of the kernel's result follow from the output's logical axes: columns are
// the axes [cols, rank) in row-major order, or axis 1 if the output is channels-last.
struct ResultShape {
  Dims dims;           // logical, of the anchor's result and of the output
  bool channels_last;  // columns: axis 1; else: the last axis
  int64_t ld;          // elements between the output's rows
};

// Why the problem's steps are no chain of f32 functions that an epilogue can hold; empty if they
// are. A chain: each step reads the result before it and at most one input of the problem, which is
// a scalar, one value per column or per row, or of the result's shape and layout.
std::string no_epilogue(const Problem& p, const ResultShape& shape);

// @pre no_epilogue(p, shape).empty(). Appends the operands' ranges to `arguments` (after which come
// no others that steps refer to) and fills `epilogue`.
void make_epilogue(const Problem& p, const ResultShape& shape, std::vector<Argument>& arguments,
                   Epilogue& epilogue);

}  // namespace tessera::kernels::cpu
