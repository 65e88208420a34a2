// Kernels that move elements know them by their size alone.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

struct Wide {
  uint64_t halves[2];
};

// Calls fn with a value of the type that has so many bytes: 1, 2, 4, 8 or 16.
template <class Fn>
void by_size(int32_t bytes, Fn fn) {
  switch (bytes) {
    case 1:
      return fn(uint8_t());
    case 2:
      return fn(uint16_t());
    case 4:
      return fn(uint32_t());
    case 8:
      return fn(uint64_t());
    default:
      return fn(Wide());
  }
}

}  // namespace tessera::kernels::cpu
