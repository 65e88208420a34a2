#include "tessera/ir/builder.h"

#include <array>

namespace tessera::ir {

const op::Type& Builder::type(ValueId id) const {
  static const op::Type kScalar = op::Type::tensor(DType::kF32, {});
  return id == kAbsent ? kScalar : graph_.type(id);
}

ValueId Builder::op(std::string_view name, std::vector<ValueId> inputs, op::Attrs attrs) {
  return ops(name, std::move(inputs), std::move(attrs), 1)[0];
}

std::vector<ValueId> Builder::ops(std::string_view name, std::vector<ValueId> inputs,
                                  op::Attrs attrs, int outputs, std::vector<Graph> bodies) {
  std::vector<ValueId> none(static_cast<size_t>(outputs), kAbsent);
  if (error_) return none;
  const op::OpDef* def = op::find(name);
  if (!def) {
    fail({Code::kInternal, fmt::format("no operator '{}'", name)});
    return none;
  }
  auto ids =
      graph_.add(*def, std::move(inputs), std::move(attrs), outputs, std::move(bodies), origin_);
  if (ids) return *std::move(ids);
  fail(std::move(ids).error());
  return none;
}

ValueId Builder::ints(const std::vector<int64_t>& values) {
  return constant(op::Tensor::of_i64(values));
}
ValueId Builder::scalar(DType dtype, double value) {
  return constant(op::Tensor::scalar(dtype, value));
}

ValueId Builder::convert(ValueId a, DType to) {
  return a != kAbsent && dtype(a) == to ? a : op("convert", {a}, {{"to", to}});
}

ValueId Builder::reduce(std::string_view kind, ValueId a, const std::vector<int64_t>& axes,
                        bool keepdims) {
  return op("reduce", {a, ints(axes)},
            {{"kind", std::string(kind)}, {"keepdims", int64_t{keepdims}}});
}

ValueId Builder::dim(ValueId a, int64_t axis) {
  const op::Type& t = type(a);
  if (t.ranked() && axis < 0) axis += t.rank();
  if (t.ranked() && axis >= 0 && axis < t.rank() && t.dim(static_cast<int>(axis)).is_constant())
    return ints({*t.dim(static_cast<int>(axis)).constant()});
  return slice(op("shape_of", {a}), 0, axis, axis == -1 ? INT64_MAX : axis + 1);
}

ValueId Builder::shape_of(ValueId a) {
  const op::Type& t = type(a);
  return t.is_static() ? ints(t.dims()) : op("shape_of", {a});
}

namespace {

// The visible list of families.
constexpr auto kFamilies = std::array{
    attention_composites,  rnn_composites,        norm_composites, move_composites,
    quantize_composites,   activation_composites, conv_composites, pool_composites,
    batch_norm_composites, image_composites,
};

}  // namespace

const Composite* find_composite(std::string_view op) {
  for (auto family : kFamilies)
    for (const Composite& row : family())
      if (row.op == op) return &row;
  return nullptr;
}

Result<Graph> decompose(const Node& node, const std::vector<op::Type>& input_types) {
  const Composite* row = find_composite(node.op->name);
  if (!row) return error(Code::kUnimplemented, "{} has no decomposition", node.op->name);
  Graph graph(std::string(node.op->name));
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back(node.inputs[i] == kAbsent
                         ? kAbsent
                         : graph.add_input("x" + std::to_string(i), input_types[i]));
  Builder builder(graph, node.origin);
  graph.outputs =
      row->decompose(builder, node.attrs, inputs, static_cast<int>(node.outputs.size()));
  TRY(builder.status());
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    graph.output_names.push_back("y" + std::to_string(i));
  return graph;
}

}  // namespace tessera::ir
