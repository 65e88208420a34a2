// A wrapper that makes any backend misbehave in ways that real ones do: refused allocations,
// failing submissions, work that starts late, out-of-order queues that really are out of order, a
// device that is lost.
//
// Delays and reorderings are legal: whatever is right on the backend is right on the wrapper too.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "tessera/hal/backend.h"

namespace tessera::hal::faulty {

// Probabilities are per call, in [0, 1]. The same seed draws the same numbers for each device, in
// the order of its calls.
struct Faults {
  uint64_t seed = 1;
  double refused_allocation = 0;  // slab_allocate: kResourceExhausted
  double failed_submission = 0;   // runs no command; its signals fail with kInternal
  double delayed_submission = 0;  // reaches the backend later
  std::chrono::microseconds longest_delay{200};
  bool reorder = false;              // submissions of out-of-order queues overtake each other
  uint64_t lose_after = UINT64_MAX;  // submissions, then the device is lost
};

// Device options `fault.seed`, `fault.refused_allocation`, `fault.failed_submission`,
// `fault.delayed_submission`, `fault.longest_delay_us`, `fault.reorder` (0 or 1) and
// `fault.lose_after` override `faults`; all others go to `inner`. The result is named "faulty".
Result<std::unique_ptr<Backend>> wrap(std::unique_ptr<Backend> inner, const Faults& faults = {});

}  // namespace tessera::hal::faulty
