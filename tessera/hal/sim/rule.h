// A chip's Numerics for one operand type, resolved to what the arithmetic needs. Internal to the
// module.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/dtype.h"
#include "tessera/base/float.h"
#include "tessera/chip/chip.h"

namespace tessera::hal::sim {

// A format of floats in float32 or float64: exponents of its normal values, and mantissa bits.
struct Format {
  int least_exponent = -126;
  int largest_exponent = 127;
  int mantissa_bits = 23;
};

struct Rule {
  chip::SumOrder order = chip::SumOrder::kFused;
  int group = 1;
  int fraction_bits = -1;  // -1: sums are exact; and so below: as if not there
  Rounding alignment = Rounding::kTowardZero;
  int parts = 1;
  int sum_bits = -1;
  int total_bits = -1;
  int reach = -1;
  int exact = 1;
  Rounding rounding = Rounding::kNearestEven;
  DType accumulate = DType::kF32;
  Format sums;
  int operand_least_exponent = -126;
  float operand_least_normal = 0x1p-126f;
  int operand_bits = -1;
  Rounding operand_rounding = Rounding::kNearestEven;
  bool flush_operands = false;
  bool flush_loses_sign = false;
  bool flush_sums = false;
  bool saturate = false;
  uint32_t saturated_results = 0;  // bit i: of DType(i)
  uint32_t nan = 0x7fc00000;       // float32's bits of a sum that is no number
  // Faults (inject.h).
  bool round_sums_to_f16 = false;
  bool swallow_nan = false;
  bool drop_tail = false;
};

// The definition of the arithmetic, in integers: the sum of one group. What is faster gives the
// same bits. a[i] and b[i * stride], operands as round_operand leaves them; at most `group` of
// them.
float group_sum(const Rule& rule, std::span<const float> a, const float* b, int64_t stride,
                float c);
float round_operand(const Rule& rule, float value);
// A finished sum: NaNs all alike, and out of range as the mode has it.
float finish(const Rule& rule, float sum);
// Of k products, how many are multiplied.
int64_t products_of(const Rule& rule, int64_t k);

}  // namespace tessera::hal::sim
