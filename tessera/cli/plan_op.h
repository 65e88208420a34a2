// `plan --op`: what one operator costs on a described chip.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/result.h"

namespace tessera::cli {

// Of each problem string, on a chip of the catalog or the path of a chip file ("sim:" in front does
// not matter). JSON: one object, or a list under "operators" if there are several.
Result<int> plan_operators(const std::vector<std::string>& operators, const std::string& device,
                           bool json);

}  // namespace tessera::cli
