#include "tessera/ir/composites.h"

#include "tessera/op/rules.h"

namespace tessera::ir {

DType wide(DType dtype) { return is_float(dtype) && bits_of(dtype) < 32 ? DType::kF32 : dtype; }
DType wider(DType a, DType b) { return bits_of(a) >= bits_of(b) ? a : b; }
ValueId widen(Builder& b, ValueId x) { return b.convert(x, wide(b.dtype(x))); }

std::vector<int64_t> range(int64_t first, int64_t end) {
  std::vector<int64_t> values;
  for (int64_t i = first; i < end; ++i) values.push_back(i);
  return values;
}

int64_t axis_of(Builder& b, ValueId x, int64_t axis) {
  if (!b.ok()) return 0;
  if (b.rank(x) < 0) {
    b.fail({Code::kUnimplemented, "the rank must be known"});
    return 0;
  }
  auto normal = op::normalize_axis(axis, b.rank(x));
  if (normal) return *normal;
  b.fail(std::move(normal).error());
  return 0;
}

ValueId index_along(Builder& b, ValueId x, int64_t axis) {
  if (!b.ok()) return kAbsent;
  if (const auto size = b.type(x).dim(static_cast<int>(axis)).constant()) {
    std::vector<int64_t> shape(static_cast<size_t>(b.rank(x)), 1);
    shape[static_cast<size_t>(axis)] = *size;
    return b.constant(op::Tensor::of_i64(range(0, *size)).reshaped(shape));
  }
  std::vector<int64_t> others = range(0, b.rank(x));
  others.erase(others.begin() + axis);
  const ValueId count = count_up(b, b.dim(x, axis));
  return others.empty() ? count : b.unsqueeze(count, others);
}

ValueId count_up(Builder& b, ValueId n) {
  return b.op("range", {b.scalar(DType::kI64, 0), b.reshape(n, {}), b.scalar(DType::kI64, 1)});
}

ValueId mean(Builder& b, ValueId x, const std::vector<int64_t>& axes) {
  if (!b.ok()) return kAbsent;
  op::Expr count(1);
  for (int64_t a : axes) count = count * b.type(x).dim(static_cast<int>(a));
  const ValueId sum = b.reduce("sum", x, axes, true);
  if (count.is_constant())
    return b.div(sum, b.scalar_like(x, static_cast<double>(*count.constant())));
  const ValueId sizes = b.gather(b.shape_of(x), b.ints(axes), 0);
  return b.div(sum, b.convert(b.reduce("prod", sizes, {0}, false), b.dtype(x)));
}

ValueId heads_dot(Builder& b, ValueId a, ValueId x) {
  if (!b.ok() || b.type(a).dim(1) == b.type(x).dim(1)) return b.op("dot", {a, x});
  const auto H = b.type(a).dim(1).constant(), Hk = b.type(x).dim(1).constant();
  if (!H || !Hk || *Hk == 0) {
    b.fail({Code::kUnimplemented, "the numbers of heads must be known"});
    return kAbsent;
  }
  const ValueId B = b.dim(a, 0), M = b.dim(a, 2), K = b.dim(a, 3), N = b.dim(x, 3);
  const op::Attrs exact{{"zero_is_zero", int64_t{1}}};
  const ValueId grouped =
      b.op("reshape", {a, b.concat({B, b.ints({*Hk, *H / *Hk}), M, K}, 0)}, exact);
  return b.op("reshape",
              {b.op("dot", {grouped, b.unsqueeze(x, {2})}), b.concat({B, b.ints({*H}), M, N}, 0)},
              exact);
}

std::vector<ValueId> inlined(Builder& b, const Graph& graph, const std::vector<ValueId>& inputs) {
  std::vector<ValueId> ids(graph.values.size(), kAbsent);
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    ids[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].constant) ids[i] = b.graph().add_constant(*graph.values[i].constant);
  for (const Node& node : graph.nodes) {
    std::vector<ValueId> arguments;
    for (ValueId id : node.inputs)
      arguments.push_back(id == kAbsent ? kAbsent : ids[static_cast<size_t>(id)]);
    const auto results = b.ops(node.op->name, std::move(arguments), node.attrs,
                               static_cast<int>(node.outputs.size()), node.bodies);
    for (size_t i = 0; i < results.size(); ++i)
      if (node.outputs[i] != kAbsent) ids[static_cast<size_t>(node.outputs[i])] = results[i];
  }
  std::vector<ValueId> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(ids[static_cast<size_t>(id)]);
  return outputs;
}

}  // namespace tessera::ir
