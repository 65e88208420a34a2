#include "tessera/op/layouts.h"

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

}  // namespace tessera::op
