// The loops over columns, one set per instruction set. Internal to the module: plain structs only,
// since the kernels' sources are compiled several times.
#pragma once

#include <cstdint>

namespace tessera::hal::sim {

inline constexpr int kStrip = 64;  // columns that are computed together

// Exponents of zeros: low enough that a product's is never the largest.
inline constexpr int32_t kNoExponent = -4096;

// One row's operands, and a strip's: [products] and [products][kStrip]. Exponents of values, not
// below the least of their format.
struct Operands {
  int32_t products;
  const double* a;
  const int32_t* a_exponents;
  const double* b;
  const int32_t* b_exponents;
};

// Of Rule.
struct Alignment {
  int32_t fraction_bits;
  int32_t parts, sum_bits, total_bits, reach;
  int32_t exact;  // products that are added exactly before they are cut off; with it no parts
  int32_t mantissa_bits, least_exponent, largest_exponent;  // of sums
  bool nearest;                                             // of sums: or toward zero
};

struct FloatOperands {
  int32_t products;
  int32_t group;   // tree: 2 or 4
  const float* a;  // [products]
  const float* b;  // [products][kStrip]
  bool flush;
};

// All add to c[kStrip], finite values unless said otherwise.
struct SumKernels {
  // Products and c aligned, cut off, added, rounded.
  void (*aligned)(const Alignment& rule, const Operands& x, float* c);
  // Products cut off and added in parts; their sum and c rounded down and added; to nearest even.
  void (*two_steps)(const Alignment& rule, const Operands& x, float* c);
  // To nearest even, without loss. @pre of each column, sums of products need at most 53 binary
  // places, or, `wide`, 105 less the logarithm of their number
  void (*exact)(const Operands& x, float* c);
  void (*exact_wide)(const Operands& x, float* c);
  // These take any values.
  void (*tree)(const FloatOperands& x, float* c);  // one group
  void (*sequential)(const FloatOperands& x, float* c);
  void (*even_odd)(const FloatOperands& x, float* c);
  void (*integer)(int32_t products, const int32_t* a, const int32_t* b, uint32_t* c);
};

namespace generic {
extern const SumKernels kSumKernels;
}
namespace avx2 {
extern const SumKernels kSumKernels;
}
namespace avx512 {
extern const SumKernels kSumKernels;
}

}  // namespace tessera::hal::sim
