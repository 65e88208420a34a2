// What layouts mean for the order of bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/op/type.h"

namespace tessera::passes {

// The logical axes in the order in which they lie in memory, outermost first, without those of
// size 1; nothing if the layout is more than an order of axes. Empty text: row-major.
std::optional<std::vector<int>> physical_order(const op::Type& type, std::string_view layout);

// The layout under which a tensor of type `to`, with the elements of `from` in the same logical
// order, has the bytes that `from` has in `layout`; nothing if axes would have to be taken apart
// that are no neighbours there. Canonical text.
std::optional<std::string> reshaped(const op::Type& from, std::string_view layout,
                                    const op::Type& to);

// The layout that orders the logical axes so, outermost first; empty for row-major.
std::string layout_of(const std::vector<int>& order);

}  // namespace tessera::passes
