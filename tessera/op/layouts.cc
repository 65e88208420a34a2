#include "tessera/op/layouts.h"

#include <algorithm>

namespace tessera::op {

std::string_view channels_last(int rank) {
  switch (rank) {
    case 3:
      return "ncw: n w c";
    case 4:
      return "nchw: n h w c";
    case 5:
      return "ncdhw: n d h w c";
    default:
      return {};
  }
}

bool is_channels_last(const Operand& o) {
  if (channels_last(o.rank()).empty()) return false;
  if (!o.layout.empty()) return o.layout == channels_last(o.rank());
  return std::all_of(o.dims.begin() + 2, o.dims.end(), [](int64_t d) { return d == 1; });
}

}  // namespace tessera::op
