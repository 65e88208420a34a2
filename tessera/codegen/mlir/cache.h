// Compiled code on disk, shared by all processes of a user.
//
// An entry is a file of its own, named by a hash of its key. It holds the key in full, the code and
// a checksum of both: an entry of another key, one that was cut off or whose bits have changed is
// none, and is removed. Entries are written beside and renamed, so that readers need no locks and
// see all or nothing; two processes that write one entry write the same. What the key says
// (compiler, features, the text of the program) is all that code depends on.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"

namespace tessera::codegen::mlir {

class Cache {
 public:
  static constexpr Bytes kLimit{int64_t{64} << 20};

  // In `folder`, which is made when something is put into it; "": nothing is kept.
  explicit Cache(std::string folder, Bytes limit = kLimit)
      : folder_(std::move(folder)), limit_(limit) {}

  // $TESSERA_CACHE_DIR/code ("none": no cache); else tessera/code in $XDG_CACHE_HOME or ~/.cache.
  static std::string default_folder();

  // The code that was put in under the key, by whomever; nothing if there is none that is whole.
  std::optional<std::vector<std::byte>> find(std::string_view key) const;
  // Keeps the code. Entries that have not been found for longest go when all take more than the
  // limit. Errors are those of the disk; nothing is lost by ignoring them but the time to compile
  // again.
  Status put(std::string_view key, std::span<const std::byte> code) const;

  bool empty() const;  // nothing will be found

  const std::string& folder() const { return folder_; }
  std::string path_of(std::string_view key) const;

 private:
  void evict() const;

  std::string folder_;
  Bytes limit_;
};

}  // namespace tessera::codegen::mlir
