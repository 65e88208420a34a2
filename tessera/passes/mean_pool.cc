#include "tessera/passes/mean_pool.h"

#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

bool rule(Site& at) {
  const auto mean = at.node.outputs.size() == 1 ? mean_of(at, at.node) : std::nullopt;
  if (!mean) return false;
  const op::Type& type = at.type(mean->of);
  if (!is_float(type.dtype) || type.rank() < 3 || mean->axes.size() + 2 != type.shape->size() ||
      mean->axes.front() != 2)
    return false;
  ir::Builder& b = at.build(mean->nodes);
  const ir::ValueId pooled = b.op("global_average_pool", {mean->of});
  if (mean->keepdims) return at.replace(pooled, "mean over spatial axes");
  const auto channels = type.dim(1).constant();
  if (!channels) return at.miss("the number of channels is unknown");
  return at.replace(b.reshape(pooled, {-1, *channels}), "mean over spatial axes");
}

}  // namespace

void mean_pool(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
