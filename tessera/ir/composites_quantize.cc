// Quantisation in terms of arithmetic.
#include "tessera/ir/builder.h"

namespace tessera::ir {
namespace {

// Zero points of rows: rank 1 becomes a column.
ValueId shifted(Builder& b, ValueId x, ValueId zero, bool rows) {
  if (zero == kAbsent) return x;
  zero = b.convert(zero, DType::kI32);
  if (rows && b.rank(zero) == 1 && b.rank(x) > 1) zero = b.reshape(zero, {-1, 1});
  return b.sub(b.convert(x, DType::kI32), zero);
}

// dot_integer(a, b, a_zero?, b_zero?)
std::vector<ValueId> dot_integer(Builder& b, const op::Attrs&, const std::vector<ValueId>& in, int) {
  auto at = [&](size_t i) { return i < in.size() ? in[i] : kAbsent; };
  return {b.op("dot", {shifted(b, in[0], at(2), true), shifted(b, in[1], at(3), false)}, {{"accumulate", DType::kI32}})};
}

constexpr Composite kRows[] = {
    {"dot_integer", dot_integer},
};

}  // namespace

std::span<const Composite> quantize_composites() { return kRows; }

}  // namespace tessera::ir
