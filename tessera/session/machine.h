// Devices by name, with the kernels that run on them: the visible lists of backends and claim
// sources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/units.h"
#include "tessera/hal/backend.h"
#include "tessera/kernels/table.h"
#include "tessera/runtime/executor.h"

namespace tessera::session {

// All backends of this build.
hal::Registry& registry();

// An open device, its executable and its weights.
struct Machine {
  runtime::Machine runtime;
  // Claim sources at this machine's own rates, where it has been calibrated.
  std::vector<std::unique_ptr<const kernels::Table>> calibrated;
  kernels::Rates rates;  // of the CPU's kernels

  // "cpu", "cpu:0". kNotFound names the backends there are.
  // `isa` caps the instruction set of the CPU's kernels ("avx2"); empty: the best there is.
  static Result<std::shared_ptr<Machine>> open(const std::string& device, int threads,
                                               Bytes memory_limit, std::string_view isa = "");
};

}  // namespace tessera::session
