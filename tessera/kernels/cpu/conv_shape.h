// What the rows of convolutions have in common: the geometry of a problem, and how channels-last
// operands lie.
#pragma once

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/conv_args.h"

namespace tessera::kernels::cpu {

inline int64_t product(const int64_t* v) { return v[0] * v[1] * v[2]; }

// A window of one tap at distance 1: all pixels of the batch are one row.
bool is_flat(const ConvShape& s);
// @pre is_flat(s)
void flatten(ConvShape& s);

// Reads the geometry of conv(x, w, bias?). kInvalidArgument for attributes that cannot be.
Status fill_shape(const Problem& p, ConvShape& s);
// f32 operands and 1 to 3 spatial axes: of convolutions, transposed or not.
Reason check_conv_operands(const Problem& p);
// f32 operands, constant or not, 1 to 3 spatial axes; fills `s` if that is so.
Reason check_conv(const Problem& p, ConvShape& s);
double conv_flops(const Problem& p, const ConvShape& s);

// Why an operand is not channels-last with pixels `ld` elements apart (the channels of a pixel are
// neighbours, pixels follow each other in row-major order); empty, and `ld` is set, if it is.
std::string not_channels_last(const Operand& o, std::string_view name, int64_t& ld);

}  // namespace tessera::kernels::cpu
