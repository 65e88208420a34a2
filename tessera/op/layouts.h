// The few layouts that operators are asked for by name, as text in the letters by which ir and
// plans hold them.
#pragma once

#include <string>
#include <string_view>

namespace tessera::op {

// "nchw: n h w c": the channels (axis 1) innermost. Ranks 3 to 5; empty for others.
std::string_view channels_last(int rank);

}  // namespace tessera::op
