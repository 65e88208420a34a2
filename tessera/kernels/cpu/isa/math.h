// Functions of vectors of floats, branch-free. Errors in units in the last place, held by
// math_test.cc: exp 1.5, log 1.5, tanh 2.5, erf 2.5, sigmoid 3.5 (where it is subnormal, it may be
// 0). Coefficients are minimax fits of the function that the comment names. For doubles: the C
// library's.
#pragma once

#include "tessera/kernels/cpu/isa/half.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

typedef int32_t VecI __attribute__((vector_size(kLanes * 4)));
TESSERA_INLINE VecI bits_of(Vec v) { return reinterpret_cast<VecI>(v); }
TESSERA_INLINE Vec float_of(VecI bits) { return reinterpret_cast<Vec>(bits); }

TESSERA_INLINE Vec abs_of(Vec x) { return float_of(bits_of(x) & 0x7fffffff); }
TESSERA_INLINE Vec with_sign(Vec magnitude, Vec sign) {
  return float_of(bits_of(magnitude) | (bits_of(sign) & INT32_MIN));
}
// `otherwise` too where a or b is NaN.
TESSERA_INLINE Vec where_less(Vec a, Vec b, Vec value, Vec otherwise) {
  return a < b ? value : otherwise;
}
// low <= high; NaN stays.
TESSERA_INLINE Vec clamped(Vec x, float low, float high) {
  return min_of(splat(high), max_of(splat(low), x));
}

