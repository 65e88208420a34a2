#include "tessera/kernels/cpu/isa/functions.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// ---- Two inputs

template <class T>
constexpr bool kIsFloat = T(0.5) != T(0);
template <class T>
constexpr bool kIsSigned = T(-1) < T(0);

template <class T>
struct UnsignedOf {
  using type = uint64_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};

// Integer arithmetic wraps: it is done unsigned.
#define TESSERA_WRAPPING(Name, op)                                     \
  struct Name {                                                        \
    template <class T>                                                 \
    TESSERA_INLINE T run(T a, T b) {                                   \
      if constexpr (kIsFloat<T>) {                                     \
        return a op b;                                                 \
      } else {                                                         \
        using U = typename UnsignedOf<T>::type;                        \
        return static_cast<T>(static_cast<U>(a) op static_cast<U>(b)); \
      }                                                                \
    }                                                                  \
  }
TESSERA_WRAPPING(Add, +);
TESSERA_WRAPPING(Sub, -);
TESSERA_WRAPPING(Mul, *);

#define TESSERA_BINARY(Name, expression) \
  struct Name {                          \
    template <class T>                   \
    TESSERA_INLINE auto run(T a, T b) {  \
      return expression;                 \
    }                                    \
  }
TESSERA_BINARY(Min, b != b ? b : (b < a ? b : a));  // NaN wins
TESSERA_BINARY(Max, b != b ? b : (a < b ? b : a));
TESSERA_BINARY(FloatDiv, a / b);
TESSERA_BINARY(And, T(a != 0 && b != 0));
TESSERA_BINARY(Or, T(a != 0 || b != 0));
TESSERA_BINARY(Xor, T((a != 0) != (b != 0)));
TESSERA_BINARY(BitAnd, a& b);
TESSERA_BINARY(BitOr, a | b);
TESSERA_BINARY(BitXor, a ^ b);
TESSERA_BINARY(Eq, uint8_t(a == b));
TESSERA_BINARY(Lt, uint8_t(a < b));
TESSERA_BINARY(Le, uint8_t(a <= b));
TESSERA_BINARY(Gt, uint8_t(a > b));
TESSERA_BINARY(Ge, uint8_t(a >= b));
TESSERA_BINARY(Prelu, a < T(0) ? a * b : a);

struct ShiftLeft {
  template <class T>
  TESSERA_INLINE T run(T a, T b) {
    const uint64_t by = static_cast<uint64_t>(b);
    return by > 63 ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << by);
  }
};
struct ShiftRight {
  template <class T>
  TESSERA_INLINE T run(T a, T b) {
    const uint64_t by = static_cast<uint64_t>(b);
    return static_cast<T>(a >> (by >= sizeof(T) * 8 ? sizeof(T) * 8 - 1 : by)) &
           (kIsSigned<T> || by < sizeof(T) * 8 ? T(-1) : T(0));
  }
};

template <class T>
TESSERA_INLINE double remainder_of(T a, T b) {
  return __builtin_fmod(static_cast<double>(a), static_cast<double>(b));
}
struct FloatRem {
  template <class T>
  TESSERA_INLINE T run(T a, T b) {
    return static_cast<T>(remainder_of(a, b));
  }
};
struct FloatMod {
  template <class T>
  TESSERA_INLINE T run(T a, T b) {
    const double r = remainder_of(a, b);
    return static_cast<T>(r != 0 && (r < 0) != (b < 0) ? r + static_cast<double>(b) : r);
  }
};

// Operands of bool: any byte but 0 is true.
template <class F>
struct OfBools {
  TESSERA_INLINE uint8_t run(uint8_t a, uint8_t b) {
    return F::run(static_cast<uint8_t>(a != 0), static_cast<uint8_t>(b != 0));
  }
};

// kA, kB: one element for all
template <class T, class F, bool kA, bool kB, class Y>
void binary_loop(int64_t n, const T* __restrict a, const T* __restrict b, Y* __restrict y) {
  const T first_a = a[0], first_b = b[0];
  for (int64_t i = 0; i < n; ++i) y[i] = F::run(kA ? first_a : a[i], kB ? first_b : b[i]);
}

template <class T, class F>
const char* binary(int64_t n, const void* const* in, uint32_t uniform, void* out, const double*) {
  using Y = decltype(F::run(T(), T()));
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  Y* y = static_cast<Y*>(out);
  if (uniform == 0)
    binary_loop<T, F, false, false>(n, a, b, y);
  else if (uniform == 1)
    binary_loop<T, F, true, false>(n, a, b, y);
  else
    binary_loop<T, F, false, true>(n, a, b, y);
  return nullptr;
}

