// tessera bench --convert: how fast a layout becomes another.
#pragma once

#include <string>

#include "tessera/base/result.h"
#include "tessera/cli/terminal.h"

namespace tessera::cli {

struct ConvertArguments {
  std::string type;      // "f32[4096,4096]"
  std::string from, to;  // "m n", or with the letters in logical order in front: "mn: n m"
  int threads = 0;
};

// "gbps" counts source and destination bytes, padding included; "memcpy_gbps" the same of a copy as
// large as the larger of the two, measured in turn.
Result<Json> bench_conversion(const ConvertArguments& a);

}  // namespace tessera::cli
