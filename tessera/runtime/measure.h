// Times one claim on a device, outside of any plan.
#pragma once

#include "tessera/runtime/executor.h"

namespace tessera::runtime {

// The least time of one run of the claim's launches, over several runs that take about `budget`
// together. Inputs are small numbers; constants are packed before. kUnimplemented where an operand
// is strided or the host cannot see the device's memory.
Result<Seconds> measure(const Machine& machine, const op::ClaimSource& source,
                        const op::Problem& problem, const op::Claim& claim, Seconds budget);

}  // namespace tessera::runtime
