// A layout drawn: which element each place of memory holds, and in which place each element of the
// tensor lies. Blocks are what lies together: the physical axes inside a tile (those of a
// remainder), else the last axis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/layout/bound.h"

namespace tessera::layout {

// What a picture shows at most.
struct PictureLimits {
  int64_t rows = 64;     // of a block, and of the tensor
  int64_t columns = 64;  // likewise
  int64_t blocks = 16;
};

struct Picture {
  static constexpr int64_t kPadding = -1;

  struct Block {
    std::string label = {};                       // "n/16=0 m/16=1"; empty: there is but one
    int64_t first = 0;                            // its first place
    std::vector<std::vector<int64_t>> rows = {};  // row-major numbers of elements, or kPadding
  };
  struct Place {
    int64_t offset = 0;
    int64_t block = 0;
  };
  // A slice of the tensor along two axes.
  struct Slice {
    std::string rows_name, columns_name;  // of the axes: "m"; empty: there is none
    std::string at;                       // "n=0 h=0"; empty: it is the whole tensor
    std::vector<std::vector<Place>> rows;
    int64_t all_rows = 0, all_columns = 0;
  };

  std::vector<Block> blocks;
  int64_t all_blocks = 0;
  int64_t all_rows = 0, all_columns = 0;  // of each block
  Slice tensor;
};

// Of a tensor without elements: empty.
Picture picture_of(const BoundLayout& layout, const PictureLimits& limits = {});

// Row-major numbers of the elements in the first places of memory, or kPadding, packed or not.
std::vector<int64_t> order_of(const BoundLayout& layout, int64_t most);

// One self-contained SVG, for light and dark surroundings: the tensor with its places, and memory
// with its elements.
std::string to_svg(const Picture& picture, std::string_view title);

}  // namespace tessera::layout
