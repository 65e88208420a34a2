// What follows from a chip's numbers by arithmetic: peaks, ridge points, occupancy.
#pragma once

#include <string>
#include <vector>

#include "tessera/chip/chip.h"

namespace tessera::chip {

struct Peak {
  std::string unit, type;
  double flops_per_second = 0;  // operations, for integers
  std::string arithmetic;       // "24 aic x 1 x 4096 x 2 x 1.8 GHz"
  // Operations per byte of the device's memory from which on arithmetic binds.
  double ridge = 0;
};

// All units and types, by unit and, in it, the fastest first:
// flops_per_second == cores x per_core x macs_per_cycle x 2 x clock.
std::vector<Peak> peaks(const Chip& chip);

// Multiply-adds per second of the fastest unit of that kind for a type; 0 if it has none.
double peak_flops(const Chip& chip, UnitKind kind, std::string_view type);

struct Block {
  int64_t threads = 1;
  int64_t registers_per_thread = 1;
  Bytes shared{0};
};
struct Occupancy {
  int64_t blocks = 0;  // that a core holds at once
  int64_t warps = 0;
  double fraction = 0;  // of the warps that it could hold
  std::string bound;    // "blocks", "warps", "registers", "shared memory"
};

// kFailedPrecondition if the chip says nothing of threads; kOutOfRange for a block that no core can
// hold, with the limit.
Result<Occupancy> occupancy(const Chip& chip, const Block& block);

}  // namespace tessera::chip
