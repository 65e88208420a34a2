// Where a call was made. std::source_location, which clang 14 does not offer with Debian's standard
// library.
#pragma once

#include <cstdint>

namespace tessera {

// As the default of a last parameter, `CallSite site = CallSite::current()` is the caller's place.
struct CallSite {
  const char* file = "";
  const char* function = "";
  uint32_t line = 0;

  static constexpr CallSite current(const char* file = __builtin_FILE(),
                                    const char* function = __builtin_FUNCTION(),
                                    uint32_t line = __builtin_LINE()) {
    return {file, function, line};
  }
};

}  // namespace tessera
