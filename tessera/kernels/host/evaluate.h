// The last row of the kernel table: any operator on host values, by the reference interpreter.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/op/def.h"
#include "tessera/op/tensor.h"

namespace tessera::kernels::host {

struct Options {
  Bytes memory_limit{INT64_MAX};
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// Inputs are null where left out; `outputs` is how many results are wanted. Control flow is not for
// here: it has regions.
Result<std::vector<op::Value>> evaluate(const op::OpDef& op, const op::Attrs& attrs,
                                        std::span<const op::Value* const> inputs, int outputs,
                                        const Options& options);

}  // namespace tessera::kernels::host
