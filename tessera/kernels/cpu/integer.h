// What the rows of products of 8-bit integers have in common: zero points, what is behind the sums,
// and how weights are packed.
#pragma once

#include "tessera/kernels/cpu/epilogue.h"
#include "tessera/kernels/cpu/integer_args.h"

namespace tessera::kernels::cpu {

// dot_integer or conv_integer: inputs x, w, x_zero?, w_zero?, bias? of which x and w are of 8 bits,
// x_zero one element, and w_zero one or one for each of `columns`.
Reason check_integer(const Problem& p, int64_t columns);

// Operands of conv_integer with constant weights and at most `axes` spatial axes; fills `s` if that
// is so. What check_integer asks is asked apart.
Reason check_integer_conv(const Problem& p, int axes, ConvShape& s);

// Why an IntegerResult cannot hold the problem's steps; empty if it can. They are a conversion to
// f32, steps of an epilogue, and a quantisation in f32 to u8 or i8 with one scale, of which the
// last two may be missing.
std::string no_integer_result(const Problem& p, const ResultShape& shape);
// Appends the ranges of zero points, bias and steps. @pre check_integer and no_integer_result say
// yes
void make_integer(const Problem& p, const ResultShape& shape, std::vector<Argument>& arguments,
                  IntegerTerms& terms, IntegerResult& result);
NumericClass integer_class(const Problem& p);

// A multiple of 64.
int64_t packed_bytes(const IntegerPack& pack);
// The matrix from `w` on.
void pack_integer(const IntegerPack& pack, const uint8_t* w, uint8_t* packed);
// How weights of the problem are moved and stored.
void set_signs(const Problem& p, IntegerPack& pack);

}  // namespace tessera::kernels::cpu
