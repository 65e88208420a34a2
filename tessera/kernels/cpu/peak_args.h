// Constant block of the entry that does nothing but multiply and add in registers.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

// Each round does kPeakChains independent multiply-adds of a vector; range 0 takes one float, then
// the number of lanes as another.
inline constexpr int kPeakChains = 12;
struct PeakArgs {
  int64_t rounds;
};

}  // namespace tessera::kernels::cpu
