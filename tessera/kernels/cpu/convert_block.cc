#include "tessera/kernels/cpu/convert_block.h"

#include "tessera/base/element.h"

namespace tessera::kernels::cpu {
namespace {

static_assert(kDTypeF16 == static_cast<int32_t>(DType::kF16) && kDTypeBF16 == static_cast<int32_t>(DType::kBF16));

DType dtype_of(Compute compute) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU64};
  return kTypes[static_cast<int>(compute)];
}

}  // namespace

void convert_from(int32_t dtype, const void* from, Compute to, void* target, int64_t count) {
  convert_elements(static_cast<DType>(dtype), from, dtype_of(to), target, count);
}

void convert_to(Compute from, const void* source, int32_t dtype, void* target, int64_t count) {
  convert_elements(dtype_of(from), source, static_cast<DType>(dtype), target, count);
}

}  // namespace tessera::kernels::cpu
