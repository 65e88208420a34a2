// Multiplication by strips of columns: operands are unpacked once per block of k, then each row
// goes through its groups. What the kernels do not take - other roundings, infinities, NaNs,
// exponents too far apart - group_sum does, column by column.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "tessera/hal/sim/kernels.h"
#include "tessera/hal/sim/numerics.h"
#include "tessera/hal/sim/rule.h"

namespace tessera::hal::sim {
namespace {

using enum chip::SumOrder;

constexpr int64_t kBlock = 512;  // of k, about: a multiple of the group

const SumKernels& kernels() {
#if defined(__x86_64__)
  static const SumKernels* best = [] {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      return &generic::kSumKernels;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return wide ? &avx512::kSumKernels : &avx2::kSumKernels;
  }();
  const char* cap = std::getenv("TESSERA_ISA");
  const std::string_view name = cap ? cap : "";
  if (name == "generic") return generic::kSumKernels;
  if (name == "avx2" && best == &avx512::kSumKernels) return avx2::kSumKernels;
  return *best;
#else
  return generic::kSumKernels;
#endif
}

// Binary places of values: of the highest set bit of any, and of the lowest.
struct Places {
  int high = -100000;
  int low = 100000;

  void add(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffff;
    if (bits == 0) return;
    const int biased = static_cast<int>(bits >> 23);
    const uint32_t significand = (bits & 0x7fffff) | (biased > 0 ? 0x800000u : 0u);
    const int lowest = std::max(biased, 1) - 150;
    high = std::max(high, lowest + static_cast<int>(std::bit_width(significand)) - 1);
    low = std::min(low, lowest + std::countr_zero(significand));
  }
  int spread() const { return high < low ? 0 : high - low + 1; }
};

bool is_special(float x) { return (std::bit_cast<uint32_t>(x) & 0x7f800000) == 0x7f800000; }

bool any_special(const float* values) {
  bool any = false;
  for (int j = 0; j < kStrip; ++j) any |= is_special(values[j]);
  return any;
}

int32_t exponent_of(float x, int least) {
  const int32_t biased = static_cast<int32_t>((std::bit_cast<uint32_t>(x) >> 23) & 0xff);
  return x == 0 ? kNoExponent : std::max(biased - 127, least);
}

// A row's operands, or a strip's, for one block of k; per group what else the choice of a kernel
// needs.
struct Unpacked {
  std::vector<float> values;
  std::vector<double> wide;
  std::vector<int32_t> exponents;
  std::vector<int> spreads;
  std::vector<int32_t> largest;  // exponents
  std::vector<char> special;

  void resize(int64_t products, int64_t columns, int64_t groups) {
    values.assign(products * columns, 0);
    wide.assign(products * columns, 0);
    exponents.assign(products * columns, kNoExponent);
    spreads.assign(groups, 0);
    largest.assign(groups, kNoExponent);
    special.assign(groups, 0);
  }
};

// What one call works with.
class Multiplication {
 public:
  explicit Multiplication(const Rule& rule) : rule_(rule), kernels_(kernels()) {
    alignment_ = {.fraction_bits = rule.fraction_bits,
                  .parts = rule.parts,
                  .sum_bits = rule.sum_bits,
                  .total_bits = rule.total_bits,
                  .reach = rule.reach,
                  .mantissa_bits = rule.sums.mantissa_bits,
                  .least_exponent = rule.sums.least_exponent,
                  .largest_exponent = rule.sums.largest_exponent,
                  .nearest = rule.rounding == Rounding::kNearestEven};
    block_ = (kBlock + rule.group - 1) / rule.group * rule.group;
  }

