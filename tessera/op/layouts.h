// The few layouts that operators are asked for by name, as text in the letters by which ir and
// plans hold them.
#pragma once

#include <string_view>

#include "tessera/op/problem.h"

namespace tessera::op {

// "nchw: n h w c": the channels (axis 1) innermost. Ranks 3 to 5; empty for others.
std::string_view channels_last(int rank);

// Whether the elements lie channels-last, packed or with other strides. If all axes but the batch
// and the channels have size 1, channels-last and row-major are the same and the text is empty.
bool is_channels_last(const Operand& o);

}  // namespace tessera::op
