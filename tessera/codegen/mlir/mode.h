// What is asked of the claim source, and what it tells of itself.
#pragma once

#include <cstdint>

namespace tessera::codegen::mlir {

// Which programs are claimed.
enum class Mode : uint8_t {
  kNone,    // no claims
  kCached,  // those whose code is in the cache: nothing is compiled, unless an entry is lost later
  kAlways,  // all for which there is code; it is compiled when launches are prepared, and kept
};

// What became of programs since the source was made.
struct Counters {
  int64_t compiled = 0;
  int64_t loaded = 0;  // from the cache
  double seconds = 0;  // spent compiling, opening the compiler included
};

}  // namespace tessera::codegen::mlir
