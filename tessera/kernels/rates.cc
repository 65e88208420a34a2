#include "tessera/kernels/rates.h"

#include <algorithm>

namespace tessera::kernels {
namespace {

// Typical: what a step hands to the next is in the share that a core has of the last cache, which
// is so much faster than memory.
constexpr double kCachedBytes = 4 << 20, kCacheSpeed = 4, kOverlap = 0.8;

}  // namespace

double Rates::peak_of(std::string_view kernel) const {
  const auto type = multiplies.find(kernel);
  if (type == multiplies.end()) return flops_per_ps;
  const auto peak = narrow_flops_per_ps.find(type->second);
  return peak == narrow_flops_per_ps.end() ? flops_per_ps : peak->second;
}

Picoseconds Rates::cost(const op::Claim& claim) const {
  const auto measured = efficiency.find(claim.kernel);
  const double reached = measured == efficiency.end() ? claim.efficiency : measured->second;
  const double cached = std::min(claim.bytes, kCachedBytes);
  const double compute = claim.flops / (peak_of(claim.kernel) * std::max(reached, 1e-6)),
               memory = (cached / kCacheSpeed + claim.bytes - cached) / bytes_per_ps;
  const double ps = launch_ps + compute + memory - kOverlap * std::min(compute, memory);
  return Picoseconds(static_cast<int64_t>(std::min(ps, 1e18)));
}

}  // namespace tessera::kernels
