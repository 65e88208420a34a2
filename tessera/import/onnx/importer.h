// How one ONNX node becomes ir nodes: the table of converters and what a converter sees.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tessera/import/onnx/model.h"
#include "tessera/import/onnx/proto.h"
#include "tessera/import/onnx/tensors.h"
#include "tessera/ir/builder.h"

namespace tessera::import::onnx {

using ir::kAbsent;
using ir::ValueId;

class Importer;

// One node while it is converted. Values are ids in `b.graph()`.
struct NodeContext {
  Importer& importer;
  const NodeProto& node;
  ir::Builder& b;
  int64_t opset;                 // version of the node's domain that the model imports
  std::vector<ValueId> inputs;   // kAbsent for "" and for what is left out at the end
  std::vector<ValueId> outputs;  // to be set by the converter; one per node output

  size_t input_count() const { return inputs.size(); }
  size_t output_count() const { return node.output.size(); }
  bool has(size_t i) const { return i < inputs.size() && inputs[i] != kAbsent; }
  bool wants(size_t i) const { return i < node.output.size() && !node.output[i].empty(); }
  ValueId in(size_t i) const { return i < inputs.size() ? inputs[i] : kAbsent; }
  void out(size_t i, ValueId id) {
    if (i < outputs.size()) outputs[i] = id;
  }
  const op::Type& type(size_t i) const { return b.type(in(i)); }

  // Attributes. A wrong attribute type is an error of the model, remembered by the builder.
  bool has_attr(std::string_view name) const { return node.find(name) != nullptr; }
  int64_t i(std::string_view name, int64_t otherwise) const;
  double f(std::string_view name, double otherwise) const;
  std::string s(std::string_view name, std::string_view otherwise) const;
  op::Ints ints(std::string_view name, op::Ints otherwise = {}) const;
  op::Floats floats(std::string_view name, op::Floats otherwise = {}) const;
  op::Strings strings(std::string_view name, op::Strings otherwise = {}) const;
  Result<op::Tensor> tensor(std::string_view name) const;

  // The elements of an integer input where they are known while importing.
  std::optional<op::Ints> known_ints(size_t i) const;
  // The input as a constant tensor, or null.
  const op::Tensor* constant(size_t i) const;
  // Ints that older versions hold in an attribute and newer ones in input i: as a value, or kAbsent
  // if neither is there.
  ValueId ints_attr_or_input(std::string_view attr, size_t i);

  template <class... Args>
  Status fail(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kInvalidArgument, "{}: {}", node.op_type,
                 fmt::format(format, std::forward<Args>(args)...));
  }
};

using ConvertFn = Status (*)(NodeContext&);

struct Converter {
  std::string_view domain;  // "" is ai.onnx
  std::string_view op_type;
  ConvertFn convert;
};

// Families: add rows to one, or a family here and in importer.cc.
std::span<const Converter> elementwise_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> move_converters();
std::span<const Converter> index_converters();
std::span<const Converter> reduce_converters();
std::span<const Converter> einsum_converters();
std::span<const Converter> constant_converters();
std::span<const Converter> rnn_converters();
std::span<const Converter> attention_converters();
std::span<const Converter> loss_converters();
std::span<const Converter> training_converters();
std::span<const Converter> control_converters();
std::span<const Converter> ml_converters();
std::span<const Converter> ml_model_converters();
std::span<const Converter> signal_converters();
std::span<const Converter> random_converters();
std::span<const Converter> string_converters();
std::span<const Converter> quantize_converters();
std::span<const Converter> sequence_converters();
std::span<const Converter> activation_converters();
std::span<const Converter> norm_converters();
std::span<const Converter> conv_converters();
std::span<const Converter> pool_converters();
std::span<const Converter> batch_norm_converters();
std::span<const Converter> image_converters();
std::span<const Converter> microsoft_converters();

// The values a name may refer to, innermost scope last. A name found outside of the current body
// becomes an input of the body (and of each body in between).
struct Scope {
  ir::Graph* graph = nullptr;
  Scope* parent = nullptr;
  bool isolated = false;  // a function's body: names do not reach outside
  std::unordered_map<std::string, ValueId> names;
  std::vector<std::pair<std::string, ValueId>> captures;  // outer name, input of this body
  std::string prefix;  // of the names that values get here: "" or "call/"
};

class Importer {
 public:
  Importer(const ModelProto& model, TensorSource source, const ImportOptions& options);

  Result<ImportedModel> run();

  // Imports a body graph: its formal inputs get the given types (as many as the body has). Outer
  // values that it uses are appended to its inputs; their names in the enclosing scope are in
  // `captures`.
  struct Body {
    ir::Graph graph;
    std::vector<std::string> captures;
  };
  Result<Body> import_body(const GraphProto& proto, const std::vector<op::Type>& formal_types);
  // Imports a body that takes no inputs into the current graph, as if its nodes stood there; its
  // results in order. Its names get the prefix, where they must not clash with those around.
  Result<std::vector<ValueId>> inline_body(const GraphProto& proto, std::string_view prefix);
  // The value of an outer name in the current scope.
  Result<ValueId> lookup(std::string_view name);
  Result<std::vector<ValueId>> lookup_all(const std::vector<std::string>& names);
  int64_t opset_of(std::string_view domain) const;
  const TensorSource& source() const { return source_; }

 private:
  friend struct NodeContext;

  Status import_nodes(const std::vector<NodeProto>& nodes);
  Status import_node(const NodeProto& node);
  Status call_function(const FunctionProto& function, const NodeProto& node,
                       const std::vector<ValueId>& inputs);
  Status define(std::string_view name, ValueId id);
  Status add_initializers(const GraphProto& proto);
  Result<op::Type> input_type(const ValueInfoProto& input);
  const FunctionProto* find_function(const NodeProto& node) const;
  // Books nodes to be imported; bodies and functions can multiply a small file without bound.
  Status count_nodes(size_t nodes);

  const ModelProto& model_;
  TensorSource source_;
  const ImportOptions& options_;
  std::map<std::string, int64_t, std::less<>> opsets_;
  std::shared_ptr<ir::SymbolSource> symbols_;
  Scope* scope_ = nullptr;
  int depth_ = 0;
  int64_t parameters_ = 0;
  size_t nodes_ = 0;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*>
      functions_;
  std::vector<std::string> call_path_;
};

}  // namespace tessera::import::onnx
