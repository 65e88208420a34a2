// The arithmetic of a chip's matrix unit, bit by bit, as the chip's `numerics` tell it: how
// operands lose bits, how many products are added at once, how addends are aligned and sums
// rounded, what becomes of subnormals, infinities and NaNs.
//
//   M, N, K: extents of c[M,N] += a[M,K] b[K,N], row-major; G: products added at once
//
// Groups begin at k = 0 of each call, and a last one that is short is filled with zeros: to compute
// in slices of k, cut at multiples of group(). Functions are const, re-entrant and use one thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/dtype.h"
#include "tessera/base/float.h"
#include "tessera/base/result.h"
#include "tessera/chip/chip.h"

namespace tessera::hal::sim {

struct Rule;  // rule.h

// What a program may choose where the chip offers it; empty: the chip's default.
struct Modes {
  std::string accumulate = {};                    // "f16": sums of f16 where the unit keeps those
  std::string overflow = {};                      // "infinity", "saturate"
  std::optional<Rounding> operand_rounding = {};  // of operands that lose bits: hf32's other mode
};

// How values leave a unit for memory: Ascend's fixpipe and casts of vector units.
struct OutputCast {
  Rounding rounding = Rounding::kNearestEven;
  // What is out of range becomes the largest finite value and NaN becomes 0.
  bool saturate = false;
  float scale = 1;  // multiplied first, in f32
};

class MatrixUnit {
 public:
  // `type`: of the operands, an element type or a mode ("tf32", "hf32"). kUnimplemented for a type
  // that the chip does not tell of, with those that it does, and for a mode that it does not offer.
  static Result<MatrixUnit> make(const chip::Chip& chip, std::string_view type,
                                 const Modes& modes = {});
  static Result<MatrixUnit> make(const chip::Numerics& numerics, std::string_view type,
                                 const Modes& modes = {});

  DType accumulate() const;  // f32, f16 (kept in float), f64 or i32
  int64_t group() const;     // G

  // c += a b. The elements of a and b are values of the operand type, those of c of the
  // accumulator's; for tf32, hf32 and their like any f32: the unit drops what it does not multiply.
  // Formats with scales of blocks: the scales are 1.
  // @pre accumulate() is f32 or f16
  void multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, float* c, int64_t ldc) const;
  // The same for integers, whose sums wrap.
  // @pre accumulate() is i32
  void multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, int32_t* c, int64_t ldc) const;
  // @pre accumulate() is f64
  void multiply(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                int64_t ldb, double* c, int64_t ldc) const;

  // What the unit makes of operands before it multiplies: bits dropped, subnormals flushed.
  void round_operands(std::span<float> values) const;

  // How sums become values of type `to` on their way out: saturated where the chip has it no other
  // way, or in that mode.
  OutputCast output_cast(DType to) const;

  // Internal to the module.
  explicit MatrixUnit(const Rule& rule);
  const Rule& rule() const { return *rule_; }

 private:
  std::shared_ptr<const Rule> rule_;
};

// values[i] = the value of type `to` that it becomes. Integers: rounded, then saturated or, if not
// so asked, reduced to their low bits. @pre `to` is a float of at most 32 bits or an integer of at
// most 16
void convert_results(DType to, const OutputCast& cast, std::span<float> values);

// f32 to `mantissa_bits` of mantissa, the exponent kept; a carry moves on to the exponent.
// Infinities and NaNs stay. With `flush`, subnormals become zeros of their sign.
float round_mantissa(float value, int mantissa_bits, Rounding rounding, bool flush);

}  // namespace tessera::hal::sim
