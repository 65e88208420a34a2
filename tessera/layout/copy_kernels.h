// The kernels that move tiles, one set per instruction set. Internal to layout: plain structs only,
// since the kernels' sources are compiled several times.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::layout {

// transpose: dst[a * out + b * size] = src[b * in + a * size] for b < rows, a < cols; elements of
// rows at and beyond `valid` are zero. rows: dst[b * out + i] = src[b * in + i] for b < rows,
// i < cols. Strides in bytes; nothing outside is written.
struct Patch {
  const std::byte* src;
  int64_t in;
  std::byte* dst;
  int64_t out;
  int64_t rows;
  int64_t cols;
  int64_t valid;
};

inline constexpr int kElementSizes = 5;  // 1, 2, 4, 8, 16 bytes

struct CopyKernels {
  void (*transpose[kElementSizes])(const Patch& patch);  // by the logarithm of the element's size
  void (*rows)(const Patch& patch);
  // As rows, past the caches; done when `fence` returns.
  void (*stream)(const Patch& patch);
  void (*fence)();
};

namespace generic {
extern const CopyKernels kCopyKernels;
}
namespace avx2 {
extern const CopyKernels kCopyKernels;
}
namespace avx512 {
extern const CopyKernels kCopyKernels;
}

}  // namespace tessera::layout
