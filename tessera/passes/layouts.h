// What layouts mean for the order of bytes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tessera/op/type.h"

namespace tessera::passes {

// The logical axes in the order in which they lie in memory, outermost first, without those of
// size 1; nothing if the layout is more than an order of axes. Empty text: row-major.
std::optional<std::vector<int>> physical_order(const op::Type& type, std::string_view layout);

}  // namespace tessera::passes
