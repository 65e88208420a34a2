#include "tessera/hal/sim/operands.h"

#include <algorithm>
#include <bit>

#include "tessera/hal/sim/kernels.h"

namespace tessera::hal::sim {
namespace {

uint32_t magnitude_of(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffff; }

// floor(log2 x) of an integer that float32 holds.
int32_t log2_of(uint32_t x) {
  const float exact = static_cast<float>(static_cast<int32_t>(x));
  return static_cast<int32_t>(std::bit_cast<uint32_t>(exact) >> 23) - 127;
}

// The most binary places, from the highest set bit of any value to the lowest, of all columns.
int widest(const float* x, int64_t products, int64_t width) {
  alignas(64) int32_t high[kStrip], low[kStrip];
  std::fill_n(high, width, -100000);
  std::fill_n(low, width, 100000);
  for (int64_t p = 0; p < products; ++p)
    for (int64_t j = 0; j < width; ++j) {
      const uint32_t bits = magnitude_of(x[p * width + j]);
      const int32_t biased = static_cast<int32_t>(bits >> 23);
      const uint32_t significand = (bits & 0x7fffff) | (biased > 0 ? 0x800000u : 0u);
      const int32_t place = std::max(biased, 1) - 150;
      const int32_t top = place + log2_of(significand);
      const int32_t bottom = place + log2_of(significand & (0u - significand));
      high[j] = std::max(high[j], bits == 0 ? -100000 : top);
      low[j] = std::min(low[j], bits == 0 ? 100000 : bottom);
    }
  int32_t most = 0;
  for (int64_t j = 0; j < width; ++j) most = std::max(most, high[j] - low[j] + 1);
  return most;
}

void find_exponents(const Rule& rule, const float* x, int64_t count, int32_t* exponents,
                    int32_t& largest) {
  // Sums of products of scaled formats have their scales' exponent.
  const int32_t least = rule.exact > 1 ? 0 : rule.operand_least_exponent;
  const int32_t most = rule.exact > 1 ? 0 : 1 << 20;
  int32_t top = kNoExponent;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = magnitude_of(x[i]);
    const int32_t exponent = static_cast<int32_t>(bits >> 23) - 127;
    exponents[i] = bits == 0 ? kNoExponent : std::min(std::max(exponent, least), most);
    top = std::max(top, exponents[i]);
  }
  largest = top;
}

}  // namespace

bool any_special(const float* values, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_of(values[i]));
  return largest >= 0x7f800000;
}

void Unpacked::unpack(const Rule& rule, const float* x, int64_t stride, int64_t products,
                      int64_t columns, int64_t width) {
  const int64_t count = products * width, groups = (products + rule.group - 1) / rule.group;
  const bool fused = rule.order == chip::SumOrder::kFused;
  values.resize(count);
  special.resize(groups);
  if (width == 1) std::copy_n(x, products, values.data());
  for (int64_t p = 0; width > 1 && p < products; ++p) {
    std::copy_n(x + p * stride, columns, values.data() + p * width);
    std::fill_n(values.data() + p * width + columns, width - columns, 0.0f);
  }
  if (rule.operand_bits >= 0 || rule.flush_operands)
    for (float& value : values) value = round_operand(rule, value);
  if (fused) {
    wide.resize(count);
    for (int64_t i = 0; i < count; ++i) wide[i] = values[i];
    exponents.resize(count);
    spreads.resize(groups);
    largest.resize(groups);
  }
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = g * rule.group, n = std::min<int64_t>(rule.group, products - first);
    const float* group = values.data() + first * width;
    special[g] = any_special(group, n * width);
    if (!fused) continue;
    if (rule.fraction_bits < 0)
      spreads[g] = widest(group, n, width);
    else
      find_exponents(rule, group, n * width, exponents.data() + first * width, largest[g]);
  }
}

}  // namespace tessera::hal::sim
