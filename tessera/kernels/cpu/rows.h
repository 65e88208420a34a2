// What kernels that work on rows have in common: which rows there are, and the steps behind them.
#pragma once

#include "tessera/kernels/cpu/epilogue.h"
#include "tessera/kernels/cpu/norm_args.h"

namespace tessera::kernels::cpu {

// The anchor's operands and results that are present are of one type, f32 or f64, in layouts that
// are orders of axes; result 0 is read by somebody.
void need_same_float(const Problem& p, Reason& why);

// The axes of input 0 and output 0 other than [first, last), merged, in the order in which output 0
// lies in memory; nothing if more than kMaxSpaceRank remain. @pre both have strides
std::optional<RowSpace> row_space(const Problem& p, size_t first, size_t last);

// How far neighbours along the axes [first, last) together lie apart; nothing if that is not one
// number. @pre o has strides
std::optional<int64_t> stride_along(const Operand& o, size_t first, size_t last);

// Why the steps cannot be applied to one row along axes from `first` on after the other; empty if
// they can.
std::string no_rows_epilogue(const Problem& p, size_t first);
// Of results whose rows lie next to each other. @pre no_rows_epilogue().empty()
ResultShape rows_shape(const Problem& p);

}  // namespace tessera::kernels::cpu
