// The three entries that each backend ships so that hal/conformance can drive it.
//
//   add   ranges a, b, c of f32; grid: elements.       c[i] = a[i] + b[i]
//   spin  range n of one u32; constants: u64 time in microseconds; grid 1.  Takes that long, then n
//   += 1 trap  no ranges; grid 1.                                                Fails
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tessera/hal/device.h"

namespace tessera::hal {

// Entries in the order add, spin, trap.
struct ConformanceExecutables {
  std::string format;
  std::vector<std::byte> bytes = {};         // of any format but host_fn
  std::vector<HostFunction> functions = {};  // of host_fn
};

// For backends that take host_fn.
ConformanceExecutables host_conformance_executables();
// For backends that run the host's code from format elf. Without a format on machines for which
// there is none.
ConformanceExecutables elf_conformance_executables();

}  // namespace tessera::hal
