#include "tessera/kernels/rates.h"

#include <algorithm>

namespace tessera::kernels {

Picoseconds Rates::cost(const op::Claim& claim) const {
  const auto measured = efficiency.find(claim.kernel);
  const double reached = measured == efficiency.end() ? claim.efficiency : measured->second;
  const double ps = launch_ps + std::max(claim.flops / (flops_per_ps * std::max(reached, 1e-6)),
                                         claim.bytes / bytes_per_ps);
  return Picoseconds(static_cast<int64_t>(std::min(ps, 1e18)));
}

}  // namespace tessera::kernels
