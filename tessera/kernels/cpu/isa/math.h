// Functions of one float, branch-free, so that loops over them become vector code. Errors in units
// in the last place, held by math_test.cc: exp 1.5, log 1.5, tanh 2.5, erf 2.5, sigmoid 3.5 (where
// it is subnormal, it may be 0).
#pragma once

#include "tessera/kernels/cpu/isa/half.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

// e^x = 2^n e^r, |r| <= ln(2)/2; 2^n in two factors, so that results may be subnormal.
TESSERA_INLINE float exp_of(float x) {
  constexpr float kShift =
      12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const float below = x > 89.0f ? 89.0f : x;
  const float c = below < -104.0f ? -104.0f : below;
  const float t = c * 1.44269504f + kShift;
  const float n = t - kShift;
  const float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
  float q = 1.3951717e-3f;
  q = q * r + 8.3695985e-3f;
  q = q * r + 4.1666187e-2f;
  q = q * r + 1.6666512e-1f;
  q = q * r + 0.5f;
  const float e = (q * r) * r + r + 1.0f;
  const int32_t i = static_cast<int32_t>(bits_of(t) - bits_of(kShift));
  const int32_t half = i >> 1;
  return e * float_of(static_cast<uint32_t>(half + 127) << 23) *
         float_of(static_cast<uint32_t>(i - half + 127) << 23);
}

// log(m 2^e) = e ln(2) + log(m), m in [sqrt(1/2), sqrt(2))
TESSERA_INLINE float log_of(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const uint32_t bits = bits_of(scaled);
  const int32_t e = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  const float f = float_of(bits - (static_cast<uint32_t>(e) << 23)) - 1.0f;
  const float n = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
  float q = 6.7466013e-2f;
  q = q * f - 1.16756409e-1f;
  q = q * f + 1.18881747e-1f;
  q = q * f - 1.24055915e-1f;
  q = q * f + 1.42195508e-1f;
  q = q * f - 1.66679963e-1f;
  q = q * f + 2.00021192e-1f;
  q = q * f - 2.50000089e-1f;
  q = q * f + 3.33333135e-1f;
  const float s = f * f;
  const float tail = q * f * s - 0.5f * s - n * 2.12194440e-4f;
  const float y = n * 0.693359375f + (f + tail);
  const float infinity = __builtin_inff();
  const float special = x == 0.0f ? -infinity : __builtin_nanf("");
  const float finite = x > 0.0f ? y : special;
  return x == infinity ? infinity : finite;
}

TESSERA_INLINE float abs_of(float x) { return float_of(bits_of(x) & 0x7fffffffu); }
TESSERA_INLINE float with_sign(float magnitude, float sign) {
  return float_of((bits_of(magnitude) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}

// |x| < 0.625: x + x^3 p(x^2); beyond: 1 - 2 / (e^2x + 1)
TESSERA_INLINE float tanh_of(float x) {
  const float a = abs_of(x), s = x * x;
  float p = 2.1475370e-3f;
  p = p * s - 8.1826737e-3f;
  p = p * s + 2.1702968e-2f;
  p = p * s - 5.3947203e-2f;
  p = p * s + 1.33332103e-1f;
  p = p * s - 3.33333313e-1f;
  const float near = x + x * s * p;
  const float far = with_sign(1.0f - 2.0f / (exp_of(2.0f * a) + 1.0f), x);
  return a < 0.625f ? near : far;
}

// |x| < 0.93: x + x p(x^2); beyond: 1 - e^-(x + x q(x)), fitted to log(erfc)
TESSERA_INLINE float erf_of(float x) {
  const float a = abs_of(x), s = x * x;
  float p = 8.3167724e-5f;
  p = p * s - 8.1300112e-4f;
  p = p * s + 5.1999064e-3f;
  p = p * s - 2.6858941e-2f;
  p = p * s + 1.12836875e-1f;
  p = p * s - 3.76126319e-1f;
  p = p * s + 1.28379166e-1f;
  const float near = x + x * p;
  const float c = a > 4.0f ? 4.0f : a;
  float q = -2.36024653e-6f;
  q = q * c + 3.75265845e-5f;
  q = q * c - 2.37831031e-4f;
  q = q * c + 5.83499146e-4f;
  q = q * c + 1.65684812e-3f;
  q = q * c - 2.10716482e-2f;
  q = q * c + 1.04029566e-1f;
  q = q * c + 6.36156142e-1f;
  q = q * c + 1.28453791e-1f;
  const float far = with_sign(1.0f - exp_of(-(c + c * q)), x);
  return a < 0.93f ? near : a >= 0.93f ? far : x;
}

TESSERA_INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
TESSERA_INLINE float softplus_of(float x) {
  const float e = exp_of(-abs_of(x)), u = 1.0f + e;
  // What rounding 1 + e lost is given back to first order.
  const float l = log_of(u) + (e - (u - 1.0f)) / u;
  return (x < 0.0f ? 0.0f : x) + l;
}

TESSERA_INLINE double exp_of(double x) { return __builtin_exp(x); }
TESSERA_INLINE double log_of(double x) { return __builtin_log(x); }
TESSERA_INLINE double tanh_of(double x) { return __builtin_tanh(x); }
TESSERA_INLINE double erf_of(double x) { return __builtin_erf(x); }
TESSERA_INLINE double sigmoid_of(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }
TESSERA_INLINE double softplus_of(double x) {
  return (x < 0.0 ? 0.0 : x) + __builtin_log1p(__builtin_exp(-__builtin_fabs(x)));
}
TESSERA_INLINE double abs_of(double x) { return __builtin_fabs(x); }

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