template <class T>
TESSERA_INLINE T divided(T a, T b) {
  if constexpr (kIsSigned<T>)
    if (b == -1) return Sub::run(T(0), a);
  return a / b;
}
template <class T>
TESSERA_INLINE T rest(T a, T b) {
  if constexpr (kIsSigned<T>)
    if (b == -1) return 0;
  return a % b;
}
struct IntDiv {
  template <class T>
  TESSERA_INLINE T run(T a, T b) {
    return divided(a, b);
  }
};
struct IntRem {
  template <class T>
  TESSERA_INLINE T run(T a, T b) {
    return rest(a, b);
  }
};
struct IntMod {
  template <class T>
  TESSERA_INLINE T run(T a, T b) {
    const T r = rest(a, b);
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
};

template <class T, class F>
const char* dividing(int64_t n, const void* const* in, uint32_t uniform, void* out, const double*) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  const int64_t step_a = !(uniform & 1), step_b = !(uniform & 2);
  for (int64_t i = 0; i < n; ++i) {
    const T divisor = b[i * step_b];
    if (divisor == 0) return "an integer is divided by zero";
    y[i] = F::run(a[i * step_a], divisor);
  }
  return nullptr;
}

// Squares and square roots are what most exponents mean.
const char* pow_f32(int64_t n, const void* const* in, uint32_t uniform, void* out, const double*) {
  const float *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[1]);
  float* y = static_cast<float*>(out);
  const int64_t step_a = !(uniform & 1), step_b = !(uniform & 2);
  bool square = step_a == 1;
  for (int64_t i = 0; i < (step_b ? n : 1); ++i) square &= b[i] == 2.0f;
  if (square)
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * a[i];
  else
    for (int64_t i = 0; i < n; ++i) y[i] = __builtin_powf(a[i * step_a], b[i * step_b]);
  return nullptr;
}
const char* pow_f64(int64_t n, const void* const* in, uint32_t uniform, void* out, const double*) {
  const double *a = static_cast<const double*>(in[0]), *b = static_cast<const double*>(in[1]);
  const int64_t step_a = !(uniform & 1), step_b = !(uniform & 2);
  for (int64_t i = 0; i < n; ++i)
    static_cast<double*>(out)[i] = __builtin_pow(a[i * step_a], b[i * step_b]);
  return nullptr;
}
int64_t int_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (uint64_t base = static_cast<uint64_t>(a); b; b >>= 1, base *= base)
    if (b & 1) result *= base;
  return static_cast<int64_t>(result);
}
template <class T>
const char* pow_int(int64_t n, const void* const* in, uint32_t uniform, void* out, const double*) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  const int64_t step_a = !(uniform & 1), step_b = !(uniform & 2);
  for (int64_t i = 0; i < n; ++i)
    static_cast<T*>(out)[i] = static_cast<T>(
        int_pow(static_cast<int64_t>(a[i * step_a]), static_cast<int64_t>(b[i * step_b])));
  return nullptr;
}

// ---- One input; p: the parameters

#define TESSERA_UNARY(Name, expression)                         \
  struct Name {                                                 \
    template <class T>                                          \
    TESSERA_INLINE auto run(T a, [[maybe_unused]] const T* p) { \
      return expression;                                        \
    }                                                           \
  }
