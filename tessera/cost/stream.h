// Kernels that pass over memory: element-wise groups, softmax, norms, reductions, copies.
#pragma once

#include <string>

#include "tessera/cost/elements.h"
#include "tessera/cost/machine.h"

namespace tessera::cost {

struct Pass {
  std::string kernel, family;
  std::string type = "f32";      // that is computed in
  double read = 0, written = 0;  // bytes of memory
  double again = 0;              // bytes read a second time, which a cache holds in part
  double elements = 0;           // that `work` is done for
  ElementWork work = {};
  double rows = 0;  // that one core each works on; 0: any cut will do
  double run = 0;   // bytes that lie together; 0: all
};

// The time of the pass, its launch included in the tally as that of vector work.
// kUnimplemented: there is work, and no unit that does it.
Result<Tally> stream(const Machine& machine, const Pass& pass);

// The part of the bandwidth that copies of `run` bytes each reach: lines move as a whole.
double run_efficiency(const Machine& machine, double run);

}  // namespace tessera::cost
