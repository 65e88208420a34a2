#include "tessera/ir/reference/interpreter.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/ir/builder.h"

namespace tessera::ir::reference {
namespace {

std::optional<op::Contents> contents_of(const Value& value) {
  if (!value.is_tensor()) return std::nullopt;
  const Tensor& t = value.tensor();
  if ((!is_int(t.dtype()) && t.dtype() != DType::kBool) ||
      static_cast<size_t>(t.count()) > op::kMaxContents)
    return std::nullopt;
  const std::vector<int64_t> values = t.to_i64s();
  return op::Contents(values.begin(), values.end());
}

// The row's shape rule on concrete inputs.
Result<std::vector<op::Type>> output_types(const Node& node, std::span<const Value* const> inputs) {
  std::vector<op::Type> types(inputs.size());
  std::vector<const op::Type*> type_pointers(inputs.size());
  std::vector<std::optional<op::Contents>> contents(inputs.size());
  std::vector<const op::Contents*> content_pointers(inputs.size());
  std::vector<const Tensor*> constants(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    types[i] = inputs[i]->type();
    type_pointers[i] = &types[i];
    contents[i] = contents_of(*inputs[i]);
    content_pointers[i] = contents[i] ? &*contents[i] : nullptr;
    constants[i] = inputs[i]->is_tensor() ? &inputs[i]->tensor() : nullptr;
  }
  std::vector<std::vector<op::Type>> bodies;
  for (const Graph& body : node.bodies) {
    bodies.emplace_back();
    for (ValueId id : body.outputs) bodies.back().push_back(body.type(id));
  }
  SymbolSource symbols;
  const op::InferContext context{
      node.op->name, node.attrs, type_pointers, content_pointers, constants, bodies, [&symbols] {
        return symbols.fresh();
      }};
  TRY(op::check_kinds(*node.op, type_pointers));
  return node.op->infer(context);
}

Status check_limits(const Options& options, Bytes needed) {
  if (options.deadline && std::chrono::steady_clock::now() > *options.deadline)
    return error(Code::kDeadlineExceeded, "the time limit has passed");
  if (needed > options.memory_limit)
    return error(Code::kResourceExhausted, "needs {}, the memory limit is {}", to_string(needed),
                 to_string(options.memory_limit));
  return {};
}

// What the outputs will take, as far as known before running.
Result<Bytes> bytes_of(std::span<const op::Type> types) {
  Bytes sum;
  for (const op::Type& type : types) {
    if (!type.is_static()) continue;
    TRY_ASSIGN(int64_t count, op::element_count(type.dims()));
    const int64_t bytes = packed_bytes(type.dtype, count);
    if (bytes < 0 || __builtin_add_overflow(sum.value, bytes, &sum.value))
      return error(Code::kOutOfRange, "{} is beyond any memory", type.str());
  }
  return sum;
}

Error named(Error e, const Node& node) {
  if (e.message.find("op '") != std::string::npos || node.origin.empty()) return e;
  return std::move(e).at(fmt::format("op '{}'", node.origin.front()));
}

}  // namespace

const Row* find(std::string_view op) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const Row*> map;
    for (auto family : {
             elementwise_rows, shape_rows,    move_rows,   index_rows,        sort_rows,
             convert_rows,     rnn_rows,      reduce_rows, dot_rows,          control_rows,
             quantize_rows,    sequence_rows, conv_rows,   pool_rows,         batch_norm_rows,
             resize_rows,      sampling_rows, roi_rows,    decode_image_rows, ml_rows,
             random_rows,      signal_rows,   string_rows,
         })
      for (const Row& row : family()) map.emplace(row.op, &row);
    return map;
  }();
  auto found = index.find(op);
  return found == index.end() ? nullptr : found->second;
}

Result<std::vector<Value>> evaluate(const Node& node, std::span<const Value* const> inputs,
                                    const Options& options) {
  const Row* row = find(node.op->name);
  if (!row) {
    std::vector<op::Type> types;
    std::vector<Value> values;
    for (const Value* input : inputs) {
      types.push_back(input ? input->type() : op::Type());
      if (input) values.push_back(*input);
    }
    auto body = decompose(node, types);
    if (!body) return error(named(std::move(body).error(), node));
    return run(*body, values, options);
  }
  auto types = output_types(node, inputs);
  if (!types) return error(named(std::move(types).error(), node));
  auto bytes = bytes_of(*types);
  if (!bytes) return error(named(std::move(bytes).error(), node));
  if (auto ok = check_limits(options, *bytes); !ok)
    return error(named(std::move(ok).error(), node));
  auto result = row->fn(Call{node, inputs, *types, options});
  if (!result) return error(named(std::move(result).error(), node));
  if (result->size() < node.outputs.size())
    return error(Code::kInternal, "{}: {} results for {} outputs", node.op->name, result->size(),
                 node.outputs.size());
  return result;
}

