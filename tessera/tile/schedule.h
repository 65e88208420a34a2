// How a tile program's axes are cut: kept apart from what is computed.
#pragma once

#include <vector>

#include "tessera/base/units.h"
#include "tessera/tile/program.h"

namespace tessera::tile {

struct AxisSchedule {
  int64_t tile = 1;    // elements of a piece; 0: the whole axis, which is all for axes in `whole`
  int64_t vector = 1;  // elements that one register holds; `tile` is a multiple of it
  bool operator==(const AxisSchedule&) const = default;
};

struct Schedule {
  std::vector<AxisSchedule> axes;  // by axis of the program
  const AxisSchedule& axis(int a) const { return axes[static_cast<size_t>(a)]; }
  bool operator==(const Schedule&) const = default;
};

// Pieces of an axis.
inline int64_t pieces(int64_t extent, int64_t tile) {
  return tile == 0 ? (extent > 0 ? 1 : 0) : (extent + tile - 1) / tile;
}

// Work items of one piece of each grid axis. kOutOfRange if they do not fit.
Result<int64_t> grid_size(const Program& program, const Schedule& schedule,
                          const op::Bindings& symbols);

// Bytes of all tiles that are alive at the moment when that is most.
Result<Bytes> footprint(const Program& program, const Schedule& schedule,
                        const op::Bindings& symbols);

// What the tiles of a schedule may take.
struct Limits {
  Bytes tiles{INT64_MAX};  // of the memory that holds them: registers, a scratch pad
};

// kInvalidArgument: not one entry per axis, sizes that make no sense, vectors along two axes, or an
// axis of `whole` that is cut. kResourceExhausted: tiles that do not fit the limits.
Status check(const Program& program, const Schedule& schedule, const op::Bindings& symbols,
             const Limits& limits = {});

}  // namespace tessera::tile
