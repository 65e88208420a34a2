// The gaps of a backend: cases that it is known not to pass, each with a reason. A file of lines
//   topic.name: reason
// with '#' before comments. A gap that passes is an error, as is a line that names no case.
#pragma once

#include <map>
#include <string>

#include "tessera/base/result.h"

namespace tessera::hal::conformance {

using Ledger = std::map<std::string, std::string>;  // "topic.name" -> reason

Result<Ledger> parse_ledger(const std::string& text);
// A missing file is an error: a backend without gaps has a ledger that says so.
Result<Ledger> read_ledger(const std::string& path);

}  // namespace tessera::hal::conformance
