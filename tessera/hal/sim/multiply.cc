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
#include "tessera/hal/sim/operands.h"
#include "tessera/hal/sim/rule.h"

namespace tessera::hal::sim {
namespace {

using enum chip::SumOrder;

constexpr int64_t kBlock = 512;  // of k, about: a multiple of the group
constexpr int64_t kRows = 64;    // that are unpacked together

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

// What one call works with.
class Multiplication {
 public:
  explicit Multiplication(const Rule& rule) : rule_(rule), kernels_(kernels()) {
    alignment_ = {.fraction_bits = rule.fraction_bits,
                  .parts = rule.parts,
                  .sum_bits = rule.sum_bits,
                  .total_bits = rule.total_bits,
                  .reach = rule.reach,
                  .exact = rule.exact,
                  .mantissa_bits = rule.sums.mantissa_bits,
                  .least_exponent = rule.sums.least_exponent,
                  .largest_exponent = rule.sums.largest_exponent,
                  .nearest = rule.rounding == Rounding::kNearestEven};
    block_ = (kBlock + rule.group - 1) / rule.group * rule.group;
  }

  void run(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
           int64_t ldb, float* c, int64_t ldc) {
    std::vector<Unpacked> rows(std::min(m, kRows));
    for (int64_t k0 = 0; k0 < k; k0 += block_) {
      const int64_t products = std::min(block_, k - k0);
      for (int64_t m0 = 0; m0 < m; m0 += kRows) {
        const int64_t count = std::min(kRows, m - m0);
        for (int64_t i = 0; i < count; ++i)
          rows[i].unpack(rule_, a + (m0 + i) * lda + k0, 1, products, 1, 1);
        for (int64_t n0 = 0; n0 < n; n0 += kStrip) {
          const int64_t columns = std::min<int64_t>(kStrip, n - n0);
          strip_.unpack(rule_, b + k0 * ldb + n0, ldb, products, columns, kStrip);
          for (int64_t i = 0; i < count; ++i)
            add(rows[i], products, columns, c + (m0 + i) * ldc + n0);
        }
      }
    }
  }

 private:
  void add(const Unpacked& row, int64_t products, int64_t columns, float* c) {
    std::copy_n(c, columns, sums_);
    std::fill(sums_ + columns, sums_ + kStrip, 0.0f);
    row_ = &row;
    special_ = any_special(sums_, kStrip);
    add_groups(products);
    std::copy_n(sums_, columns, c);
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
    return {static_cast<int32_t>(count), rule_.group, row_->values.data() + first,
            strip_.values.data() + first * kStrip, rule_.flush_sums};
  }

  // False if no kernel takes this group.
  bool add_fused(int64_t first, int64_t count, int64_t g) {
    if (special_ || row_->special[g] || strip_.special[g]) return false;
    const Operands x{static_cast<int32_t>(count), row_->wide.data() + first,
                     row_->exponents.data() + first, strip_.wide.data() + first * kStrip,
                     strip_.exponents.data() + first * kStrip};
    const bool nearest = rule_.rounding == Rounding::kNearestEven;
    if (rule_.fraction_bits < 0) {
      if (!nearest || rule_.sums.mantissa_bits != 23 || rule_.accumulate != DType::kF32)
        return false;
      // Those of products, and a carry for each doubling of their number.
      const int carries = static_cast<int>(std::bit_width(static_cast<unsigned>(count)));
      const int places = row_->spreads[g] + strip_.spreads[g] + carries;
      // What exact_wide keeps apart, one rounding error for each product, has 53 places.
      if (places + carries > 105) return false;
      (places <= 53 ? kernels_.exact : kernels_.exact_wide)(x, sums_);
      return true;
    }
    if (rule_.alignment != Rounding::kTowardZero) return false;
    if (rule_.sum_bits >= 0) {
      if (!nearest || rule_.sums.mantissa_bits != 23) return false;
      // A product beyond float32 is infinite.
      if (row_->largest[g] + strip_.largest[g] >= 126) return false;
      kernels_.two_steps(alignment_, x, sums_);
      return true;
    }
    if (!nearest && rule_.rounding != Rounding::kTowardZero) return false;
    if (nearest && rule_.accumulate == DType::kF32 && rule_.sums.mantissa_bits != 23) return false;
    kernels_.aligned(alignment_, x, sums_);
    return true;
  }

  void add_by_definition(int64_t first, int64_t count) {
    const std::span<const float> a(row_->values.data() + first, count);
    for (int j = 0; j < kStrip; ++j)
      sums_[j] = group_sum(rule_, a, strip_.values.data() + first * kStrip + j, kStrip, sums_[j]);
    special_ = any_special(sums_, kStrip);
  }

  void finish_all() {
    if (rule_.order == kFused && rule_.flush_sums) flush();
    special_ = any_special(sums_, kStrip);
    if (!rule_.round_sums_to_f16 && !special_) return;
    for (float& sum : sums_) sum = finish(rule_, sum);
    special_ = any_special(sums_, kStrip);
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
  const Unpacked* row_ = nullptr;
  Unpacked strip_;
  alignas(64) float sums_[kStrip] = {};
  bool special_ = false;  // whether they have infinities or NaNs
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
