// Values that follow from positions: the ranges and their sums that masks are made from.
#pragma once

#include <map>
#include <optional>

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

// offset + sum of steps[a] * (index along axis a), axes counted from the end: 1 is the last.
struct Affine {
  op::Expr offset;
  std::map<int, int64_t> steps;  // none is 0
};

// Value `id` as an affine function of its own index, computed by ranges, sums and views; nullopt
// where it is none or that is not known.
std::optional<Affine> affine_of(const Site& at, ir::ValueId id);

// A mask (..., S, T) over scores of S queries and T keys.
enum class Visible {
  kAll,     // hides nothing
  kCausal,  // hides key j of query i where j > i + T - S
  kOther,
};
// What a condition lets see, if it follows from positions.
Visible visible_by(const Site& at, ir::ValueId condition, const op::Expr& queries,
                   const op::Expr& keys);
// What a term leaves to see: 0 is visible, lower than any finite score is not.
Visible visible_under(const Site& at, ir::ValueId term, const op::Expr& queries,
                      const op::Expr& keys);
// A number that hides what it is added to, or stands for: exp of its distance to any score is 0.
bool hides(DType dtype, double number);

}  // namespace tessera::passes
