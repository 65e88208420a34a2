// NumPy's .npz: a zip archive of .npy files, stored or deflated.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"

namespace tessera::io {

struct NpzMember {
  std::string name;  // without ".npy"
  std::string_view data;
  std::shared_ptr<const void> keep;  // keeps `data` alive
};

// Members whose name ends in ".npy", in the archive's order, for parse_npy(). Stored ones are
// borrowed from `bytes`. kDataLoss for what is damaged (checksums are checked), kUnimplemented for
// other compressions and encryption, kResourceExhausted when memory runs out. What is unpacked is
// bounded by what deflate can do: 1032 times the file.
Result<std::vector<NpzMember>> parse_npz(std::string_view bytes,
                                         const std::shared_ptr<const void>& keep);

}  // namespace tessera::io
