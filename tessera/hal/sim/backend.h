// Simulated chips: one device for each entry of the catalog, which runs engine programs
// (tile/engine.h) on host memory and keeps a clock of its own.
//
//   backend.cc     the table, and what the devices are
//   memory.cc      slabs
//   executable.cc  programs from text
//   queue.cc       running one command
//   run.h          a launch: all cores of a chip
//   core.h         one core: order, flags, races, time
//   compute.h      what steps do to elements
//   clock.h        how long they take
//   numerics.h     how matrix units round
//
// device_clock and timestamps are the simulated time, in ns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/hal/backend.h"
#include "tessera/hal/conformance_executables.h"

namespace tessera::hal::sim {

// All chips of the catalog, those of TESSERA_CHIPS included.
int32_t plugin_main(const tessera_host* host, const tessera_backend** backend,
                    tessera_error* error);

// A backend of these chips alone.
Result<std::unique_ptr<Backend>> load(std::vector<chip::Chip> chips);

// For a chip that has a vector unit; else kUnimplemented.
Result<ConformanceExecutables> conformance_executables(const chip::Chip& chip);

}  // namespace tessera::hal::sim
