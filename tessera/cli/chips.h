// What the catalog says of chips: the list, and one chip with the figures that follow.
#pragma once

#include <string>

#include "tessera/base/result.h"

namespace tessera::cli {

Status print_catalog(bool json);
// By name or path; "sim:" in front does not matter.
Status print_chip(const std::string& name, bool json);
Status print_chip_schema();

}  // namespace tessera::cli
