#include "tessera/session/model.h"

#include <algorithm>

#include "tessera/import/onnx/model.h"
#include "tessera/ir/reference/interpreter.h"

namespace tessera::session {

struct Model::Impl {
  import::onnx::ImportedModel imported;
  LoadOptions options;
  std::vector<Port> inputs, outputs;
  Counters counters;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

namespace {

template <class Impl>
std::unique_ptr<Impl> prepare(import::onnx::ImportedModel imported, const LoadOptions& options) {
  auto impl = std::make_unique<Impl>();
  const ir::Graph& graph = imported.graph;
  for (ir::ValueId id : graph.inputs) impl->inputs.push_back({graph.value(id).name, graph.type(id)});
  for (size_t i = 0; i < graph.outputs.size(); ++i) impl->outputs.push_back({graph.output_names[i], graph.type(graph.outputs[i])});
  impl->imported = std::move(imported);
  impl->options = options;
  return impl;
}

import::onnx::ImportOptions import_options(const LoadOptions& options) { return {options.dims, options.shapes, ""}; }

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const std::string& path, const LoadOptions& options) {
  TRY_ASSIGN(auto imported, import::onnx::import_file(path, import_options(options)));
  return std::unique_ptr<Model>(new Model(prepare<Impl>(std::move(imported), options)));
}

Result<std::unique_ptr<Model>> Model::load_bytes(std::string_view bytes, std::shared_ptr<const void> keep, const LoadOptions& options) {
  TRY_ASSIGN(auto imported, import::onnx::import_model(bytes, std::move(keep), import_options(options)));
  return std::unique_ptr<Model>(new Model(prepare<Impl>(std::move(imported), options)));
}

const std::vector<Port>& Model::inputs() const { return impl_->inputs; }
const std::vector<Port>& Model::outputs() const { return impl_->outputs; }
const ir::Graph& Model::graph() const { return impl_->imported.graph; }
Counters Model::counters() const { return impl_->counters; }
MemoryUse Model::memory() const { return {}; }

Result<std::vector<op::Value>> Model::run(const std::map<std::string, op::Value>& inputs, const RunOptions& options) {
  std::vector<op::Value> values;
  for (const Port& port : impl_->inputs) {
    auto found = inputs.find(port.name);
    if (found == inputs.end()) return error(Code::kInvalidArgument, "input '{}' ({}) is missing", port.name, port.type.str());
    TRY(ir::reference::check_type(found->second, port.type, port.name));
    values.push_back(found->second);
  }
  for (const auto& [name, value] : inputs)
    if (std::none_of(impl_->inputs.begin(), impl_->inputs.end(), [&, n = std::string_view(name)](auto& p) { return p.name == n; }))
      return error(Code::kInvalidArgument, "the model has no input '{}'", name);
  ir::reference::Options reference;
  if (impl_->options.memory_limit.value > 0) reference.memory_limit = impl_->options.memory_limit;
  reference.deadline = options.deadline;
  if (options.observe)
    reference.observe = [&](const ir::Graph& graph, ir::ValueId id, const op::Value& value) {
      if (!graph.value(id).name.empty()) options.observe(graph.value(id).name, value);
    };
  return ir::reference::run(graph(), values, reference);
}

}  // namespace tessera::session
