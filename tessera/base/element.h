// Reading, writing and converting elements whose type is known only at run time. Sub-byte elements
// are packed, lowest bits first; integers are two's complement; base needs no alignment. An index
// counts elements, not bytes. Strings are not elements in this sense: they read as 0 and are not
// written.
//
// The rules are those of ONNX's Cast, and where it leaves the result open:
//   float to integer    truncated; NaN gives 0; what int64 (for u64: uint64) can hold is reduced to
//   the target's low
//                       bits, as numpy does; beyond that the target's smallest or largest value
//   integer to integer  the low bits
//   anything to bool    whether it differs from zero; a stored bool other than 0 reads as 1
//   integer to float    rounded once, also from 64 bits
//   complex to others   the real part
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>

#include "tessera/base/dtype.h"
#include "tessera/base/float.h"

namespace tessera {

// The element's bits in the lowest bits_of(dtype) bits. @pre bits_of(dtype) is 1 to 64
uint64_t load_bits(DType dtype, const void* base, int64_t index);
void store_bits(DType dtype, void* base, int64_t index, uint64_t bits);

double load_f64(DType dtype, const void* base, int64_t index);
int64_t load_i64(DType dtype, const void* base, int64_t index);
uint64_t load_u64(DType dtype, const void* base, int64_t index);
std::complex<double> load_c128(DType dtype, const void* base, int64_t index);

// `cast` matters where the element is a float; components of complex elements are rounded to
// nearest even.
void store_f64(DType dtype, void* base, int64_t index, double value, FloatCast cast = {});
void store_i64(DType dtype, void* base, int64_t index, int64_t value, FloatCast cast = {});
void store_u64(DType dtype, void* base, int64_t index, uint64_t value, FloatCast cast = {});
void store_c128(DType dtype, void* base, int64_t index, std::complex<double> value,
                FloatCast cast = {});

// dst[i] = src[i] for i in [0, count), converted. The ranges must not overlap. Equal types are
// copied bit by bit, which keeps signalling NaNs and, in bool, brings any non-zero byte to 1.
void convert_elements(DType from, const void* src, DType to, void* dst, int64_t count,
                      FloatCast cast = {});

// Float to integer as above, for the integer types of 1 to 64 bits.
int64_t truncate_to_int(double value, int bits);
uint64_t truncate_to_uint(double value, int bits);

}  // namespace tessera
