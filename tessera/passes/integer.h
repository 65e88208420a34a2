// conv(dequantize(x, s, z), dequantize(w, t, u), bias)
//                                 -> convert(conv_integer(x, w, z, u)) * (s t) + bias, and so for
//                                 dot
// quantize(dequantize(x, s, z), s, z)    -> x
// quantize(f(dequantize(x, s, z)), s, z) -> f(x) where f moves or selects elements
//
// The sum of integers is exact; in f32 it has the roundings of each dequantised element and of the
// sum: both are within the error budget of the product in f32, which is all that the model asks
// for. What is quantised behind it may differ by one step where that falls between two.
//
// Must not fire for other types than 8 bits and f32, for scales along other axes than the result's
// channels, nor where a sum may not fit 32 bits. Comes before constants are folded, which turns
// quantised weights into floats.
#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

void integer(Rewriter& rewriter);

}  // namespace tessera::passes
