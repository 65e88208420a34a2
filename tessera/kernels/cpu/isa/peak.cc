// peak: what the processor's multipliers reach at most.
#include "tessera/kernels/cpu/peak_args.h"

#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/vec.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

void peak(const tessera_launch* launch, uint32_t, uint32_t) {
  const auto& a = *static_cast<const PeakArgs*>(launch->constants);
  float* out = static_cast<float*>(launch->ranges[0].data);
  Vec chain[kPeakChains];
  TESSERA_UNROLL
  for (int c = 0; c < kPeakChains; ++c) chain[c] = splat(0.5f + static_cast<float>(c));
  const Vec factor = splat(0.999f), term = splat(out[0]);
  for (int64_t r = 0; r < a.rounds; ++r) {
    TESSERA_UNROLL
    for (int c = 0; c < kPeakChains; ++c) chain[c] = chain[c] * factor + term;
  }
  float sum = 0;
  TESSERA_UNROLL
  for (int c = 0; c < kPeakChains; ++c) sum += sum_lanes(chain[c]);
  out[0] = sum;
  out[1] = static_cast<float>(kLanes);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
