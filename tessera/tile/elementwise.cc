// One nest over the outputs' elements, its axes in the order in which output 0 lies: every input is
// loaded where it is read, every output stored where it is made.
#include <algorithm>
#include <cstdlib>

#include "tessera/tile/frame.h"
#include "tessera/tile/problems.h"

namespace tessera::tile {

Result<Instance> elementwise(const op::Problem& p) {
  if (p.out.empty() || !p.out[0].present) return refuse("nobody reads output 0");
  const op::Dims& dims = p.out[0].dims;
  TRY_ASSIGN(const op::Dims lead, operand_strides(p.out[0]));
  std::vector<size_t> order(dims.size());  // dimensions by axis, outermost first
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return std::abs(lead[a]) > std::abs(lead[b]); });
  op::Dims space;
  std::vector<int> of_result(dims.size());
  for (size_t a = 0; a < order.size(); ++a) {
    space.push_back(dims[order[a]]);
    of_result[order[a]] = static_cast<int>(a);
  }
  Frame f("elementwise", p, std::move(space), std::vector<int>(dims.size(), 0),
          std::move(of_result));
  for (size_t i = 0; i < p.anchor_inputs(); ++i) TRY(f.input(i));
  TRY(f.settle());
  f.grid(0);

  Lowering steps(f.b);
  std::vector<int> in;
  for (size_t i = 0; i < p.anchor_inputs(); ++i) {
    in.push_back(static_cast<int>(i));
    steps.define(in.back(), f.load(i));
  }
  const int result = static_cast<int>(p.in.size());
  TRY(steps.apply(*p.op, p.attrs, in, p.anchor_result().dtype, result));
  if (p.fused() && is_narrow(p.anchor_result().dtype)) f.approximate();
  TRY(f.finish_steps(std::move(steps)));
  return f.finish();
}

}  // namespace tessera::tile
