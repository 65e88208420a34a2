// A launch on all cores of a chip.
#pragma once

#include "tessera/base/thread_pool.h"
#include "tessera/hal/sim/core.h"

namespace tessera::hal::sim {

struct LaunchTime {
  double ps = 0;        // from the launch, its overhead included, to the end of the last core
  double start_ps = 0;  // of that: the overhead
  std::vector<double>
      busy;  // by engine of the program: part of the rest that it worked, on average
  int64_t steps = 0;
  int64_t read_bytes = 0, written_bytes = 0;  // of the device's memory, caches included
};

// Errors are those of the core with the lowest number that has any; what the others have written
// is unspecified then. The same at any number of threads.
Result<LaunchTime> run(const Loaded& loaded, const Arguments& arguments, Mode mode,
                       ThreadPool& pool);

}  // namespace tessera::hal::sim
