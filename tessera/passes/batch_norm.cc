#include "tessera/passes/batch_norm.h"

#include <cmath>

namespace tessera::passes {
namespace {

// As composites_batch_norm.cc has it.
constexpr double kEpsilon = 1e-5;

bool affine(Site& at) {
  if (!at.is("batch_norm")) return false;
  const op::Tensor *scale = at.constant(at.in(1)), *bias = at.constant(at.in(2)),
                   *mean = at.constant(at.in(3)), *var = at.constant(at.in(4));
  const op::Type& type = at.type(at.in(0));
  if (!scale || !bias || !mean || !var) return at.miss("the statistics are no constants");
  if (!type.ranked()) return at.miss("the rank is unknown");
  op::Dims dims(static_cast<size_t>(type.rank() - 1), 1);  // (C, 1, ...)
  dims[0] = scale->count();
  auto factor = op::Tensor::make(type.dtype, dims), offset = op::Tensor::make(type.dtype, dims);
  if (!factor || !offset) return false;
  const double epsilon = at.node.attrs.f("epsilon", kEpsilon);
  for (int64_t c = 0; c < dims[0]; ++c) {
    const double f = scale->f64(c) / std::sqrt(var->f64(c) + epsilon);
    factor->set_f64(c, f);
    offset->set_f64(c, bias->f64(c) - mean->f64(c) * f);
    if (!std::isfinite(factor->f64(c)))
      return at.miss(fmt::format("the factor of channel {} is {}", c, f));
  }
  ir::Builder& b = at.build();
  const ir::ValueId scaled = b.mul(at.in(0), b.constant(*std::move(factor)));
  return at.replace(b.add(scaled, b.constant(*std::move(offset))), "batch_norm");
}

}  // namespace

void batch_norm(Rewriter& rewriter) { rewriter.walk(affine); }

}  // namespace tessera::passes
