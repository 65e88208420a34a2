// Devices by name, with the kernels that run on them: the visible lists of backends and claim
// sources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/units.h"
#include "tessera/codegen/mlir/source.h"
#include "tessera/codegen/sim/source.h"
#include "tessera/hal/backend.h"
#include "tessera/kernels/table.h"
#include "tessera/runtime/executor.h"

namespace tessera::session {

// All backends of this build.
hal::Registry& registry();

// An open device, its executable and its weights.
struct Machine {
  runtime::Machine runtime;
  std::vector<kernels::Table> tables;  // at this machine's own rates, where it has been calibrated
  kernels::Rates rates;                // of the CPU's kernels
  std::unique_ptr<const codegen::mlir::Source> generated;  // null: no code is generated

  // Null on a real device.
  std::unique_ptr<const codegen::sim::Source> simulated;

  // "cpu", "cpu:0", "sim:ascend910b2". kNotFound names the backends there are.
  // `isa` caps the instruction set of the CPU's kernels ("avx2"); empty: the best there is.
  // `provider` says whose kernels there are: see LoadOptions.
  // `codegen`: which problems are met with code that is made from tile programs.
  static Result<std::shared_ptr<Machine>> open(
      const std::string& device, int threads, Bytes memory_limit, std::string_view isa = "",
      std::string_view provider = "auto", codegen::mlir::Mode codegen = codegen::mlir::Mode::kNone);
};

}  // namespace tessera::session
