// Moves a box of elements, tile by tile.
//
//   tiles      follow the source's order; their sides are runs of both layouts,
//   so that whole lines
//              are read and written
//   kernels    transpose a tile in registers, or copy its runs
//   stage      large targets: a tile is put together in the first cache, and
//   whole lines go past
//              the caches, while the next tile is fetched
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/layout/boxes.h"
#include "tessera/layout/copy_kernels.h"
#include "tessera/layout/isa.h"

namespace tessera::layout {

// A box, tiled; plain data, so that it may travel in a launch's constants.
// Strides and offsets in bytes, dimensions by rising target stride.
struct Copy {
  enum class Kind : uint8_t {
    kRuns,       // dims[0] is a run on both sides; dims[row] counts the runs
    kTranspose,  // dims[0] is a run of the target, dims[row] one of the source
    kElements,   // neither
    kZero,       // no source: zeros
  };
  struct Dim {
    int64_t size = 1;
    int64_t tile = 1;
    int64_t src = 0;
    int64_t dst = 0;
  };
  Kind kind = Kind::kRuns;
  uint8_t log_size = 0;  // of an element
  bool staged = false;   // tiles are put together aside
  bool skewed = false;   // and begin and end with whole lines of the target, whatever that takes
  bool streamed = false;
  int32_t rank = 1;
  int32_t row = 0;                           // a dimension, 0 where there is none
  std::array<uint8_t, kBoxRank> order = {};  // of tiles, innermost dimension first
  std::array<Dim, kBoxRank> dims = {};
  int64_t src = 0;
  int64_t dst = 0;
  int64_t valid = 0;  // elements of dims[0]; beyond them zeros
  int64_t tiles = 1;
  // Tiles go along two dimensions before the others: the first of the source, `side`, and the
  // first of the target, `up`, in blocks of so many tiles, whose pages stay at hand. `panel` tiles
  // side by side are fetched at once.
  uint8_t side = 0;
  uint8_t up = 0;  // the same if there is but one
  int64_t side_block = 1;
  int64_t up_block = 1;
  int64_t panel = 1;
};

// Copies for all boxes. `streamed`: the target is too large for the caches.
Copy plan_copy(const Box& box, int64_t element_bytes, bool streamed);
std::vector<Copy> plan_copies(const Boxes& boxes, bool streamed);
// Whether conversions of so many bytes, both sides together, should go past the
// caches.
bool beyond_caches(int64_t bytes);

// Tiles [first, last) of the copies' tiles, counted through.
void run_copies(std::span<const Copy> copies, Isa isa, const std::byte* src, std::byte* dst,
                int64_t first, int64_t last);

}  // namespace tessera::layout
