#include "tessera/kernels/cpu/convert_block.h"

#include <cmath>
#include <concepts>

#include "tessera/base/element.h"

namespace tessera::kernels::cpu {
namespace {

static_assert(kDTypeF16 == static_cast<int32_t>(DType::kF16) &&
              kDTypeBF16 == static_cast<int32_t>(DType::kBF16) &&
              kDTypeF32 == static_cast<int32_t>(DType::kF32));

DType dtype_of(Compute compute) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU64};
  return kTypes[static_cast<int>(compute)];
}

// A stored bool: any byte but 0 is true.
struct Bool {
  uint8_t byte;
};

// The types that have loops.
template <class T>
constexpr DType kDTypeOf = DType::kString;
template <>
[[maybe_unused]] constexpr DType kDTypeOf<Bool> = DType::kBool;
template <>
constexpr DType kDTypeOf<int8_t> = DType::kI8;
template <>
constexpr DType kDTypeOf<uint8_t> = DType::kU8;
template <>
constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
constexpr DType kDTypeOf<int64_t> = DType::kI64;
template <>
constexpr DType kDTypeOf<float> = DType::kF32;
template <>
constexpr DType kDTypeOf<double> = DType::kF64;

template <class From, class To>
void loop(const void* source, void* target, int64_t count) {
  const From* x = static_cast<const From*>(source);
  To* y = static_cast<To*>(target);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::same_as<From, Bool> && std::same_as<To, Bool>) {
      y[i].byte = x[i].byte != 0;
    } else if constexpr (std::same_as<From, Bool>) {
      y[i] = static_cast<To>(x[i].byte != 0);
    } else if constexpr (std::same_as<To, Bool>) {
      y[i].byte = x[i] != 0;
    } else if constexpr (std::floating_point<From> && std::integral<To>) {
      if (std::fabs(x[i]) < From(0x1p63))
        y[i] = static_cast<To>(static_cast<int64_t>(x[i]));
      else
        convert_elements(kDTypeOf<From>, x + i, kDTypeOf<To>, y + i, 1);
    } else {
      y[i] = static_cast<To>(x[i]);
    }
  }
}

using Loop = void (*)(const void*, void*, int64_t);
template <class From>
Loop loop_to(DType to) {
  switch (to) {
    case DType::kBool:
      return loop<From, Bool>;
    case DType::kI8:
      return loop<From, int8_t>;
    case DType::kU8:
      return loop<From, uint8_t>;
    case DType::kI32:
      return loop<From, int32_t>;
    case DType::kI64:
      return loop<From, int64_t>;
    case DType::kF32:
      return loop<From, float>;
    case DType::kF64:
      return loop<From, double>;
    default:
      return nullptr;
  }
}
Loop loop_for(DType from, DType to) {
  switch (from) {
    case DType::kBool:
      return loop_to<Bool>(to);
    case DType::kI8:
      return loop_to<int8_t>(to);
    case DType::kU8:
      return loop_to<uint8_t>(to);
    case DType::kI32:
      return loop_to<int32_t>(to);
    case DType::kI64:
      return loop_to<int64_t>(to);
    case DType::kF32:
      return loop_to<float>(to);
    case DType::kF64:
      return loop_to<double>(to);
    default:
      return nullptr;
  }
}

}  // namespace

void convert_run(int32_t from, const void* source, int32_t to, void* target, int64_t count) {
  const auto a = static_cast<DType>(from), b = static_cast<DType>(to);
  if (const Loop run = a == b ? nullptr : loop_for(a, b))
    run(source, target, count);
  else
    convert_elements(a, source, b, target, count);
}

void convert_from(int32_t dtype, const void* source, Compute to, void* target, int64_t count) {
  convert_run(dtype, source, static_cast<int32_t>(dtype_of(to)), target, count);
}

void convert_to(Compute from, const void* source, int32_t dtype, void* target, int64_t count) {
  convert_run(static_cast<int32_t>(dtype_of(from)), source, dtype, target, count);
}

}  // namespace tessera::kernels::cpu