// As TESSERA_UNARY, by the names of the C library: `name`f for float.
#define TESSERA_LIBM(Name, name)                                                       \
  struct Name {                                                                        \
    TESSERA_INLINE float run(float a, const float*) { return __builtin_##name##f(a); } \
    TESSERA_INLINE double run(double a, const double*) { return __builtin_##name(a); } \
  }
TESSERA_UNARY(Neg, Sub::run(T(0), a));
TESSERA_UNARY(FloatNeg, -a);
TESSERA_UNARY(Abs, a < T(0) ? Sub::run(T(0), a) : a);
TESSERA_UNARY(FloatAbs, abs_of(a));
TESSERA_UNARY(Sign, a != a ? a : T(T(a > T(0)) - T(a < T(0))));
TESSERA_LIBM(Floor, floor);
TESSERA_LIBM(Ceil, ceil);
TESSERA_LIBM(Round, nearbyint);
TESSERA_LIBM(Trunc, trunc);
TESSERA_LIBM(Sqrt, sqrt);
TESSERA_LIBM(Sin, sin);
TESSERA_LIBM(Cos, cos);
TESSERA_LIBM(Tan, tan);
TESSERA_LIBM(Asin, asin);
TESSERA_LIBM(Acos, acos);
TESSERA_LIBM(Atan, atan);
TESSERA_LIBM(Sinh, sinh);
TESSERA_LIBM(Cosh, cosh);
TESSERA_LIBM(Asinh, asinh);
TESSERA_LIBM(Acosh, acosh);
TESSERA_LIBM(Atanh, atanh);
TESSERA_UNARY(Same, a);
TESSERA_UNARY(Not, T(a == T(0)));
TESSERA_UNARY(BitNot, T(~a));
TESSERA_UNARY(IsNan, uint8_t(a != a));
TESSERA_UNARY(IsInf, uint8_t((a == T(__builtin_inf()) && p[0] != T(0)) ||
                             (a == -T(__builtin_inf()) && p[1] != T(0))));
TESSERA_UNARY(Reciprocal, T(1) / a);
TESSERA_UNARY(IntRelu, a < T(0) ? T(0) : a);
TESSERA_UNARY(LeakyRelu, a < T(0) ? p[0] * a : a);
TESSERA_UNARY(Softsign, a / (T(1) + abs_of(a)));
TESSERA_UNARY(ThresholdedRelu, a > p[0] || a != a ? a : T(0));
TESSERA_UNARY(Shrink, a<-p[1] ? a + p[0] : a> p[1] ? a - p[0] : T(0));

template <class T, class F>
const char* unary(int64_t n, const void* const* in, uint32_t, void* out, const double* params) {
  T p[kMaxParams];
  for (int i = 0; i < kMaxParams; ++i) p[i] = static_cast<T>(params[i]);
  using Y = decltype(F::run(T(), p));
  const T* __restrict a = static_cast<const T*>(in[0]);
  Y* __restrict y = static_cast<Y*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = F::run(a[i], static_cast<const T*>(p));
  return nullptr;
}

// By vectors of floats; p: the parameters.
#define TESSERA_VECTOR(Name, vector, scalar)                                                 \
  struct Name {                                                                              \
    TESSERA_INLINE Vec run(Vec a, [[maybe_unused]] const Vec* p) { return vector; }          \
    TESSERA_INLINE double run(double a, [[maybe_unused]] const double* p) { return scalar; } \
  }
TESSERA_VECTOR(Relu, max_of(Vec{}, a), (a < 0 ? 0 : a));
TESSERA_VECTOR(HardSigmoid, clamped(p[0] * a + p[1], 0, 1), clamped(p[0] * a + p[1], 0, 1));
TESSERA_VECTOR(HardSwish, a* clamped(p[0] * a + p[1], 0, 1), a* clamped(p[0] * a + p[1], 0, 1));
TESSERA_VECTOR(Exp, exp_of(a), exp_of(a));
TESSERA_VECTOR(Log, log_of(a), log_of(a));
TESSERA_VECTOR(Tanh, tanh_of(a), tanh_of(a));
TESSERA_VECTOR(Erf, erf_of(a), erf_of(a));
TESSERA_VECTOR(Sigmoid, sigmoid_of(a), sigmoid_of(a));
TESSERA_VECTOR(Gelu, gelu_of(a), 0.5 * a * (1 + erf_of(a * 0.70710678118654752440)));
TESSERA_VECTOR(GeluTanh, gelu_tanh_of(a),
               0.5 * a * (1 + tanh_of(0.79788456080286535588 * (a + 0.044715 * a * a * a))));
TESSERA_VECTOR(Silu, a / (1.0f + exp_normal(p[0] * -a)), a* sigmoid_of(p[0] * a));
TESSERA_VECTOR(Elu, where_less(a, Vec{}, p[0] * (exp_normal(a) - 1.0f), a),
               a < 0 ? p[0] * (exp_of(a) - 1) : a);
TESSERA_VECTOR(Selu, p[1] * where_less(Vec{}, a, a, p[0] * (exp_normal(a) - 1.0f)),
               p[1] * (a > 0 ? a : p[0] * (exp_of(a) - 1)));
TESSERA_VECTOR(Celu, where_less(a, Vec{}, p[0] * (exp_normal(a / p[0]) - 1.0f), a),
               a < 0 ? p[0] * (exp_of(a / p[0]) - 1) : a);
TESSERA_VECTOR(Softplus, softplus_of(a), softplus_of(a));
TESSERA_VECTOR(Mish, mish_of(a), a* tanh_of(softplus_of(a)));

template <class F>
const char* vectored(int64_t n, const void* const* in, uint32_t, void* out, const double* params) {
  Vec p[kMaxParams];
  for (int i = 0; i < kMaxParams; ++i) p[i] = splat(static_cast<float>(params[i]));
  const float* a = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, F::run(load(a + i), p));
  if (i < n) {
    const Part part(static_cast<int>(n - i));
    part.store(y + i, F::run(part.load(a + i), p));
  }
  return nullptr;
}

// ---- Moving elements

struct Raw16 {
  uint64_t halves[2];
};

template <class T>
const char* copy(int64_t n, const void* const* in, uint32_t uniform, void* out, const double*) {
  const T* __restrict x = static_cast<const T*>(in[0]);
  T* __restrict y = static_cast<T*>(out);
  if (uniform == 0) {
    __builtin_memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
  } else {
    const T value = x[0];
    for (int64_t i = 0; i < n; ++i) y[i] = value;
  }
  return nullptr;
}

template <class T, bool kA, bool kB>
void select_loop(int64_t n, const uint8_t* __restrict p, const T* __restrict a,
                 const T* __restrict b, T* __restrict y) {
  const T first_a = a[0], first_b = b[0];
  for (int64_t i = 0; i < n; ++i) y[i] = p[i] ? (kA ? first_a : a[i]) : (kB ? first_b : b[i]);
}

template <class T>
const char* select(int64_t n, const void* const* in, uint32_t uniform, void* out, const double*) {
  const uint8_t* p = static_cast<const uint8_t*>(in[0]);
  const T *a = static_cast<const T*>(in[1]), *b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  if (uniform & 1)
    return copy<T>(n, in + (p[0] ? 1 : 2), uniform >> (p[0] ? 1 : 2) & 1, out, nullptr);
  if (uniform == 0)
    select_loop<T, false, false>(n, p, a, b, y);
  else if (uniform == 2)
    select_loop<T, true, false>(n, p, a, b, y);
  else if (uniform == 4)
    select_loop<T, false, true>(n, p, a, b, y);
  else
    select_loop<T, true, true>(n, p, a, b, y);
  return nullptr;
}

// ---- The table

struct LoopTable {
  LoopFn fn[kFunctions][kComputes] = {};

  constexpr void set(Function f, Compute c, LoopFn loop) {
    fn[static_cast<int>(f)][static_cast<int>(c)] = loop;
  }
  template <class F>
  constexpr void binary_floats(Function f) {
    set(f, Compute::kF32, binary<float, F>);
    set(f, Compute::kF64, binary<double, F>);
  }
  template <class F>
  constexpr void binary_ints(Function f) {
    set(f, Compute::kI32, binary<int32_t, F>);
    set(f, Compute::kI64, binary<int64_t, F>);
    set(f, Compute::kU64, binary<uint64_t, F>);
  }
  template <class F>
  constexpr void binary_all(Function f) {
    binary_floats<F>(f);
    binary_ints<F>(f);
  }
  template <class F>
  constexpr void binary_bools(Function f) {
    set(f, Compute::kBool, binary<uint8_t, OfBools<F>>);
  }
  template <class F>
  constexpr void dividing_ints(Function f) {
    set(f, Compute::kI32, dividing<int32_t, F>);
    set(f, Compute::kI64, dividing<int64_t, F>);
    set(f, Compute::kU64, dividing<uint64_t, F>);
  }
  template <class F>
  constexpr void floats(Function f) {
    set(f, Compute::kF32, unary<float, F>);
    set(f, Compute::kF64, unary<double, F>);
  }
  template <class F>
  constexpr void by_vectors(Function f) {
    set(f, Compute::kF32, vectored<F>);
    set(f, Compute::kF64, unary<double, F>);
  }
  template <class F>
  constexpr void ints(Function f) {
    set(f, Compute::kI32, unary<int32_t, F>);
    set(f, Compute::kI64, unary<int64_t, F>);
    set(f, Compute::kU64, unary<uint64_t, F>);
  }

  constexpr LoopTable() {
    using enum Function;
    set(kCopy, Compute::kRaw1, copy<uint8_t>);
    set(kCopy, Compute::kRaw2, copy<uint16_t>);
    set(kCopy, Compute::kRaw4, copy<uint32_t>);
    set(kCopy, Compute::kRaw8, copy<uint64_t>);
    set(kCopy, Compute::kRaw16, copy<Raw16>);
    set(kSelect, Compute::kRaw1, select<uint8_t>);
    set(kSelect, Compute::kRaw2, select<uint16_t>);
    set(kSelect, Compute::kRaw4, select<uint32_t>);
    set(kSelect, Compute::kRaw8, select<uint64_t>);
    set(kSelect, Compute::kRaw16, select<Raw16>);
    binary_all<Add>(kAdd);
    binary_all<Sub>(kSub);
    binary_all<Mul>(kMul);
    binary_all<Min>(kMin);
    binary_all<Max>(kMax);
    binary_all<Eq>(kEq);
    binary_all<Lt>(kLt);
    binary_all<Le>(kLe);
    binary_all<Gt>(kGt);
    binary_all<Ge>(kGe);
    binary_all<Prelu>(kPrelu);
    binary_floats<FloatDiv>(kDiv);
    binary_floats<FloatMod>(kMod);
    binary_floats<FloatRem>(kRem);
    dividing_ints<IntDiv>(kDiv);
    dividing_ints<IntMod>(kMod);
    dividing_ints<IntRem>(kRem);
    set(kPow, Compute::kF32, pow_f32);
    set(kPow, Compute::kF64, pow_f64);
    set(kPow, Compute::kI32, pow_int<int32_t>);
    set(kPow, Compute::kI64, pow_int<int64_t>);
    set(kPow, Compute::kU64, pow_int<uint64_t>);
    binary_ints<And>(kAnd);
    binary_ints<Or>(kOr);
    binary_ints<Xor>(kXor);
    binary_ints<BitAnd>(kBitAnd);
    binary_ints<BitOr>(kBitOr);
    binary_ints<BitXor>(kBitXor);
    binary_ints<ShiftLeft>(kShiftLeft);
    binary_ints<ShiftRight>(kShiftRight);
    floats<FloatNeg>(kNeg);
    ints<Neg>(kNeg);
    floats<FloatAbs>(kAbs);
    ints<Abs>(kAbs);
    floats<Sign>(kSign);
    ints<Sign>(kSign);
    floats<Floor>(kFloor);
    floats<Ceil>(kCeil);
    floats<Round>(kRound);
    floats<Trunc>(kTrunc);
    ints<Same>(kFloor);
    ints<Same>(kCeil);
    ints<Same>(kRound);
    ints<Same>(kTrunc);
    floats<Sqrt>(kSqrt);
    by_vectors<Exp>(kExp);
    by_vectors<Log>(kLog);
    floats<Sin>(kSin);
    floats<Cos>(kCos);
    floats<Tan>(kTan);
    floats<Asin>(kAsin);
    floats<Acos>(kAcos);
    floats<Atan>(kAtan);
    floats<Sinh>(kSinh);
    floats<Cosh>(kCosh);
    by_vectors<Tanh>(kTanh);
    floats<Asinh>(kAsinh);
    floats<Acosh>(kAcosh);
    floats<Atanh>(kAtanh);
    by_vectors<Erf>(kErf);
    binary_bools<And>(kAnd);
    binary_bools<Or>(kOr);
    binary_bools<Xor>(kXor);
    binary_bools<Eq>(kEq);
    binary_bools<Lt>(kLt);
    binary_bools<Le>(kLe);
    binary_bools<Gt>(kGt);
    binary_bools<Ge>(kGe);
    ints<Not>(kNot);
    set(kNot, Compute::kBool, unary<uint8_t, Not>);
    ints<BitNot>(kBitNot);
    floats<IsNan>(kIsNan);
    floats<IsInf>(kIsInf);
    floats<Reciprocal>(kReciprocal);
    by_vectors<Relu>(kRelu);
    ints<IntRelu>(kRelu);
    by_vectors<Sigmoid>(kSigmoid);
    by_vectors<Gelu>(kGelu);
    by_vectors<GeluTanh>(kGeluTanh);
    by_vectors<Silu>(kSilu);
    by_vectors<HardSigmoid>(kHardSigmoid);
    by_vectors<HardSwish>(kHardSwish);
    floats<LeakyRelu>(kLeakyRelu);
    by_vectors<Elu>(kElu);
    by_vectors<Selu>(kSelu);
    by_vectors<Celu>(kCelu);
    by_vectors<Softplus>(kSoftplus);
    floats<Softsign>(kSoftsign);
    by_vectors<Mish>(kMish);
    floats<ThresholdedRelu>(kThresholdedRelu);
    floats<Shrink>(kShrink);
  }
};
constexpr LoopTable kLoops;

}  // namespace

LoopFn loop_for(Function function, Compute compute) {
  return kLoops.fn[static_cast<int>(function)][static_cast<int>(compute)];
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
