// XLA's notation of layouts, as in the text of HLO:
//
//   {1,0:T(8,128)(2,1)}               the logical axes from minor to major, then tiles
//   bf16[20,28]{1,0:T(8,128)(2,1)}    behind a shape
//
//   layout := "{" [axis ("," axis)*] [":" property*] "}"
//   property := "T" ("(" size ("," size)* ")")+   tiles; "*" for a size merges the axis with the
//   next
//             | "E(" bits ")"                     bits of an element
//             | "S(" space ")"                    memory space
//             | "L(1)" | "D(D,...)"               nothing beside the default
//
// A tile cuts the last axes, one per size: each becomes a quotient, and behind all of them the
// remainders follow. The next tile cuts what the one before left: of (8,128)(2,1) the second puts
// rows 2i and 2i + 1 of a column beside each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/result.h"
#include "tessera/layout/layout.h"

namespace tessera::layout {

struct XlaLayout {
  Layout layout = {};
  // Of a shape, if the text has one.
  std::optional<DType> dtype = std::nullopt;
  std::vector<int64_t> extents = {};
  int element_bits = 0;  // 0: not said
  int memory_space = 0;
};

// Whether the text means to be XLA's: it has a brace.
bool is_xla(std::string_view text);

// `letters` names the logical axes in order; empty: a, b, c, ... kInvalidArgument says what is
// wrong and where; kUnimplemented: a property that no expression says (physical shapes, sparse
// axes, aligned tails).
Result<XlaLayout> parse_xla(std::string_view text, std::string_view letters = {});

}  // namespace tessera::layout
