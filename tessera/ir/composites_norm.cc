// Normalisations and what is made like them: softmax, layer norm.
#include "tessera/ir/builder.h"

namespace tessera::ir {
namespace {

// softmax(x, axis) = e / sum(e), e = exp(x - max(x))
std::vector<ValueId> softmax(Builder& b, const op::Attrs& attrs, const std::vector<ValueId>& in, int) {
  const std::vector<int64_t> axis{attrs.i("axis", -1)};
  const ValueId e = b.unary("exp", b.sub(in[0], b.reduce("max", in[0], axis, true)));
  return {b.div(e, b.reduce("sum", e, axis, true))};
}

// relu(x) = max(x, 0)
std::vector<ValueId> relu(Builder& b, const op::Attrs&, const std::vector<ValueId>& in, int) {
  return {b.max(in[0], b.scalar_like(in[0], 0))};
}

constexpr Composite kRows[] = {
    {"relu", relu},
    {"softmax", softmax},
};

}  // namespace

std::span<const Composite> norm_composites() { return kRows; }

}  // namespace tessera::ir
