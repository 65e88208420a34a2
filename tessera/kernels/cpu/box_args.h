// Constant block of the entry that moves boxes of elements: the copies follow it. Ranges: x, y.
#pragma once

#include <span>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/layout/copy.h"

namespace tessera::kernels::cpu {

// Work item = `chunk` tiles of the copies, counted through.
struct BoxArgs {
  int64_t count;
  int64_t tiles;
  int64_t chunk;
  layout::Isa isa;

  const layout::Copy* copies() const { return reinterpret_cast<const layout::Copy*>(this + 1); }
};
static_assert(sizeof(BoxArgs) % alignof(layout::Copy) == 0);

// The launch of the copies, which move `bytes` bytes from an input to an output.
LaunchSpec move_boxes(std::span<const layout::Copy> copies, int64_t bytes, int input, int output);

}  // namespace tessera::kernels::cpu
