#include "tessera/import/onnx/importer.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/file.h"

namespace tessera::import::onnx {
namespace {

constexpr int kMaxDepth = 100;  // nested bodies and function calls
constexpr size_t kMaxNodes =
    1000000;  // with functions inlined and bodies imported as often as their types change
constexpr int64_t kMaxIrVersion = 13;
constexpr int64_t kMaxOpset = 27;

// The visible list of families.
const ConvertFn* find_converter(std::string_view domain, std::string_view op_type) {
  static const auto index = [] {
    std::map<std::pair<std::string_view, std::string_view>, ConvertFn> map;
    for (auto family : {
             elementwise_converters, shape_converters,      move_converters,
             index_converters,       reduce_converters,     einsum_converters,
             constant_converters,    rnn_converters,        attention_converters,
             loss_converters,        training_converters,   control_converters,
             quantize_converters,    sequence_converters,   ml_converters,
             ml_model_converters,    signal_converters,     random_converters,
             string_converters,      activation_converters, norm_converters,
             conv_converters,        pool_converters,       batch_norm_converters,
             image_converters,       microsoft_converters,
         })
      for (const Converter& row : family())
        map.emplace(std::pair(row.domain, row.op_type), row.convert);
    return map;
  }();
  auto found = index.find({domain, op_type});
  return found == index.end() ? nullptr : &found->second;
}

std::string_view canonical(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

std::string describe(const NodeProto& node) {
  if (!node.name.empty()) return fmt::format("node '{}' ({})", node.name, node.op_type);
  return fmt::format("node {} -> '{}'", node.op_type, node.output.empty() ? "" : node.output[0]);
}

}  // namespace

// ---- attributes ----

namespace {

enum AttributeType {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensorAttr = 4,
  kGraph = 5,
  kFloatsAttr = 6,
  kIntsAttr = 7,
  kStringsAttr = 8
};

// The attribute if it is there with the right type; a wrong type is remembered by the builder. Old
// files leave the type out.
const AttributeProto* typed(const NodeContext& c, std::string_view name, int type) {
  const AttributeProto* a = c.node.find(name);
  if (!a || a->type == type || a->type == 0) return a;
  c.b.fail({Code::kInvalidArgument, fmt::format("{}: attribute '{}' has type {}, need {}",
                                                c.node.op_type, name, a->type, type)});
  return nullptr;
}

}  // namespace

int64_t NodeContext::i(std::string_view name, int64_t otherwise) const {
  const AttributeProto* a = typed(*this, name, kInt);
  return a ? a->i : otherwise;
}
double NodeContext::f(std::string_view name, double otherwise) const {
  const AttributeProto* a = typed(*this, name, kFloat);
  return a ? static_cast<double>(a->f) : otherwise;
}
std::string NodeContext::s(std::string_view name, std::string_view otherwise) const {
  const AttributeProto* a = typed(*this, name, kString);
  return std::string(a ? a->s : otherwise);
}
op::Ints NodeContext::ints(std::string_view name, op::Ints otherwise) const {
  const AttributeProto* a = typed(*this, name, kIntsAttr);
  return a ? a->ints : otherwise;
}
op::Floats NodeContext::floats(std::string_view name, op::Floats otherwise) const {
  const AttributeProto* a = typed(*this, name, kFloatsAttr);
  return a ? op::Floats(a->floats.begin(), a->floats.end()) : otherwise;
}
op::Strings NodeContext::strings(std::string_view name, op::Strings otherwise) const {
  const AttributeProto* a = typed(*this, name, kStringsAttr);
  return a ? op::Strings(a->strings.begin(), a->strings.end()) : otherwise;
}
Result<op::Tensor> NodeContext::tensor(std::string_view name) const {
  const AttributeProto* a = node.find(name);
  if (!a || !a->t)
    return error(Code::kInvalidArgument, "{}: attribute '{}' must be a tensor", node.op_type, name);
  return to_tensor(*a->t, importer.source());
}

std::optional<op::Ints> NodeContext::known_ints(size_t i) const {
  if (!has(i)) return std::nullopt;
  const ir::ValueInfo& info = b.graph().value(in(i));
  if (info.constant && (is_int(info.type.dtype) || info.type.dtype == DType::kBool))
    return info.constant->to_i64s();
  if (!info.contents) return std::nullopt;
  op::Ints values;
  for (const op::Expr& e : *info.contents) {
    if (!e.is_constant()) return std::nullopt;
    values.push_back(*e.constant());
  }
  return values;
}

const op::Tensor* NodeContext::constant(size_t i) const {
  if (!has(i)) return nullptr;
  const auto& known = b.graph().value(in(i)).constant;
  return known ? &*known : nullptr;
}

ValueId NodeContext::ints_attr_or_input(std::string_view attr, size_t i) {
  if (has_attr(attr)) return b.ints(ints(attr));
  return in(i);
}

// ---- graphs ----

Importer::Importer(const ModelProto& model, TensorSource source, const ImportOptions& options)
    : model_(model),
      source_(std::move(source)),
      options_(options),
      symbols_(std::make_shared<ir::SymbolSource>()) {
  for (const FunctionProto& f : model_.functions)
    functions_.emplace(std::tuple(canonical(f.domain), f.name, f.overload), &f);
}

int64_t Importer::opset_of(std::string_view domain) const {
  auto found = opsets_.find(canonical(domain));
  return found == opsets_.end() ? 0 : found->second;
}

Result<ValueId> Importer::lookup(std::string_view name) {
  // The nearest scope that knows the name; bodies in between pass the value down as a captured
  // input.
  const std::string key(name);
  std::vector<Scope*> between;
  for (Scope* scope = scope_; scope; scope = scope->isolated ? nullptr : scope->parent) {
    auto found = scope->names.find(key);
    if (found == scope->names.end()) {
      between.push_back(scope);
      continue;
    }
    ValueId id = found->second;
    ir::Graph* from = scope->graph;
    for (size_t i = between.size(); i-- > 0;) {
      Scope& inner = *between[i];
      if (inner.graph == from) continue;
      ir::ValueInfo info = from->value(id);
      if (info.constant) {  // constants are handles: no need to pass them
        id = inner.graph->add_constant(*info.constant, info.name);
      } else {
        id = inner.graph->add_input(key, info.type);
        inner.graph->value(id).contents = info.contents;
        inner.captures.emplace_back(key, id);
      }
      inner.names.emplace(key, id);
      from = inner.graph;
    }
    return id;
  }
  return error(Code::kInvalidArgument, "value '{}' is used before it is defined (or never is)",
               name);
}

Result<std::vector<ValueId>> Importer::lookup_all(const std::vector<std::string>& names) {
  std::vector<ValueId> ids;
  for (const std::string& name : names) {
    TRY_ASSIGN(ValueId id, lookup(name));
    ids.push_back(id);
  }
  return ids;
}

Status Importer::define(std::string_view name, ValueId id) {
  if (name.empty()) return {};
  if (!scope_->names.emplace(std::string(name), id).second)
    return error(Code::kInvalidArgument, "value '{}' is defined twice", name);
  ir::ValueInfo& info = scope_->graph->value(id);
  if (info.name.empty()) info.name = scope_->prefix + std::string(name);
  return {};
}

Status Importer::add_initializers(const GraphProto& proto) {
  for (const TensorProto& tensor : proto.initializer) {
    TRY_ASSIGN(op::Tensor t, to_tensor(tensor, source_));
    parameters_ += t.count();
    TRY(define(tensor.name, scope_->graph->add_constant(
                                std::move(t), scope_->prefix + std::string(tensor.name))));
  }
  for (const SparseTensorProto& tensor : proto.sparse_initializer) {
    TRY_ASSIGN(op::Tensor t, to_dense(tensor, source_));
    parameters_ += t.count();
    TRY(define(tensor.values.name,
               scope_->graph->add_constant(std::move(t),
                                           scope_->prefix + std::string(tensor.values.name))));
  }
  return {};
}

Result<op::Type> Importer::input_type(const ValueInfoProto& input) {
  auto type = to_type(input.type, *symbols_);
  if (!type) return error(std::move(type).error().at(fmt::format("input '{}'", input.name)));
  if (!type->is_tensor()) return type;
  if (auto given = options_.shapes.find(input.name); given != options_.shapes.end()) {
    const op::Dims& dims = given->second;
    if (type->ranked()) {
      if (static_cast<int>(dims.size()) != type->rank())
        return error(Code::kInvalidArgument, "input '{}' has rank {} ({}), the shape given is {}",
                     input.name, type->rank(), type->str(), op::to_string(dims));
      for (size_t i = 0; i < dims.size(); ++i)
        if (auto fixed = (*type->shape)[i].constant(); fixed && *fixed != dims[i])
          return error(Code::kInvalidArgument, "input '{}': dim {} is {}, the shape given has {}",
                       input.name, i, *fixed, dims[i]);
    }
    type->shape = op::Shape(dims.begin(), dims.end());
  }
  if (type->ranked())
    for (op::Expr& d : *type->shape)
      if (auto symbol = d.as_symbol())
        if (auto given = options_.dims.find(*symbol); given != options_.dims.end())
          d = op::Expr(given->second);
  return type;
}

const FunctionProto* Importer::find_function(const NodeProto& node) const {
  const auto found = functions_.find({canonical(node.domain), node.op_type, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

Status Importer::count_nodes(size_t nodes) {
  nodes_ += nodes;
  if (nodes_ > kMaxNodes)
    return error(Code::kResourceExhausted, "the model expands to more than {} nodes", kMaxNodes);
  return {};
}

Status Importer::import_nodes(const std::vector<NodeProto>& nodes) {
  TRY(count_nodes(nodes.size()));
  for (const NodeProto& node : nodes)
    if (auto ok = import_node(node); !ok) {
      Error e = std::move(ok).error();
      // The innermost node has named itself.
      if (e.message.find("; node") == std::string::npos) e = std::move(e).at(describe(node));
      return error(std::move(e));
    }
  return {};
}

Status Importer::import_node(const NodeProto& node) {
  std::vector<ValueId> inputs;
  for (std::string_view name : node.input) {
    if (name.empty()) {
      inputs.push_back(kAbsent);
      continue;
    }
    TRY_ASSIGN(ValueId id, lookup(name));
    inputs.push_back(id);
  }
  if (const FunctionProto* function = find_function(node))
    return call_function(*function, node, inputs);
  const ConvertFn* convert = find_converter(canonical(node.domain), node.op_type);
  if (!convert) {
    const std::string domain(node.domain.empty() ? "ai.onnx" : node.domain);
    return error(Code::kUnimplemented, "operator '{}' of domain '{}' is not known", node.op_type,
                 domain);
  }
  const int64_t opset = opset_of(node.domain);
  if (opset == 0)
    return error(Code::kInvalidArgument, "the model imports no opset for domain '{}'", node.domain);
  std::string origin(node.name.empty() ? (node.output.empty() ? node.op_type : node.output[0])
                                       : node.name);
  ir::Builder builder(*scope_->graph, {std::move(origin)});
  NodeContext context{*this,
                      node,
                      builder,
                      opset,
                      std::move(inputs),
                      std::vector<ValueId>(node.output.size(), kAbsent)};
  TRY((*convert)(context));
  TRY(builder.status());
  context.outputs.resize(node.output.size(), kAbsent);
  for (size_t i = 0; i < node.output.size(); ++i) {
    if (node.output[i].empty()) continue;
    ValueId id = context.outputs[i];
    if (id == kAbsent)
      return error(Code::kUnimplemented, "output {} of {} is not supported", i, node.op_type);
    TRY(define(node.output[i], id));
  }
  return {};
}

// A model-local function is inlined: a scope of its own, its own opsets, attributes replaced where
// they are referred to.
Status Importer::call_function(const FunctionProto& function, const NodeProto& node,
                               const std::vector<ValueId>& inputs) {
  const std::string id = fmt::format("{}.{}.{}", function.domain, function.name, function.overload);
  if (std::find(call_path_.begin(), call_path_.end(), id) != call_path_.end())
    return error(Code::kInvalidArgument, "function '{}' calls itself", function.name);
  if (static_cast<int>(call_path_.size()) >= kMaxDepth)
    return error(Code::kInvalidArgument, "functions are nested deeper than {}", kMaxDepth);
  if (inputs.size() > function.input.size() || node.output.size() > function.output.size())
    return error(Code::kInvalidArgument,
                 "function '{}' takes {} inputs and yields {} outputs, got {} and {}",
                 function.name, function.input.size(), function.output.size(), inputs.size(),
                 node.output.size());

  // Substitutes attribute references, in nested graphs too.
  struct Substitute {
    const FunctionProto& function;
    const NodeProto& call;
    void apply(std::vector<NodeProto>& nodes) const {
      for (NodeProto& n : nodes) {
        std::vector<AttributeProto> kept;
        for (AttributeProto& a : n.attribute) {
          if (!a.ref_attr_name.empty()) {
            const AttributeProto* given = call.find(a.ref_attr_name);
            for (const AttributeProto& d : function.attribute_defaults)
              if (!given && d.name == a.ref_attr_name) given = &d;
            if (!given) continue;
            AttributeProto copy = *given;
            copy.name = a.name;
            kept.push_back(std::move(copy));
            continue;
          }
          if (a.g) {
            auto g = std::make_shared<GraphProto>(*a.g);
            apply(g->node);
            a.g = std::move(g);
          }
          kept.push_back(std::move(a));
        }
        n.attribute = std::move(kept);
      }
    }
  };
  TRY(count_nodes(function.node.size()));
  std::vector<NodeProto> body = function.node;
  Substitute{function, node}.apply(body);

  const std::string_view call = !node.name.empty()    ? node.name
                                : node.output.empty() ? node.op_type
                                                      : node.output[0];
  Scope scope{scope_->graph, scope_, true, {}, {}, fmt::format("{}{}/", scope_->prefix, call)};
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != kAbsent &&
        !scope.names.emplace(std::string(function.input[i]), inputs[i]).second)
      return error(Code::kInvalidArgument, "function '{}' names input '{}' twice", function.name,
                   function.input[i]);
  // An absent optional input of a function is an empty name inside.
  std::set<std::string_view> absent;
  for (size_t i = 0; i < function.input.size(); ++i)
    if (i >= inputs.size() || inputs[i] == kAbsent) absent.insert(function.input[i]);
  for (NodeProto& n : body)
    for (std::string_view& name : n.input)
      if (absent.count(name)) name = "";

  auto saved = opsets_;
  for (const OpsetProto& o : function.opset_import)
    opsets_[std::string(canonical(o.domain))] = o.version;
  call_path_.push_back(id);
  Scope* outer = std::exchange(scope_, &scope);
  Status status = import_nodes(body);
  std::vector<ValueId> results;
  for (size_t i = 0; status && i < node.output.size(); ++i) {
    if (node.output[i].empty()) {
      results.push_back(kAbsent);
      continue;
    }
    auto found = lookup(function.output[i]);
    if (found)
      results.push_back(*found);
    else
      status = tl::unexpected(std::move(found).error());
  }
  scope_ = outer;
  call_path_.pop_back();
  opsets_ = std::move(saved);
  TRY(status);
  for (size_t i = 0; i < node.output.size(); ++i) {
    if (results[i] == kAbsent) continue;
    // The name outside goes before the one inside.
    ir::ValueInfo& info = scope_->graph->value(results[i]);
    if (info.name.starts_with(scope.prefix)) info.name.clear();
    TRY(define(node.output[i], results[i]));
  }
  return {};
}

Result<Importer::Body> Importer::import_body(const GraphProto& proto,
                                             const std::vector<op::Type>& formal_types) {
  if (++depth_ > kMaxDepth)
    return error(Code::kInvalidArgument, "bodies are nested deeper than {}", kMaxDepth);
  if (formal_types.size() != proto.input.size())
    return error(Code::kInvalidArgument, "body '{}' takes {} inputs, got {}", proto.name,
                 proto.input.size(), formal_types.size());
  Body body;
  body.graph = ir::Graph(std::string(proto.name));
  body.graph.symbols = symbols_;
  Scope scope{&body.graph, scope_, false, {}, {}, scope_ ? scope_->prefix : ""};
  Scope* outer = std::exchange(scope_, &scope);
  auto fill = [&]() -> Status {
    for (size_t i = 0; i < proto.input.size(); ++i) {
      const ValueId id = body.graph.add_input(std::string(proto.input[i].name), formal_types[i]);
      TRY(define(proto.input[i].name, id));
    }
    TRY(add_initializers(proto));
    TRY(import_nodes(proto.node));
    for (const ValueInfoProto& output : proto.output) {
      TRY_ASSIGN(ValueId id, lookup(output.name));
      body.graph.outputs.push_back(id);
      body.graph.output_names.emplace_back(output.name);
    }
    return {};
  };
  Status status = fill();
  scope_ = outer;
  --depth_;
  TRY(status);
  for (const auto& [name, id] : scope.captures) body.captures.push_back(name);
  return body;
}

Result<std::vector<ValueId>> Importer::inline_body(const GraphProto& proto,
                                                   std::string_view prefix) {
  if (++depth_ > kMaxDepth)
    return error(Code::kInvalidArgument, "bodies are nested deeper than {}", kMaxDepth);
  if (!proto.input.empty())
    return error(Code::kInvalidArgument, "body '{}' takes {} inputs, got 0", proto.name,
                 proto.input.size());
  Scope scope{scope_->graph, scope_, false, {}, {}, fmt::format("{}{}/", scope_->prefix, prefix)};
  Scope* outer = std::exchange(scope_, &scope);
  std::vector<ValueId> results;
  auto fill = [&]() -> Status {
    TRY(add_initializers(proto));
    TRY(import_nodes(proto.node));
    for (const ValueInfoProto& output : proto.output) {
      TRY_ASSIGN(ValueId id, lookup(output.name));
      results.push_back(id);
    }
    return {};
  };
  Status status = fill();
  scope_ = outer;
  --depth_;
  TRY(status);
  // The name outside goes before the one inside.
  for (ValueId id : results)
    if (ir::ValueInfo& info = scope_->graph->value(id); info.name.starts_with(scope.prefix))
      info.name.clear();
  return results;
}

Result<ImportedModel> Importer::run() {
  if (model_.ir_version < 1 || model_.ir_version > kMaxIrVersion)
    return error(Code::kUnimplemented, "IR version {} is not one of 1 to {}", model_.ir_version,
                 kMaxIrVersion);
  for (const OpsetProto& o : model_.opset_import) {
    const std::string domain(canonical(o.domain));
    if (o.version < 1 || (domain.empty() && o.version > kMaxOpset))
      return error(Code::kUnimplemented, "opset {} of domain '{}' is not known, the newest is {}",
                   o.version, domain.empty() ? "ai.onnx" : domain, kMaxOpset);
    opsets_[domain] = o.version;
  }
  if (model_.opset_import.empty()) opsets_[""] = 1;

  ImportedModel result;
  result.graph = ir::Graph(std::string(model_.graph.name));
  result.graph.symbols = symbols_;
  Scope scope{&result.graph, nullptr, false, {}, {}, ""};
  scope_ = &scope;
  TRY(add_initializers(model_.graph));
  for (const ValueInfoProto& input : model_.graph.input) {
    if (scope.names.count(std::string(input.name))) {
      // Older files list initializers among the inputs. A name that is twice an input is caught
      // here too.
      if (!result.graph.value(scope.names[std::string(input.name)]).constant)
        return error(Code::kInvalidArgument, "input '{}' is declared twice", input.name);
      continue;
    }
    if (input.name.empty()) return error(Code::kInvalidArgument, "an input has no name");
    TRY_ASSIGN(op::Type type, input_type(input));
    const ValueId id = result.graph.add_input(std::string(input.name), std::move(type));
    TRY(define(input.name, id));
  }
  for (const auto& [name, dims] : options_.shapes)
    if (std::none_of(model_.graph.input.begin(), model_.graph.input.end(),
                     [&, n = std::string_view(name)](auto& i) { return i.name == n; }))
      return error(Code::kInvalidArgument, "no input '{}' to give a shape to", name);
  TRY(import_nodes(model_.graph.node));
  if (model_.graph.output.empty()) return error(Code::kInvalidArgument, "the model has no outputs");
  for (const ValueInfoProto& output : model_.graph.output) {
    auto id = lookup(output.name);
    if (!id) return error(std::move(id).error().at("among the model's outputs"));
    result.graph.outputs.push_back(*id);
    result.graph.output_names.emplace_back(output.name);
    if (output.type.kind != TypeProto::kTensor) continue;
    const op::Type& type = result.graph.type(*id);
    TRY_ASSIGN(DType declared, dtype_from_onnx(output.type.elem_type));
    if (type.is_tensor() && type.dtype != declared)
      return error(Code::kInvalidArgument, "output '{}' is declared {}, the graph yields {}",
                   output.name, name_of(declared), name_of(type.dtype));
  }
  result.ir_version = model_.ir_version;
  result.opsets = {opsets_.begin(), opsets_.end()};
  result.producer = std::string(model_.producer_name);
  result.parameters = parameters_;
  scope_ = nullptr;
  return result;
}

Result<ImportedModel> import_model(std::string_view bytes, std::shared_ptr<const void> keep,
                                   const ImportOptions& options) {
  TRY_ASSIGN(ModelProto model, parse_model(bytes));
  return Importer(model, {std::move(keep), options.folder}, options).run();
}

Result<ImportedModel> import_file(const std::string& path, ImportOptions options) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  auto shared = std::make_shared<MappedFile>(std::move(file));
  if (options.folder.empty()) {
    const auto parent = std::filesystem::path(path).parent_path();
    options.folder = parent.empty() ? "." : parent.string();
  }
  auto model =
      import_model({reinterpret_cast<const char*>(shared->bytes().data()), shared->bytes().size()},
                   shared, options);
  if (!model) return error(std::move(model).error().at(fmt::format("file '{}'", path)));
  return model;
}

}  // namespace tessera::import::onnx
