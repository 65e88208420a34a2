// Constant block of the reduction entry.
#pragma once

#include "tessera/kernels/cpu/elementwise_args.h"

namespace tessera::kernels::cpu {

enum class ReduceKind : int32_t { kSum, kProd, kMax, kMin, kAnd, kOr };

// y[kept] = scale * reduction of x[kept, reduced]. The kept axes and the reduced ones are each
// merged and in the order of x. Ranges: x, y. Work item = `chunk` outputs; if the innermost axis of
// x is kept, of rows of kept_dims' last axis.
struct ReduceArgs {
  ReduceKind kind;
  Compute compute;
  int32_t in_dtype, out_dtype;  // as in ElementwiseArgs; -1: in the compute type
  int32_t in_bytes, out_bytes;
  int32_t kept_rank, reduced_rank;
  int64_t kept_dims[kMaxSpaceRank], kept_strides[kMaxSpaceRank];
  int64_t reduced_dims[kMaxSpaceRank], reduced_strides[kMaxSpaceRank];
  int64_t outputs, chunk;
  double scale;  // floats only
};

}  // namespace tessera::kernels::cpu
