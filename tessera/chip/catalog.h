// Where chips come from: folders, and what is built in (data/hardware of the source tree).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/chip/chip.h"

namespace tessera::chip {

class Catalog {
 public:
  // Of two files of one name, that of the earlier folder counts, and each before what is built in.
  explicit Catalog(std::vector<std::string> folders = {}) : folders_(std::move(folders)) {}
  // With the folders that TESSERA_CHIPS lists, separated by colons.
  static Catalog of_environment();

  // Names without ".json", sorted. A folder that cannot be read is an error.
  Result<std::vector<std::string>> ids() const;
  // By name, or by the path of a file (which has a '/' or ends in ".json"); a file's bases are
  // looked for beside it, too. kNotFound tells similar names.
  Result<Chip> load(std::string_view id) const;

 private:
  Result<Source> find(std::string_view id, const std::string& beside) const;
  std::vector<std::string> folders_;
};

struct BuiltIn {
  std::string_view id;
  std::string_view text;
};
std::span<const BuiltIn> built_in();  // sorted by id

}  // namespace tessera::chip
