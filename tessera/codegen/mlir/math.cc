// Functions of f32 as polynomials. Coefficients are minimax fits, as in kernels/cpu/isa/math.h.
#include <cmath>

#include "tessera/codegen/mlir/functions.h"

namespace tessera::codegen::mlir {
namespace {

// Adding it to a float rounds that to an integer n and leaves n + 127, the exponent of 2^n, in the
// low bits.
constexpr double kRound = 12583039;  // 1.5 * 2^23 + 127
constexpr int64_t kRoundBits = 0x4B400000 + 127;
constexpr double kLog2E = 1.44269504;
constexpr double kLn2High = 0.693359375, kLn2Low = -2.12194440e-4;
constexpr double kExp[] = {1.0,          1.0,          0.5,         1.6666512e-1,
                           4.1666187e-2, 8.3695985e-3, 1.3951717e-3};  // [-ln(2)/2, ln(2)/2]

// c[0] + c[1] x + c[2] x^2 + ...
Val polynomial(Writer& w, std::span<const double> c, Val x) {
  Val sum = w.like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = w.fma(sum, x, w.like(x, c[i]));
  return sum;
}
Val clamped(Writer& w, Val x, double low, double high) {
  return w.less_of(w.like(x, high), w.greater_of(w.like(x, low), x));
}
// 2^n for n in [-126, 127]; 0 for -127, infinity for 128.
Val power_of_two(Writer& w, Val rounded) {
  const Val b = w.bits(rounded);
  return w.floats(w.binary("arith.shli", b, w.whole_like(b, 23)));
}
Val abs_of(Writer& w, Val x) { return w.unary("math.absf", x); }

// p 2^n, where `rounded` is n + kRound and the result may be subnormal.
Val scaled(Writer& w, Val p, Val n, Val rounded) {
  if (w.target.masks && p.lanes == 32) {
    // One instruction for each register.
    const auto part = [&](Val v, int half) { return w.part(v, half * 16, 16); };
    return w.joined(scaled(w, part(p, 0), part(n, 0), rounded),
                    scaled(w, part(p, 1), part(n, 1), rounded));
  }
  if (w.target.masks && p.lanes == 16) {
    const Val all = w.whole(Elem::kI16, -1), current = w.whole(Elem::kI32, 4);
    const Val v = w.fresh(Elem::kF32, 16);
    const std::string t = Writer::type(v);
    w.line(
        "{} = llvm.call_intrinsic \"llvm.x86.avx512.mask.scalef.ps.512\"({}, {}, {}, {}, {}) : "
        "({}, {}, {}, i16, i32) -> {}",
        v, p, n, p, all, current, t, t, t, t);
    return v;
  }
  const Val bits = w.bits(rounded);
  const Val i = w.sub(bits, w.whole_like(bits, kRoundBits));
  const Val half = w.binary("arith.shrsi", i, w.whole_like(i, 1));
  const auto power = [&](Val e) {
    const Val biased = w.add(e, w.whole_like(e, 127));
    return w.floats(w.binary("arith.shli", biased, w.whole_like(e, 23)));
  };
  return w.mul(w.mul(p, power(half)), power(w.sub(i, half)));
}

}  // namespace

// e^x = 2^n e^r, |r| <= ln(2)/2
Val exp_of(Writer& w, Val x) {
  const Val c = clamped(w, x, -104, 89);
  const Val t = w.fma(c, w.like(x, kLog2E), w.like(x, kRound));
  const Val n = w.sub(t, w.like(x, kRound));
  const Val high = w.fma(n, w.like(x, -kLn2High), c);
  const Val r = w.fma(n, w.like(x, -kLn2Low), high);
  return scaled(w, polynomial(w, kExp, r), n, t);
}

// log(m 2^e) = e ln(2) + log(m), m in [sqrt(1/2), sqrt(2))
Val log_of(Writer& w, Val x) {
  constexpr double kLog[] = {3.33333135e-1,  -2.50000089e-1, 2.00021192e-1,
                             -1.66679963e-1, 1.42195508e-1,  -1.24055915e-1,
                             1.18881747e-1,  -1.16756409e-1, 6.7466013e-2};
  const Val zero = w.like(x, 0), one = w.like(x, 1);
  const Val tiny = w.compare("cmpf", "olt", x, w.like(x, 1.17549435e-38));
  const Val big = w.select(tiny, w.mul(x, w.like(x, 8388608)), x);
  const Val bits = w.bits(big);
  const Val e =
      w.binary("arith.shrsi", w.sub(bits, w.whole_like(bits, 0x3f3504f3)), w.whole_like(bits, 23));
  const Val m = w.floats(w.sub(bits, w.binary("arith.shli", e, w.whole_like(e, 23))));
  const Val f = w.sub(m, one);
  const Val n = w.sub(w.cast("arith.sitofp", e, Elem::kF32), w.select(tiny, w.like(x, 23), zero));
  const Val s = w.mul(f, f);
  const Val cubic = w.mul(w.mul(polynomial(w, kLog, f), f), s);
  const Val tail = w.fma(n, w.like(x, kLn2Low), w.fma(s, w.like(x, -0.5), cubic));
  const Val y = w.fma(n, w.like(x, kLn2High), w.add(f, tail));
  const Val infinity = w.like(x, HUGE_VAL);
  const Val special =
      w.select(w.compare("cmpf", "oeq", x, zero), w.like(x, -HUGE_VAL), w.like(x, NAN));
  const Val normal = w.select(w.compare("cmpf", "ogt", x, zero), y, special);
  return w.select(w.compare("cmpf", "oeq", x, infinity), infinity, normal);
}

// m / (m + 2), m = e^2x - 1 = 2^n (e^u - 1) + (2^n - 1)
Val tanh_of(Writer& w, Val x) {
  constexpr double kTail[] = {0.5, 1.6666512e-1, 4.1666187e-2, 8.3695985e-3, 1.3951717e-3};
  const Val one = w.like(x, 1), round = w.like(x, kRound);
  const Val c = clamped(w, w.add(x, x), -18.2, 18.2);
  const Val t = w.fma(c, w.like(x, kLog2E), round);
  const Val n = w.sub(t, round);
  const Val u = w.fma(n, w.like(x, -0.69314718), c);
  const Val k = power_of_two(w, t);
  const Val e = w.fma(w.mul(polynomial(w, kTail, u), u), u, u);
  const Val m = w.fma(e, k, w.sub(k, one));
  return w.div(m, w.add(m, w.like(x, 2)));
}

// 1 - 2^-g, g = -log2(erfc|x|) = |x| q(|x|), by (2^r - 1) / r
Val erf_of(Writer& w, Val x) {
  constexpr double kG[] = {-1.627907029,   -9.184470352e-1, -1.482881982e-1, 2.767861868e-2,
                           1.609261564e-4, -2.372889111e-3, 9.322860431e-4,  -1.948413141e-4,
                           2.241533068e-5, -1.112321805e-6};
  // Negative, as it is subtracted.
  constexpr double kP[] = {-6.93147188e-1,  -2.402264979e-1, -5.550357118e-2,
                           -9.618237777e-3, -1.339089052e-3, -1.540359958e-4};
  const Val one = w.like(x, 1), round = w.like(x, kRound);
  const Val a = w.less_of(w.like(x, 3.92), abs_of(w, x));
  const Val g = w.mul(polynomial(w, kG, a), a);
  const Val t = w.add(g, round), r = w.sub(g, w.sub(t, round)), k = power_of_two(w, t);
  const Val e = w.mul(polynomial(w, kP, r), r);
  const Val y = w.fma(e, k, w.sub(one, k));
  return w.binary("math.copysign", y, x);
}

}  // namespace tessera::codegen::mlir
