// Constant block of the resize entry: this struct, then for each of the two axes, in this order:
// first (out + 1 numbers), indices and weights (first[out] of each), all of 4 bytes. Element o is
// the sum over i in [first[o], first[o + 1]) of weights[i] times element indices[i].
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

inline constexpr int64_t kResizeRow = 16384;  // floats of a row of x, at most, unless nearest

// x is (outer, in[0], in[1], inner). Ranges: x, y. Work item = `chunk` rows of y, a row being
// (outer, out[0]).
struct ResizeArgs {
  int64_t outer, inner, chunk;
  int64_t in[2], out[2];
  int32_t nearest, bytes;
};

}  // namespace tessera::kernels::cpu