Result<std::vector<Value>> run(const Graph& graph, std::span<const Value> inputs,
                               const Options& options) {
  if (inputs.size() != graph.inputs.size())
    return error(Code::kInvalidArgument, "graph '{}' takes {} inputs, got {}", graph.name,
                 graph.inputs.size(), inputs.size());
  std::vector<int> uses(graph.values.size());
  for (const Node& node : graph.nodes)
    for (ValueId id : node.inputs)
      if (id != kAbsent) ++uses[static_cast<size_t>(id)];
  for (ValueId id : graph.outputs) ++uses[static_cast<size_t>(id)];

  std::vector<std::optional<Value>> values(graph.values.size());
  Bytes live;
  auto set = [&](ValueId id, Value value) {
    live += value.bytes();
    values[static_cast<size_t>(id)] = std::move(value);
  };
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].constant) values[i] = Value(*graph.values[i].constant);
  for (size_t i = 0; i < inputs.size(); ++i) set(graph.inputs[i], inputs[i]);

  for (const Node& node : graph.nodes) {
    std::vector<const Value*> arguments;
    for (ValueId id : node.inputs) {
      const std::optional<Value>* slot = id == kAbsent ? nullptr : &values[static_cast<size_t>(id)];
      if (slot && !*slot)
        return error(Code::kInternal, "value {} is read before it is computed", id);
      arguments.push_back(slot ? &**slot : nullptr);
    }
    Options rest = options;
    rest.memory_limit = Bytes(std::max<int64_t>(0, options.memory_limit.value - live.value));
    TRY_ASSIGN(std::vector<Value> results, evaluate(node, arguments, rest));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kAbsent) continue;
      if (options.observe) options.observe(graph, node.outputs[i], results[i]);
      if (uses[static_cast<size_t>(node.outputs[i])] > 0)
        set(node.outputs[i], std::move(results[i]));
    }
    for (ValueId id : node.inputs) {
      if (id == kAbsent || --uses[static_cast<size_t>(id)] > 0 || graph.value(id).constant)
        continue;
      live -= values[static_cast<size_t>(id)]->bytes();
      values[static_cast<size_t>(id)].reset();
    }
  }
  std::vector<Value> outputs;
  for (ValueId id : graph.outputs) {
    if (!values[static_cast<size_t>(id)])
      return error(Code::kInternal, "output value {} was not computed", id);
    outputs.push_back(*values[static_cast<size_t>(id)]);
  }
  return outputs;
}

Status check_type(const Value& value, const op::Type& type, std::string_view name) {
  const op::Type actual = value.type();
  if (actual.kind != type.kind && type.kind != op::TypeKind::kOptional)
    return error(Code::kInvalidArgument, "'{}' is {}, need {}", name, actual.str(), type.str());
  if (value.is_sequence() && type.kind == op::TypeKind::kSequence) {
    for (const Value& item : value.sequence().items) TRY(check_type(item, *type.element, name));
    return {};
  }
  if (type.kind == op::TypeKind::kOptional) {
    const Value* inner = value.is_optional() ? value.optional().value.get() : &value;
    return inner ? check_type(*inner, *type.element, name) : Status();
  }
  if (!actual.is_tensor() || !type.is_tensor()) return {};
  if (actual.dtype != type.dtype)
    return error(Code::kInvalidArgument, "'{}' has type {}, need {}", name, name_of(actual.dtype),
                 name_of(type.dtype));
  if (!type.ranked()) return {};
  if (actual.rank() != type.rank())
    return error(Code::kInvalidArgument, "'{}' has rank {} ({}), need {} ({})", name, actual.rank(),
                 actual.str(), type.rank(), type.str());
  for (int i = 0; i < type.rank(); ++i)
    if (type.dim(i).is_constant() && !(type.dim(i) == actual.dim(i)))
      return error(Code::kInvalidArgument, "'{}': dim {} is {}, need {}", name, i,
                   actual.dim(i).str(), type.dim(i).str());
  return {};
}

}  // namespace tessera::ir::reference