  void run(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
           int64_t ldb, float* c, int64_t ldc) {
    for (int64_t k0 = 0; k0 < k; k0 += block_) {
      const int64_t products = std::min(block_, k - k0);
      for (int64_t n0 = 0; n0 < n; n0 += kStrip) {
        const int64_t columns = std::min<int64_t>(kStrip, n - n0);
        unpack(strip_, b + k0 * ldb + n0, ldb, products, columns, kStrip);
        for (int64_t i = 0; i < m; ++i) {
          unpack(row_, a + i * lda + k0, 1, products, 1, 1);
          float* out = c + i * ldc + n0;
          std::copy_n(out, columns, sums_);
          std::fill(sums_ + columns, sums_ + kStrip, 0.0f);
          add_groups(products);
          std::copy_n(sums_, columns, out);
        }
      }
    }
  }

 private:
  // x[p, j] at x[p * stride + j] to [products][width].
  void unpack(Unpacked& to, const float* x, int64_t stride, int64_t products, int64_t columns,
              int64_t width) {
    const int64_t group = rule_.group, groups = (products + group - 1) / group;
    to.resize(products, width, groups);
    const bool rounds = rule_.operand_bits >= 0 || rule_.flush_operands;
    const bool fused = rule_.order == kFused, exact = fused && rule_.fraction_bits < 0;
    for (int64_t p = 0; p < products; ++p)
      for (int64_t j = 0; j < columns; ++j) {
        const float value = rounds ? round_operand(rule_, x[p * stride + j]) : x[p * stride + j];
        to.values[p * width + j] = value;
        to.special[p / group] |= is_special(value);
      }
    if (!fused) return;
    for (size_t i = 0; i < to.values.size(); ++i) to.wide[i] = to.values[i];
    for (int64_t i = 0; !exact && i < products * width; ++i) {
      to.exponents[i] = exponent_of(to.values[i], rule_.operand_least_exponent);
      int32_t& largest = to.largest[i / width / group];
      largest = std::max(largest, to.exponents[i]);
    }
    for (int64_t g = 0; exact && g < groups; ++g)
      for (int64_t j = 0; j < columns; ++j) {
        Places places;
        for (int64_t p = g * group; p < std::min(products, (g + 1) * group); ++p)
          places.add(to.values[p * width + j]);
        to.spreads[g] = std::max(to.spreads[g], places.spread());
      }
  }

  void add_groups(int64_t products) {
    if (rule_.order == kSequential && !rule_.saturate && !rule_.round_sums_to_f16) {
      kernels_.sequential(floats(0, products), sums_);
      return finish_all();
    }
    const int64_t group = rule_.group;
    for (int64_t first = 0, g = 0; first < products; first += group, ++g) {
      const int64_t count = std::min(group, products - first);
      if (rule_.order == kFused) {
        if (!add_fused(first, count, g)) {
          add_by_definition(first, count);
          continue;
        }
      } else {
        const FloatOperands x = floats(first, count);
        (rule_.order == kTree      ? kernels_.tree
         : rule_.order == kEvenOdd ? kernels_.even_odd
                                   : kernels_.sequential)(x, sums_);
      }
      finish_all();
    }
  }

  FloatOperands floats(int64_t first, int64_t count) const {
    return {static_cast<int32_t>(count), rule_.group, row_.values.data() + first,
            strip_.values.data() + first * kStrip, rule_.flush_sums};
  }

