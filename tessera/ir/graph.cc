#include "tessera/ir/graph.h"

#include <algorithm>
#include <cmath>

namespace tessera::ir {
namespace {

// Of floats, whole numbers only.
std::optional<op::Contents> contents_of(const op::Tensor& t) {
  const bool floats = t.dtype() == DType::kF32 || t.dtype() == DType::kF64;
  if ((!is_int(t.dtype()) && t.dtype() != DType::kBool && !floats) ||
      static_cast<size_t>(t.count()) > op::kMaxContents || t.dtype() == DType::kU64)
    return std::nullopt;
  const std::vector<int64_t> values = t.to_i64s();
  for (int64_t i = 0; floats && i < t.count(); ++i)
    if (static_cast<double>(values[static_cast<size_t>(i)]) != t.f64(i) ||
        std::abs(t.f64(i)) > 0x1p24)
      return std::nullopt;
  return op::Contents(values.begin(), values.end());
}

// The longest expression of a size that is carried on.
constexpr size_t kMaxWeight = 4096;

bool worth_keeping(const op::Contents& contents) {
  return contents.size() <= op::kMaxContents &&
         std::all_of(contents.begin(), contents.end(),
                     [](const op::Expr& e) { return e.weight() <= kMaxWeight; });
}

std::string where(const op::OpDef& op, const std::vector<std::string>& origin) {
  return origin.empty() ? fmt::format("op '{}'", op.name)
                        : fmt::format("op '{}' ({})", origin.front(), op.name);
}

std::string_view name_of(op::AttrKind kind) {
  constexpr std::string_view kNames[] = {"int",     "float", "string", "ints",  "floats",
                                         "strings", "dtype", "type",   "tensor"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

ValueId Graph::add_input(std::string input_name, op::Type type) {
  values.push_back({.name = std::move(input_name),
                    .type = std::move(type),
                    .contents = {},
                    .constant = {},
                    .placement = {},
                    .layout = {}});
  inputs.push_back(static_cast<ValueId>(values.size() - 1));
  return inputs.back();
}

ValueId Graph::add_constant(op::Tensor tensor, std::string constant_name) {
  ValueInfo info{.name = std::move(constant_name),
                 .type = tensor.type(),
                 .contents = contents_of(tensor),
                 .constant = {},
                 .placement = {},
                 .layout = {}};
  info.constant = std::move(tensor);
  values.push_back(std::move(info));
  return static_cast<ValueId>(values.size() - 1);
}

Status check_signature(const op::OpDef& op, size_t inputs, int outputs, const op::Attrs& attrs,
                       size_t bodies) {
  const int count = static_cast<int>(inputs);
  if (count < op.min_inputs || (op.max_inputs != op::kVariadic && count > op.max_inputs))
    return error(Code::kInvalidArgument, "{} has {} inputs, need {} to {}", op.name, count,
                 op.min_inputs,
                 op.max_inputs == op::kVariadic ? "any number" : std::to_string(op.max_inputs));
  if (outputs < op.min_outputs || (op.max_outputs != op::kVariadic && outputs > op.max_outputs))
    return error(Code::kInvalidArgument, "{} has {} outputs, need {} to {}", op.name, outputs,
                 op.min_outputs, op.max_outputs);
  if (static_cast<int>(bodies) != op.bodies)
    return error(Code::kInvalidArgument, "{} has {} bodies, need {}", op.name, bodies, op.bodies);
  for (const op::AttrDef& def : op.attrs) {
    const op::Attr* value = attrs.find(def.name);
    if (!value) {
      if (def.required)
        return error(Code::kInvalidArgument, "{} needs attribute '{}'", op.name, def.name);
      continue;
    }
    if (value->index() != static_cast<size_t>(def.kind))
      return error(Code::kInvalidArgument, "{}: attribute '{}' is {}, need {}", op.name, def.name,
                   name_of(static_cast<op::AttrKind>(value->index())), name_of(def.kind));
  }
  for (const auto& [name, value] : attrs.all())
    if (std::none_of(op.attrs.begin(), op.attrs.end(),
                     [&name = name](auto& def) { return def.name == name; }))
      return error(Code::kInvalidArgument, "{} has no attribute '{}'", op.name, name);
  return {};
}

Result<Inferred> infer(const Graph& graph, const op::OpDef& op, std::span<const ValueId> inputs,
                       const op::Attrs& attrs, std::span<const Graph> bodies, int output_count) {
  std::vector<const op::Type*> types;
  std::vector<const op::Contents*> contents;
  std::vector<const op::Tensor*> constants;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo* info = inputs[i] == kAbsent ? nullptr : &graph.value(inputs[i]);
    if (!info && static_cast<int>(i) < op.min_inputs && op.max_inputs != op::kVariadic)
      return error(Code::kInvalidArgument, "{}: input {} is missing", op.name, i);
    types.push_back(info ? &info->type : nullptr);
    contents.push_back(info && info->contents ? &*info->contents : nullptr);
    constants.push_back(info && info->constant ? &*info->constant : nullptr);
  }
  std::vector<std::vector<op::Type>> body_types;
  for (const Graph& body : bodies) {
    body_types.emplace_back();
    for (ValueId out : body.outputs) body_types.back().push_back(body.type(out));
  }
  const op::InferContext context{op.name, attrs, types, contents, constants, body_types, [&graph] {
                                   return graph.symbols->fresh();
                                 }};
  Inferred result;
  TRY(op::check_kinds(op, types));
  TRY_ASSIGN(result.types, op.infer(context));
  if (static_cast<int>(result.types.size()) < output_count)
    return error(Code::kInvalidArgument, "{} yields {} outputs, {} are asked for", op.name,
                 result.types.size(), output_count);
  result.types.resize(static_cast<size_t>(output_count));
  // A size whose expression has grown beyond use is known when the node has run.
  for (op::Type& type : result.types) {
    if (!type.ranked()) continue;
    for (op::Expr& d : *type.shape)
      if (d.weight() > kMaxWeight) d = graph.symbols->fresh();
  }
  if (op.contents && !result.types.empty()) {
    auto known = op.contents(context, result.types[0]);
    if (known && worth_keeping(*known)) result.contents = std::move(known);
  }
  return result;
}

Result<std::vector<ValueId>> Graph::add(const op::OpDef& op, std::vector<ValueId> node_inputs,
                                        op::Attrs attrs, int output_count,
                                        std::vector<Graph> bodies,
                                        std::vector<std::string> origin) {
  // Optional inputs at the end may be left out altogether.
  while (!node_inputs.empty() && node_inputs.back() == kAbsent && op.max_inputs != op::kVariadic &&
         static_cast<int>(node_inputs.size()) > op.min_inputs)
    node_inputs.pop_back();
  if (auto ok = check_signature(op, node_inputs.size(), output_count, attrs, bodies.size()); !ok)
    return tessera::error(std::move(ok).error().at(where(op, origin)));
  auto inferred = infer(*this, op, node_inputs, attrs, bodies, output_count);
  if (!inferred) return tessera::error(std::move(inferred).error().at(where(op, origin)));
  std::vector<ValueId> ids;
  for (size_t i = 0; i < inferred->types.size(); ++i) {
    ValueInfo info{.name = {},
                   .type = std::move(inferred->types[i]),
                   .contents = {},
                   .constant = {},
                   .placement = {},
                   .layout = {}};
    if (i == 0) info.contents = std::move(inferred->contents);
    info.producer = static_cast<int32_t>(nodes.size());
    ids.push_back(static_cast<ValueId>(values.size()));
    values.push_back(std::move(info));
  }
  nodes.push_back(
      {&op, std::move(attrs), std::move(node_inputs), ids, std::move(bodies), std::move(origin)});
  return ids;
}

Status verify(const Graph& graph) {
  std::vector<bool> defined(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i)
    defined[i] = graph.values[i].constant.has_value();
  auto in_range = [&](ValueId id) {
    return id >= 0 && static_cast<size_t>(id) < graph.values.size();
  };
  for (ValueId id : graph.inputs) {
    if (!in_range(id))
      return error(Code::kInternal, "graph '{}': input value {} does not exist", graph.name, id);
    defined[static_cast<size_t>(id)] = true;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!node.op)
      return error(Code::kInternal, "graph '{}': node {} has no operator", graph.name, n);
    for (ValueId id : node.inputs)
      if (id != kAbsent && (!in_range(id) || !defined[static_cast<size_t>(id)]))
        return error(Code::kInternal,
                     "graph '{}': node {} ({}) reads value {} before it is defined", graph.name, n,
                     node.op->name, id);
    TRY(check_signature(*node.op, node.inputs.size(), static_cast<int>(node.outputs.size()),
                        node.attrs, node.bodies.size()));
    for (const Graph& body : node.bodies) TRY(verify(body));
    for (ValueId id : node.outputs) {
      if (id == kAbsent) continue;
      if (!in_range(id) || defined[static_cast<size_t>(id)])
        return error(Code::kInternal, "graph '{}': node {} ({}) defines value {} again", graph.name,
                     n, node.op->name, id);
      defined[static_cast<size_t>(id)] = true;
    }
  }
  for (ValueId id : graph.outputs)
    if (!in_range(id) || !defined[static_cast<size_t>(id)])
      return error(Code::kInternal, "graph '{}': output value {} is not defined", graph.name, id);
  return {};
}

}  // namespace tessera::ir
