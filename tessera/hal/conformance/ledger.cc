#include "tessera/hal/conformance/ledger.h"

#include <fstream>
#include <sstream>

namespace tessera::hal::conformance {

Result<Ledger> parse_ledger(const std::string& text) {
  Ledger ledger;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos || colon == 0 || colon + 2 == line.size())
      return error(Code::kInvalidArgument, "line {} is not 'topic.name: reason' but '{}'", number,
                   line);
    if (!ledger.emplace(line.substr(0, colon), line.substr(colon + 2)).second)
      return error(Code::kInvalidArgument, "line {} repeats '{}'", number, line.substr(0, colon));
  }
  return ledger;
}

Result<Ledger> read_ledger(const std::string& path) {
  std::ifstream file(path);
  if (!file) return error(Code::kNotFound, "no ledger '{}'", path);
  std::ostringstream text;
  text << file.rdbuf();
  auto ledger = parse_ledger(text.str());
  if (!ledger) return error(std::move(ledger.error()).at(path));
  return ledger;
}

}  // namespace tessera::hal::conformance