  // False if no kernel takes this group.
  bool add_fused(int64_t first, int64_t count, int64_t g) {
    if (rule_.exact > 1 || row_.special[g] || strip_.special[g]) return false;
    if (any_special(sums_)) return false;
    const Operands x{static_cast<int32_t>(count), row_.wide.data() + first,
                     row_.exponents.data() + first, strip_.wide.data() + first * kStrip,
                     strip_.exponents.data() + first * kStrip};
    const bool nearest = rule_.rounding == Rounding::kNearestEven;
    if (rule_.fraction_bits < 0) {
      if (!nearest || rule_.sums.mantissa_bits != 23 || rule_.accumulate != DType::kF32)
        return false;
      // Those of products, and a carry for each doubling of their number.
      const int carries = static_cast<int>(std::bit_width(static_cast<unsigned>(count)));
      const int places = row_.spreads[g] + strip_.spreads[g] + carries;
      // What exact_wide keeps apart, one rounding error for each product, has 53 places.
      if (places + carries > 105) return false;
      (places <= 53 ? kernels_.exact : kernels_.exact_wide)(x, sums_);
      return true;
    }
    if (rule_.alignment != Rounding::kTowardZero) return false;
    if (rule_.sum_bits >= 0) {
      if (!nearest || rule_.sums.mantissa_bits != 23) return false;
      // A product beyond float32 is infinite.
      if (row_.largest[g] + strip_.largest[g] >= 126) return false;
      kernels_.two_steps(alignment_, x, sums_);
      return true;
    }
    if (!nearest && rule_.rounding != Rounding::kTowardZero) return false;
    if (nearest && rule_.accumulate == DType::kF32 && rule_.sums.mantissa_bits != 23) return false;
    kernels_.aligned(alignment_, x, sums_);
    return true;
  }

  void add_by_definition(int64_t first, int64_t count) {
    const std::span<const float> a(row_.values.data() + first, count);
    for (int j = 0; j < kStrip; ++j)
      sums_[j] = group_sum(rule_, a, strip_.values.data() + first * kStrip + j, kStrip, sums_[j]);
  }

  void finish_all() {
    if (rule_.order == kFused && rule_.flush_sums) flush();
    if (!rule_.round_sums_to_f16 && !any_special(sums_)) return;
    for (float& sum : sums_) sum = finish(rule_, sum);
  }

  void flush() {
    const float least = std::ldexp(1.0f, rule_.sums.least_exponent);
    for (float& sum : sums_)
      if (std::fabs(sum) < least) sum = std::copysign(0.0f, sum);
  }

  const Rule& rule_;
  const SumKernels& kernels_;
  Alignment alignment_;
  int64_t block_;
  Unpacked row_, strip_;
  alignas(64) float sums_[kStrip] = {};
};

}  // namespace

void MatrixUnit::multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                          const float* b, int64_t ldb, float* c, int64_t ldc) const {
  Multiplication(*rule_).run(m, n, products_of(*rule_, k), a, lda, b, ldb, c, ldc);
}

void MatrixUnit::multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                          const float* b, int64_t ldb, int32_t* c, int64_t ldc) const {
  k = products_of(*rule_, k);
  const SumKernels& best = kernels();
  std::vector<int32_t> row(kBlock), strip(kBlock * kStrip);
  for (int64_t k0 = 0; k0 < k; k0 += kBlock) {
    const int64_t products = std::min(kBlock, k - k0);
    for (int64_t n0 = 0; n0 < n; n0 += kStrip) {
      const int64_t columns = std::min<int64_t>(kStrip, n - n0);
      for (int64_t p = 0; p < products; ++p)
        for (int64_t j = 0; j < columns; ++j)
          strip[p * kStrip + j] = static_cast<int32_t>(b[(k0 + p) * ldb + n0 + j]);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t p = 0; p < products; ++p) row[p] = static_cast<int32_t>(a[i * lda + k0 + p]);
        alignas(64) uint32_t sums[kStrip] = {};
        int32_t* out = c + i * ldc + n0;
        for (int64_t j = 0; j < columns; ++j) sums[j] = static_cast<uint32_t>(out[j]);
        best.integer(static_cast<int32_t>(products), row.data(), strip.data(), sums);
        for (int64_t j = 0; j < columns; ++j) out[j] = static_cast<int32_t>(sums[j]);
      }
    }
  }
}

void MatrixUnit::multiply(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
                          const double* b, int64_t ldb, double* c, int64_t ldc) const {
  k = products_of(*rule_, k);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        c[i * ldc + j] = std::fma(a[i * lda + p], b[p * ldb + j], c[i * ldc + j]);
}

}  // namespace tessera::hal::sim
