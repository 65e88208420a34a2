#include "tessera/kernels/cpu/rnn_pack.h"

#include <algorithm>

namespace tessera::kernels::cpu {
namespace {

void pack_panel(const RnnPackArgs& a, int64_t d, int64_t panel, const float* weights,
                float* packed) {
  const int64_t units = std::min(kPanel, a.H - panel * kPanel), P = panels_of(a.H);
  for (int64_t gate = 0; gate < a.G; ++gate) {
    const bool second = gate >= a.split;
    const int64_t begin = second ? a.split : 0, gates = (second ? a.G : a.split) - begin;
    // Where the gate's first unit goes, and how far the next k is.
    float* group = packed + (d * a.G + begin) * P * kPanel * a.K;
    float* to = group + panel * gates * kPanel * a.K +
                (gate - begin) * kPanel * (a.apart ? a.K : int64_t{1});
    const int64_t step = a.apart ? kPanel : gates * kPanel;
    const float* from = weights + ((d * a.G + gate) * a.H + panel * kPanel) * a.K;
    for (int64_t k = 0; k < a.K; ++k) {
      for (int64_t u = 0; u < units; ++u) to[k * step + u] = from[u * a.K + k];
      std::fill(to + k * step + units, to + k * step + kPanel, 0.0f);
    }
  }
}

}  // namespace

void pack_rnn(const RnnPackArgs& args, const float* weights, float* packed) {
  for (int64_t d = 0; d < args.D; ++d)
    for (int64_t panel = 0; panel < panels_of(args.H); ++panel)
      pack_panel(args, d, panel, weights, packed);
}

void rnn_pack(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const RnnPackArgs*>(launch->constants);
  const int64_t P = panels_of(a.H);
  for (int64_t i = first; i < int64_t{first} + count; ++i)
    pack_panel(a, i / P, i % P, static_cast<const float*>(launch->ranges[0].data),
               static_cast<float*>(launch->ranges[1].data));
}

}  // namespace tessera::kernels::cpu
