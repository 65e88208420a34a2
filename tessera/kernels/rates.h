// How fast a device is: what turns the work that a claim states into a time.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tessera/base/dtype.h"
#include "tessera/op/problem.h"

namespace tessera::kernels {

struct Rates {
  double flops_per_ps = 0.096;  // peak of one worker, f32; a multiply-add is two
  double bytes_per_ps = 0.01;   // memory, read plus write
  double launch_ps = 1e6;
  // Peaks of products of other types, where those are others.
  std::map<DType, double> narrow_flops_per_ps = {};
  // What kernels multiply that multiply no f32.
  std::map<std::string, DType, std::less<>> multiplies = {};
  // Part of its peak that a kernel reaches where arithmetic binds it, as measured; it stands in for
  // the claim's own estimate.
  std::map<std::string, double, std::less<>> efficiency = {};
  std::string origin = "default";  // recorded in plans

  // Of the type that the kernel multiplies.
  double peak_of(std::string_view kernel) const;
  // launch + combine(flops / (peak * efficiency), bytes / bandwidth), combine(c, m) = c + m - 0.8
  // min(c, m): what overlaps does so almost. Few bytes are in a cache and come faster.
  Picoseconds cost(const op::Claim& claim) const;
};

}  // namespace tessera::kernels
