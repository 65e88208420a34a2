// Sums of one row's products with a strip of columns. Compiled once per instruction set; the inner
// loops run over columns, of which there are always kStrip, and vectorise.
//
// Doubles hold products of operands (at most 48 bits) and sums of aligned addends exactly: an
// addend is an integer multiple of the unit of alignment, below 2^42 units.
#include "tessera/hal/sim/kernels.h"

namespace tessera::hal::sim::TESSERA_ISA_NAME {
namespace {

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

int32_t max_of(int32_t x, int32_t y) { return x > y ? x : y; }

// @pre -1022 <= exponent <= 1023
double power_of_2(int32_t exponent) {
  return bits_as<double>(static_cast<int64_t>(exponent + 1023) << 52);
}

// floor(log2 |x|) of a normal double; very low for zero.
int32_t exponent_of(double x) {
  return static_cast<int32_t>((bits_as<uint64_t>(x) >> 52) & 0x7ff) - 1023;
}

// That alignment sees of a finite sum; zeros count as 2^-126.
int32_t sum_exponent(float c, int32_t least) {
  const int32_t biased = static_cast<int32_t>((bits_as<uint32_t>(c) >> 23) & 0xff);
  return c == 0 ? -126 : max_of(biased - 127, least);
}

// To nearest even in a format that float32 contains; what is out of range is infinite.
float to_nearest(const Alignment& rule, double x) {
  if (rule.mantissa_bits == 23) return static_cast<float>(x);
  const double magic =
      1.5 * power_of_2(max_of(exponent_of(x), rule.least_exponent) - rule.mantissa_bits + 52);
  const double rounded = __builtin_copysign((x + magic) - magic, x);
  const double bound = power_of_2(rule.largest_exponent + 1);
  const double inf = __builtin_inf();
  return static_cast<float>(rounded >= bound ? inf : rounded <= -bound ? -inf : rounded);
}

float toward_zero(const Alignment& rule, double x) {
  const float nearest = static_cast<float>(x);
  const double magnitude = __builtin_fabs(x);
  const bool beyond = __builtin_fabs(static_cast<double>(nearest)) > magnitude;
  const uint32_t back = beyond & (magnitude < 0x1p128);
  const uint32_t mask = ~0u << (23 - rule.mantissa_bits);
  return bits_as<float>((bits_as<uint32_t>(nearest) - back) & mask);
}

void largest_exponents(const Operands& x, int first, int step, int32_t* exponents) {
  for (int p = first; p < x.products; p += step) {
    const int32_t a = x.a_exponents[p];
    const int32_t* b = x.b_exponents + p * kStrip;
    for (int j = 0; j < kStrip; ++j) exponents[j] = max_of(exponents[j], a + b[j]);
  }
}

// sums += the products in units of 1 / scales, cut off.
void add_cut_off(const Operands& x, int first, int step, const double* scales, double* sums) {
  for (int p = first; p < x.products; p += step) {
    const double a = x.a[p];
    if (a == 0) continue;
    const double* b = x.b + p * kStrip;
    for (int j = 0; j < kStrip; ++j) sums[j] += __builtin_trunc(a * b[j] * scales[j]);
  }
}

// The same for exact sums of `count` products each.
void add_exact_cut_off(const Operands& x, int count, const double* scales, double* sums) {
  alignas(64) double addends[kStrip];
  for (int first = 0; first < x.products; first += count) {
    for (int j = 0; j < kStrip; ++j) addends[j] = 0;
    for (int p = first; p < x.products && p < first + count; ++p)
      for (int j = 0; j < kStrip; ++j) addends[j] += x.a[p] * x.b[p * kStrip + j];
    for (int j = 0; j < kStrip; ++j) sums[j] += __builtin_trunc(addends[j] * scales[j]);
  }
}

void aligned(const Alignment& rule, const Operands& x, float* c) {
  alignas(64) int32_t exponents[kStrip];
  alignas(64) double scales[kStrip], sums[kStrip];
  for (int j = 0; j < kStrip; ++j) exponents[j] = sum_exponent(c[j], rule.least_exponent);
  largest_exponents(x, 0, 1, exponents);
  for (int j = 0; j < kStrip; ++j) {
    scales[j] = power_of_2(rule.fraction_bits - exponents[j]);
    sums[j] = __builtin_trunc(c[j] * scales[j]);
  }
  if (rule.exact > 1)
    add_exact_cut_off(x, rule.exact, scales, sums);
  else
    add_cut_off(x, 0, 1, scales, sums);
  if (rule.nearest) {
    for (int j = 0; j < kStrip; ++j)
      c[j] = to_nearest(rule, sums[j] * power_of_2(exponents[j] - rule.fraction_bits));
  } else {
    for (int j = 0; j < kStrip; ++j)
      c[j] = toward_zero(rule, sums[j] * power_of_2(exponents[j] - rule.fraction_bits));
  }
}

// Of a part of the products: sums in units of 2^(exponents - fraction_bits).
void add_part(const Alignment& rule, const Operands& x, int part, int32_t* exponents,
              double* sums) {
  alignas(64) double scales[kStrip];
  for (int j = 0; j < kStrip; ++j) exponents[j] = -900;
  largest_exponents(x, part, rule.parts, exponents);
  for (int j = 0; j < kStrip; ++j) {
    scales[j] = power_of_2(rule.fraction_bits - exponents[j]);
    sums[j] = 0;
  }
  add_cut_off(x, part, rule.parts, scales, sums);
}

// The exponent distance, held where power_of_2 and what it scales stay normal.
double shifted(double x, int32_t by) { return __builtin_floor(x * power_of_2(max_of(by, -900))); }

void two_steps(const Alignment& rule, const Operands& x, float* c) {
  alignas(64) int32_t exponents[kStrip], part_exponents[kStrip];
  alignas(64) double sums[kStrip], part_sums[kStrip];
  add_part(rule, x, 0, exponents, sums);
  for (int part = 1; part < rule.parts; ++part) {
    add_part(rule, x, part, part_exponents, part_sums);
    for (int j = 0; j < kStrip; ++j) {
      const int32_t e = max_of(exponents[j], part_exponents[j]);
      sums[j] = shifted(sums[j], exponents[j] - e) + shifted(part_sums[j], part_exponents[j] - e);
      exponents[j] = e;
    }
  }
  for (int j = 0; j < kStrip; ++j) {
    const int32_t of_c = sum_exponent(c[j], rule.least_exponent);
    const int32_t e = max_of(exponents[j], of_c);
    const double dot = shifted(sums[j], exponents[j] - e + rule.sum_bits - rule.fraction_bits);
    const double own = __builtin_floor(c[j] * power_of_2(rule.fraction_bits - e));
    const bool counts = rule.reach < 0 || of_c >= e - rule.reach;
    const double total =
        dot + (counts ? own : 0.0) * power_of_2(rule.sum_bits - rule.fraction_bits);
    const double value = total * power_of_2(e - rule.sum_bits);
    const int32_t kept = max_of(exponent_of(value), rule.least_exponent) - rule.total_bits;
    const double cut = __builtin_floor(value * power_of_2(-kept)) * power_of_2(kept);
    c[j] = static_cast<float>(rule.total_bits < 0 ? value : cut);
  }
}

// x + rest, |rest| < one unit in x's last place, to float: x is made odd in its last place if there
// is a rest, which rounds as the exact sum would.
float to_float_with_rest(double x, double rest) {
  const int64_t bits = bits_as<int64_t>(x);
  const int64_t away = (rest > 0) == (x > 0) ? 1 : -1;
  const int64_t odd = bits + ((rest != 0 && (bits & 1) == 0) ? away : 0);
  return static_cast<float>(bits_as<double>(odd));
}

#if defined(__AVX512F__)
constexpr int kLanes = 8;
#elif defined(__AVX2__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif
typedef double Vec __attribute__((vector_size(kLanes * sizeof(double)), may_alias));

// Four vectors of columns at a time, whose sums stay in registers.
void exact(const Operands& x, float* c) {
  alignas(64) double sums[kStrip];
  for (int first = 0; first < kStrip; first += 4 * kLanes) {
    Vec sum0{}, sum1{}, sum2{}, sum3{};
    for (int p = 0; p < x.products; ++p) {
      const double a = x.a[p];
      Vec b[4];
      __builtin_memcpy(b, x.b + p * kStrip + first, sizeof(b));
      sum0 += a * b[0];
      sum1 += a * b[1];
      sum2 += a * b[2];
      sum3 += a * b[3];
    }
    const Vec all[4] = {sum0, sum1, sum2, sum3};
    __builtin_memcpy(sums + first, all, sizeof(all));
  }
  for (int j = 0; j < kStrip; ++j) {
    const double y = c[j], sum = sums[j] + y;
    const double from = sum - y;
    const double rest = (sums[j] - from) + (y - (sum - from));
    c[j] = to_float_with_rest(sum, rest);
  }
}

// high + low += product, where low takes what high's rounding leaves.
void add_apart(Vec product, Vec& high, Vec& low) {
  const Vec sum = high + product, from = sum - product;
  low += (high - from) + (product - (sum - from));
  high = sum;
}

void exact_wide(const Operands& x, float* c) {
  alignas(64) double high[kStrip], low[kStrip];
  for (int first = 0; first < kStrip; first += 2 * kLanes) {
    Vec high0{}, high1{}, low0{}, low1{};
    for (int p = 0; p < x.products; ++p) {
      const double a = x.a[p];
      Vec b[2];
      __builtin_memcpy(b, x.b + p * kStrip + first, sizeof(b));
      add_apart(a * b[0], high0, low0);
      add_apart(a * b[1], high1, low1);
    }
    const Vec all_high[2] = {high0, high1}, all_low[2] = {low0, low1};
    __builtin_memcpy(high + first, all_high, sizeof(all_high));
    __builtin_memcpy(low + first, all_low, sizeof(all_low));
  }
  for (int j = 0; j < kStrip; ++j) {
    const double y = c[j], sum1 = high[j] + y;
    const double from = sum1 - y;
    const double left = (high[j] - from) + (y - (sum1 - from));
    const double rest = left + low[j];
    const double from2 = rest - low[j];
    const double left2 = (left - from2) + (low[j] - (rest - from2));
    const double sum = sum1 + rest;
    const double from3 = sum - rest;
    const double left3 = (sum1 - from3) + (rest - (sum - from3));
    c[j] = to_float_with_rest(sum, left3 + left2);
  }
}

// ---- in float32

float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }

template <bool kFlush>
float kept(float x) {
  return kFlush ? flushed(x) : x;
}

template <bool kFlush>
void add_tree(const FloatOperands& x, float* c) {
  alignas(64) float products[4][kStrip];
  for (int p = 0; p < x.group; ++p) {
    const float a = p < x.products ? x.a[p] : 0;
    const float* b = p < x.products ? x.b + p * kStrip : x.b;
    for (int j = 0; j < kStrip; ++j) products[p][j] = p < x.products ? kept<kFlush>(a * b[j]) : 0;
  }
  for (int j = 0; j < kStrip; ++j) {
    float sum = kept<kFlush>(products[0][j] + products[1][j]);
    if (x.group == 4) sum = kept<kFlush>(sum + kept<kFlush>(products[2][j] + products[3][j]));
    c[j] = kept<kFlush>(kept<kFlush>(c[j]) + sum);
  }
}

template <bool kFlush>
void add_sequential(const FloatOperands& x, int first, int step, float* c) {
  for (int j = 0; j < kStrip; ++j) c[j] = kept<kFlush>(c[j]);
  for (int p = first; p < x.products; p += step) {
    const float a = x.a[p];
    const float* b = x.b + p * kStrip;
    for (int j = 0; j < kStrip; ++j) c[j] = kept<kFlush>(__builtin_fmaf(a, b[j], c[j]));
  }
}

void tree(const FloatOperands& x, float* c) {
  x.flush ? add_tree<true>(x, c) : add_tree<false>(x, c);
}

void sequential(const FloatOperands& x, float* c) {
  x.flush ? add_sequential<true>(x, 0, 1, c) : add_sequential<false>(x, 0, 1, c);
}

template <bool kFlush>
void add_even_odd(const FloatOperands& x, float* c) {
  alignas(64) float even[kStrip], odd[kStrip];
  for (int j = 0; j < kStrip; ++j) even[j] = odd[j] = 0;
  add_sequential<kFlush>(x, 0, 2, even);
  add_sequential<kFlush>(x, 1, 2, odd);
  for (int j = 0; j < kStrip; ++j)
    c[j] = kept<kFlush>(kept<kFlush>(c[j]) + kept<kFlush>(even[j] + odd[j]));
}

void even_odd(const FloatOperands& x, float* c) {
  x.flush ? add_even_odd<true>(x, c) : add_even_odd<false>(x, c);
}

void integer(int32_t products, const int32_t* a, const int32_t* b, uint32_t* c) {
  for (int p = 0; p < products; ++p)
    for (int j = 0; j < kStrip; ++j) c[j] += static_cast<uint32_t>(a[p] * b[p * kStrip + j]);
}

}  // namespace

const SumKernels kSumKernels = {aligned, two_steps,  exact,    exact_wide,
                                tree,    sequential, even_odd, integer};

}  // namespace tessera::hal::sim::TESSERA_ISA_NAME
