// Constant block of the entries that go between numbers and their quantised form.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

enum class QuantizedType : int32_t { kU8, kI8, kU16, kI16, kI32 };

// Ranges: x, scale, zero point (if any), y, all packed and row-major. x is seen as (outer, axis,
// inner). Scale (f32) and zero point: one element; one for each index of the axis; or, where
// `block` is not 0, one for each block along it: (outer, ceil(axis / block), inner). Work item =
// `chunk` elements.
struct QuantizeArgs {
  int64_t count, chunk;
  int64_t axis, inner, block;
  int32_t one, has_zero;
  QuantizedType type;
};

}  // namespace tessera::kernels::cpu
