// Movements that come down to reshape, broadcast and transpose.
#include "tessera/ir/composites.h"

namespace tessera::ir {
namespace {

// tile(x, repeats): each axis becomes (repeat, size), broadcast, and is joined again.
std::vector<ValueId> tile(Builder& b, const op::Attrs&, const std::vector<ValueId>& in, int) {
  const ValueId x = in[0], repeats = b.convert(in[1], DType::kI64);
  const int rank = b.rank(x);
  if (rank < 0) b.fail({Code::kUnimplemented, "tile: the rank must be known"});
  if (!b.ok() || rank == 0) return {x};
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < rank; ++a) axes.push_back(2 * a);
  const ValueId sizes = b.shape_of(x);
  const ValueId pairs = b.concat({b.unsqueeze(repeats, {1}), b.unsqueeze(sizes, {1})}, 1);
  const ValueId wide = b.broadcast_to(b.unsqueeze(x, axes), b.reshape(pairs, {-1}));
  return {b.op("reshape", {wide, b.mul(repeats, sizes)}, {{"zero_is_zero", int64_t{1}}})};
}

constexpr Composite kRows[] = {{"tile", tile}};

}  // namespace

std::span<const Composite> move_composites() { return kRows; }

}  // namespace tessera::ir
