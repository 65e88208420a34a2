// What running a compiled program takes: the estimate behind its claim.
#pragma once

#include "tessera/tile/schedule.h"

namespace tessera::codegen::mlir {

// Operations of vectors times their lanes, the part of the processor's arithmetic peak that such
// code reaches, and the part that it takes of the time in which the operands are copied: what lies
// in a cache moves faster, if nothing between operators is stored.
struct Work {
  double flops = 0;
  double efficiency = 1;
  double memory = 1;
};
Result<Work> work_of(const tile::Instance& instance, const tile::Schedule& schedule);

}  // namespace tessera::codegen::mlir
