// Losses: the negative log likelihood, and cross entropy after a softmax.
#include "tessera/import/onnx/importer.h"
#include "tessera/ir/composites.h"

namespace tessera::import::onnx {
namespace {

// loss(n, ...) = -weight(c) input(n, c, ...), c = target(n, ...); 0 where c is ignore_index. The
// mean divides by the sum of the weights. The class is picked by comparing it with all, which an
// ignored one of any value survives.
Result<ValueId> negative_likelihood(NodeContext& c, ValueId input, ValueId target, ValueId weight) {
  ir::Builder& b = c.b;
  TRY(b.status());
  if (!b.type(input).ranked() || b.rank(input) < 2)
    return error(Code::kInvalidArgument, "{}: the input is {}, need a known rank of 2 or more",
                 c.node.op_type, b.type(input).str());
  const std::string reduction = c.s("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return error(Code::kInvalidArgument, "{}: unknown reduction '{}'", c.node.op_type, reduction);
  const ValueId x = ir::widen(b, input), zero = b.scalar_like(x, 0),
                label = b.convert(target, DType::kI64);
  const ValueId chosen =
      b.op("eq", {ir::index_along(b, x, 1), b.unsqueeze(label, {1})});  // (N, C, ...)
  auto pick = [&](ValueId from) {
    return b.reduce("sum", b.select(chosen, from, zero), {1}, false);
  };
  ValueId loss = b.unary("neg", pick(x)), share = kAbsent;  // (N, ...)
  if (weight != kAbsent) {
    op::Ints shape(static_cast<size_t>(b.rank(x)), 1);
    shape[1] = -1;
    share = pick(b.reshape(b.convert(weight, b.dtype(x)), shape));
  }
  if (c.has_attr("ignore_index")) {
    const ValueId ignored =
        b.op("eq", {label, b.scalar(DType::kI64, static_cast<double>(c.i("ignore_index", 0)))});
    share = b.select(ignored, zero, share != kAbsent ? share : b.scalar_like(x, 1));
    loss = b.select(ignored, zero, loss);
  }
  const ValueId weighted = share != kAbsent ? b.mul(loss, share) : loss;
  auto all = [&](ValueId v) { return b.reduce("sum", v, ir::range(0, b.rank(v)), false); };
  ValueId y = reduction == "none" ? weighted : all(weighted);
  if (reduction == "mean") {
    if (share != kAbsent) {
      y = b.div(y, all(share));
    } else {
      const op::Ints axes = ir::range(0, b.rank(weighted));
      y = b.squeeze(ir::mean(b, weighted, axes), axes);
    }
  }
  return b.convert(y, b.dtype(input));
}

Status nll_loss(NodeContext& c) {
  TRY_ASSIGN(const ValueId y, negative_likelihood(c, c.in(0), c.in(1), c.in(2)));
  c.out(0, y);
  return {};
}

Status cross_entropy(NodeContext& c) {
  const ValueId log_p = c.b.op("log_softmax", {c.in(0)}, {{"axis", int64_t{1}}});
  TRY_ASSIGN(const ValueId y, negative_likelihood(c, log_p, c.in(1), c.in(2)));
  c.out(0, y);
  c.out(1, log_p);
  return {};
}

constexpr Converter kRows[] = {
    {"", "NegativeLogLikelihoodLoss", nll_loss},
    {"", "SoftmaxCrossEntropyLoss", cross_entropy},
};

}  // namespace

std::span<const Converter> loss_converters() { return kRows; }

}  // namespace tessera::import::onnx
