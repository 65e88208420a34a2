// Attention as one program: tiles of queries stay while keys and values come by, with a running
// softmax between two products.
#pragma once

#include "tessera/cost/machine.h"

namespace tessera::cost {

struct AttentionShape {
  double batch = 1, heads = 1, key_heads = 1, queries = 0, keys = 0;
  double head = 0, value_head = 0;  // sizes
  bool causal = false;
  double mask_bytes = 0;
  std::string type = "f16";
  double element_bytes = 2;
};

Result<Tally> attention(const Machine& machine, const AttentionShape& shape);

}  // namespace tessera::cost