// c[0] + c[1] x + c[2] x^2 + ...
template <int N>
TESSERA_INLINE Vec polynomial(const float (&c)[N], Vec x) {
  Vec sum = splat(c[N - 1]);
  TESSERA_UNROLL
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// Adding it to a float rounds that to an integer n and leaves n + 127, the exponent of 2^n, in the
// low bits.
constexpr float kRound = 12583039.0f;  // 1.5 * 2^23 + 127
// 2^n for n in [-126, 127]; 0 for -127, infinity for 128.
TESSERA_INLINE Vec power_of_two(Vec rounded) { return float_of(bits_of(rounded) << 23); }

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // products with n are exact
constexpr float kExp2[] = {
    1.0f,           6.931469756e-1f, 2.402224046e-1f, 5.550735275e-2f, 9.671622221e-3f,
    1.326463599e-3f};  // [-1/2, 1/2]
constexpr float kExp[] = {1.0f,          1.0f,          0.5f,         1.6666512e-1f,
                          4.1666187e-2f, 8.3695985e-3f, 1.3951717e-3f};  // [-ln(2)/2, ln(2)/2]

// 2^y to 1.5 ulp of the result where that is normal; below it may be 0.
TESSERA_INLINE Vec exp2_of(Vec y) {
#if defined(__AVX512F__)
  // y - round(y); 0 for infinities
  const Vec r = _mm512_maskz_reduce_ps(0xffff, y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return _mm512_maskz_scalef_ps(
      0xffff, polynomial(kExp2, r),
      _mm512_maskz_roundscale_ps(0xffff, y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  const Vec c = clamped(y, -127.0f, 128.0f), t = c + kRound;
  return polynomial(kExp2, c - (t - kRound)) * power_of_two(t);
#endif
}

// The n and r of e^x = 2^n e^r, |r| <= ln(2)/2. `rounded` is n + kRound.
struct Reduced {
  Vec rounded, n, r;
};
TESSERA_INLINE Reduced reduced(Vec x) {
  const Vec t = x * kLog2E + kRound, n = t - kRound;
  return {t, n, (x - n * kLn2High) - n * kLn2Low};
}

// e^x; results may be subnormal.
TESSERA_INLINE Vec exp_of(Vec x) {
  const Reduced e = reduced(clamped(x, -104.0f, 89.0f));
  const Vec p = polynomial(kExp, e.r);
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(0xffff, p, e.n);
#else
  // 2^n in two factors
  const VecI i = bits_of(e.rounded) - bits_of(splat(12582912.0f)) - 127, half = i >> 1;
  return p * float_of((half + 127) << 23) * float_of((i - half + 127) << 23);
#endif
}

// e^x; 0 where that is subnormal.
TESSERA_INLINE Vec exp_normal(Vec x) {
  const Reduced e = reduced(clamped(x, -88.0f, 88.8f));
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(0xffff, polynomial(kExp, e.r), e.n);
#else
  return polynomial(kExp, e.r) * power_of_two(e.rounded);
#endif
}

// log(m 2^e) = e ln(2) + log(m), m in [sqrt(1/2), sqrt(2))
TESSERA_INLINE Vec log_of(Vec x) {
  constexpr float kLog[] = {3.33333135e-1f,  -2.50000089e-1f, 2.00021192e-1f,
                            -1.66679963e-1f, 1.42195508e-1f,  -1.24055915e-1f,
                            1.18881747e-1f,  -1.16756409e-1f, 6.7466013e-2f};
  const Vec smallest = splat(1.17549435e-38f), zero{};
  const Vec scaled = where_less(x, smallest, x * 8388608.0f, x);
  const VecI bits = bits_of(scaled), e = (bits - 0x3f3504f3) >> 23;
  const Vec f = float_of(bits - (e << 23)) - 1.0f;
  const Vec n = __builtin_convertvector(e, Vec) - where_less(x, smallest, splat(23.0f), zero);
  const Vec s = f * f;
  const Vec tail = polynomial(kLog, f) * f * s - 0.5f * s - n * -kLn2Low;
  const Vec y = n * kLn2High + (f + tail);
  const Vec infinity = splat(__builtin_inff());
  const Vec special = x == zero ? -infinity : splat(__builtin_nanf(""));
  return x == infinity ? infinity : where_less(zero, x, y, special);
}

// log(1 + u), u in [0, 1]
TESSERA_INLINE Vec log1p_of(Vec u) {
  constexpr float kP[] = {0.9999999992f, 1.066415872f, 0.2382689658f, 0.003420496771f};
  constexpr float kQ[] = {1.0f, 1.566415746f, 0.6881463837f, 0.07532998608f};
  return u * polynomial(kP, u) / polynomial(kQ, u);
}

// m / (m + 2), m = e^2x - 1 = 2^n (e^u - 1) + (2^n - 1)
TESSERA_INLINE Vec tanh_of(Vec x) {
  constexpr float kTail[] = {0.5f, 1.6666512e-1f, 4.1666187e-2f, 8.3695985e-3f, 1.3951717e-3f};
  const Vec c = clamped(x + x, -18.2f, 18.2f), t = c * kLog2E + kRound, n = t - kRound;
  const Vec u = c - n * 0.69314718f, k = power_of_two(t);
  const Vec m = (polynomial(kTail, u) * u * u + u) * k + (k - 1.0f);
  return m / (m + 2.0f);
}

// 1 - 2^-g, g = -log2(erfc|x|) = |x| q(|x|), by (2^r - 1) / r as above
TESSERA_INLINE Vec erf_of(Vec x) {
  constexpr float kG[] = {-1.627907029f,   -9.184470352e-1f, -1.482881982e-1f, 2.767861868e-2f,
                          1.609261564e-4f, -2.372889111e-3f, 9.322860431e-4f,  -1.948413141e-4f,
                          2.241533068e-5f, -1.112321805e-6f};
  constexpr float kP[] = {6.93147188e-1f,  2.402264979e-1f, 5.550357118e-2f,
                          9.618237777e-3f, 1.339089052e-3f, 1.540359958e-4f};
  const Vec a = min_of(splat(3.92f), abs_of(x)), g = polynomial(kG, a) * a;
  const Vec t = g + kRound, r = g - (t - kRound), k = power_of_two(t);
  return with_sign((1.0f - k) - (polynomial(kP, r) * r) * k, x);
}

TESSERA_INLINE Vec sigmoid_of(Vec x) { return 1.0f / (1.0f + exp_normal(-x)); }

// x/2 (1 + erf(x / sqrt(2))) = (x + |x|)/2 - |x|/2 w, w = erfc(|x| / sqrt(2)) = 2^-g,
// g = |x| q(|x|)
TESSERA_INLINE Vec gelu_of(Vec x) {
  constexpr float kG[] = {-1.151106158f,    -4.591977041e-1f, -5.252075395e-2f, 7.069353034e-3f,
                          -1.004500235e-4f, -2.320993859e-4f, 6.305939944e-5f,  -8.756149052e-6f,
                          6.617964209e-7f,  -2.152788987e-8f};
  const Vec a = abs_of(x), c = min_of(splat(27.0f), a);
  const Vec g = polynomial(kG, min_of(splat(5.2f), c)) * c;
#if defined(__AVX512F__)
  const Vec w = exp2_of(g);
#else
  const Vec t = g + kRound;  // g > -127
  const Vec w = polynomial(kExp2, g - (t - kRound)) * power_of_two(t);
#endif
  const Vec h = 0.5f * x;
  return (a * 0.5f + h) - (0.5f * c) * w;
}

// x/2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3)
TESSERA_INLINE Vec gelu_tanh_of(Vec x) {
  constexpr float kSlope = -2 * 0.79788456f * kLog2E;
  const Vec y = x * (kSlope + (kSlope * 0.044715f) * (x * x));
  return x / (1.0f + exp2_of(y));
}

// max(x, 0) + log(1 + e^-|x|)
TESSERA_INLINE Vec softplus_of(Vec x) {
  return max_of(Vec{}, x) + log1p_of(exp_normal(-abs_of(x)));
}

// x tanh(log(1 + e^x)) = x m / (m + 2), m = e^x (e^x + 2)
TESSERA_INLINE Vec mish_of(Vec x) {
  const Vec e = exp_normal(min_of(splat(20.0f), x)), m = e * e + 2.0f * e;
  return x * (m / (m + 2.0f));
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
TESSERA_INLINE double clamped(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}
TESSERA_INLINE float abs_of(float x) { return float_of(bits_of(x) & 0x7fffffffu); }

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
