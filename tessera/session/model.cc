#include "tessera/session/model.h"

#include <algorithm>
#include <mutex>

#include "tessera/base/limits.h"
#include "tessera/import/onnx/model.h"
#include "tessera/ir/reference/interpreter.h"
#include "tessera/passes/expand.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/merge.h"
#include "tessera/passes/schedule.h"
#include "tessera/passes/simplify.h"
#include "tessera/passes/views.h"
#include "tessera/runtime/executor.h"
#include "tessera/session/machine.h"

namespace tessera::session {

namespace onnx = tessera::import::onnx;

struct Model::Impl {
  LoadOptions options;
  Bytes memory_limit;
  onnx::ImportedModel imported;
  std::vector<Port> inputs, outputs;
  std::shared_ptr<Machine> machine;   // null: the interpreter alone
  std::vector<passes::Event> missed;  // rewrites that did not happen at load, and why

  mutable std::mutex mutex;
  struct Planned {
    std::shared_ptr<const plan::Plan> plan;
    std::shared_ptr<const Planning> planning;
    std::vector<std::unique_ptr<runtime::Executor>> idle;
  };
  std::vector<Planned> plans;
  Counters counters;
  MemoryUse memory;

  struct Lease {
    size_t plan;
    std::unique_ptr<runtime::Executor> executor;
  };
  Result<Lease> executor_for(const std::vector<op::Value>& values);
  // What kernels say of a group, in the layouts that `options` allow.
  passes::Accepts accepts() const;
  passes::Price price() const;
  // @pre mutex is held, or nobody else has this
  Result<std::shared_ptr<const plan::Plan>> make_plan(const op::Bindings& sizes);
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

namespace {

onnx::ImportOptions import_options(const LoadOptions& options) {
  return {options.dims, options.shapes, ""};
}

// Planning is deterministic and the interpreter bounded: folding takes no deadline, but must not
// take all memory.
passes::Evaluate evaluator(Bytes memory_limit) {
  return [memory_limit](const ir::Node& node, std::span<const op::Value* const> inputs) {
    ir::reference::Options options;
    options.memory_limit = memory_limit;
    return ir::reference::evaluate(node, inputs, options);
  };
}

// Symbols that the inputs bind, for the first plan.
bool all_sizes_known(const std::vector<Port>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Port& p) { return !p.type.is_tensor() || p.type.is_static(); });
}

// Open sizes as they may be: what is worth merging hardly depends on them.
op::Bindings typical_sizes(const ir::Graph& graph) {
  constexpr int64_t kTypical = 64;
  op::Bindings sizes;
  for (const ir::ValueInfo& info : graph.values)
    if (info.type.is_tensor() && info.type.ranked())
      for (const op::Expr& d : *info.type.shape)
        for (std::string& s : d.symbols()) sizes.emplace(std::move(s), kTypical);
  return sizes;
}

Status add_output(ir::Graph& graph, const std::string& name) {
  for (size_t id = 0; id < graph.values.size(); ++id)
    if (graph.values[id].name == name) {
      graph.outputs.push_back(static_cast<ir::ValueId>(id));
      graph.output_names.push_back(name);
      return {};
    }
  return error(Code::kInvalidArgument, "the model's main graph has no value '{}'", name);
}

}  // namespace

Result<std::unique_ptr<Model>> Model::make(onnx::ImportedModel imported,
                                           const LoadOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->imported = std::move(imported);
  impl->options = options;
  impl->memory_limit =
      options.memory_limit.value > 0 ? options.memory_limit : default_memory_limit();
  ir::Graph& graph = impl->imported.graph;
  for (ir::ValueId id : graph.inputs)
    impl->inputs.push_back({graph.value(id).name, graph.type(id)});
  TRY(passes::precision_from_name(options.precision));
  for (const std::string& name : options.extra_outputs) TRY(add_output(graph, name));
  if (options.device != "reference") {
    TRY_ASSIGN(impl->machine, Machine::open(options.device, options.threads, impl->memory_limit,
                                            options.isa, options.provider, options.codegen));
    impl->missed =
        passes::simplify(graph, {.evaluate = evaluator(impl->memory_limit), .observe = {}}).missed;
    // Once, so that plans for other sizes share the joined weights.
    if (options.fuse) {
      const passes::MergeReport merged =
          passes::merge(graph, typical_sizes(graph), impl->accepts(), impl->price());
      impl->missed.insert(impl->missed.end(), merged.missed.begin(), merged.missed.end());
    }
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    impl->outputs.push_back({graph.output_names[i], graph.type(graph.outputs[i])});
  if (impl->machine && all_sizes_known(impl->inputs)) {
    TRY(impl->make_plan({}));
  }
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

namespace {

Status check_sizes(const LoadOptions& options) {
  for (const auto& [name, size] : options.dims)
    if (size < 0)
      return error(Code::kInvalidArgument, "size '{}' is {}, need at least 0", name, size);
  for (const auto& [name, dims] : options.shapes)
    if (auto count = op::element_count(dims); !count)
      return error(
          std::move(count).error().at(fmt::format("the shape given for input '{}'", name)));
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const std::string& path, const LoadOptions& options) {
  TRY(check_sizes(options));
  TRY_ASSIGN(auto imported, onnx::import_file(path, import_options(options)));
  return make(std::move(imported), options);
}

Result<std::unique_ptr<Model>> Model::load_bytes(std::string_view bytes,
                                                 std::shared_ptr<const void> keep,
                                                 const LoadOptions& options) {
  TRY(check_sizes(options));
  TRY_ASSIGN(auto imported, onnx::import_model(bytes, std::move(keep), import_options(options)));
  return make(std::move(imported), options);
}

Result<std::unique_ptr<Model>> Model::from_graph(ir::Graph graph, const LoadOptions& options) {
  TRY(ir::verify(graph));
  onnx::ImportedModel imported;
  imported.graph = std::move(graph);
  return make(std::move(imported), options);
}

const std::vector<Port>& Model::inputs() const { return impl_->inputs; }
const std::vector<Port>& Model::outputs() const { return impl_->outputs; }
const ir::Graph& Model::graph() const { return impl_->imported.graph; }

Counters Model::counters() const {
  const std::lock_guard lock(impl_->mutex);
  Counters counters = impl_->counters;
  if (impl_->machine && impl_->machine->generated)
    counters.code = impl_->machine->generated->counters();
  return counters;
}

MemoryUse Model::memory() const {
  const std::lock_guard lock(impl_->mutex);
  MemoryUse use = impl_->memory;
  if (impl_->machine) use.weights = impl_->machine->runtime.weights->bytes();
  return use;
}

std::shared_ptr<const plan::Plan> Model::plan() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->plans.empty() ? nullptr : impl_->plans.back().plan;
}

Result<std::shared_ptr<const plan::Plan>> Model::plan_for(const op::Bindings& sizes) {
  if (!impl_->machine)
    return error(Code::kUnimplemented, "the interpreter follows the graph, without a plan");
  const std::lock_guard lock(impl_->mutex);
  for (const Impl::Planned& planned : impl_->plans)
    if (planned.plan->planned_for == sizes) return planned.plan;
  return impl_->make_plan(sizes);
}

Result<std::shared_ptr<const Planning>> Model::planning_for(const op::Bindings& sizes) {
  TRY_ASSIGN(auto plan, plan_for(sizes));
  const std::lock_guard lock(impl_->mutex);
  for (const Impl::Planned& planned : impl_->plans)
    if (planned.plan == plan) return planned.planning;
  return error(Code::kInternal, "a plan went missing");
}

passes::Sources Model::sources() const { return impl_->machine->runtime.sources; }
const kernels::Rates& Model::rates() const { return impl_->machine->rates; }

passes::Accepts Model::Impl::accepts() const {
  return [sources = machine->runtime.sources, mode = options.layout](const op::Problem& p) {
    if (mode != passes::LayoutMode::kNone) return passes::refusal(p, sources);
    std::string why;
    if (passes::cheapest(p, sources, &why)) return std::string();
    return why.empty() ? "no kernel for this operator" : why;
  };
}

passes::Price Model::Impl::price() const {
  return [sources = machine->runtime.sources,
          mode = options.layout](const op::Problem& p) -> std::optional<Picoseconds> {
    if (mode != passes::LayoutMode::kNone) return passes::least_cost(p, sources);
    const auto claim = passes::cheapest(p, sources);
    return claim ? std::optional(claim->cost) : std::nullopt;
  };
}

Result<std::shared_ptr<const plan::Plan>> Model::Impl::make_plan(const op::Bindings& sizes) {
  const passes::Sources sources = machine->runtime.sources;
  auto planning = std::make_shared<Planning>();
  planning->sizes = sizes;
  planning->fused = imported.graph;
  TRY(passes::expand(planning->fused, sizes, sources));
  TRY_ASSIGN(planning->precision, passes::precision_from_name(options.precision));
  passes::precision(planning->fused, planning->precision);
  if (options.fuse) planning->fuse = passes::fuse(planning->fused, sizes, accepts(), price());
  for (const passes::Event& e : missed)
    planning->fuse.missed.push_back(
        fmt::format("{} of {}: {}", e.pass, fmt::join(e.origin, ", "), e.text));
  planning->graph = planning->fused;
  TRY_ASSIGN(planning->assign,
             passes::assign(planning->graph, sources, {.bindings = sizes, .mode = options.layout}));
  TRY_ASSIGN(
      plan::Plan planned,
      passes::schedule(planning->graph, sources,
                       {.device = options.device, .bindings = sizes, .reference_only = false}));
  planned.rates = machine->rates.origin;
  TRY_ASSIGN(planning->views, passes::views(planned, sources));
  planning->plan = std::make_shared<const plan::Plan>(std::move(planned));
  plans.push_back({planning->plan, std::move(planning), {}});
  ++counters.plans;
  return plans.back().plan;
}

// An executor whose plan takes these sizes: an idle one, a new one, or a new plan.
Result<Model::Impl::Lease> Model::Impl::executor_for(const std::vector<op::Value>& values) {
  std::unique_lock lock(mutex);
  for (size_t p = 0; p < plans.size(); ++p) {
    std::unique_ptr<runtime::Executor> executor;
    if (!plans[p].idle.empty()) {
      executor = std::move(plans[p].idle.back());
      plans[p].idle.pop_back();
    } else {
      executor = std::make_unique<runtime::Executor>(machine->runtime, plans[p].plan);
    }
    auto fits = executor->fits(values);
    if (fits && *fits) return Lease{p, std::move(executor)};
    plans[p].idle.push_back(std::move(executor));
    if (!fits) return error(std::move(fits).error());
  }
  std::vector<op::Dims> dims;
  for (const op::Value& v : values) dims.push_back(v.is_tensor() ? v.tensor().dims() : op::Dims{});
  plan::Region ports;
  for (const Port& port : inputs) {
    ports.inputs.push_back(static_cast<int>(ports.slots.size()));
    plan::Slot slot;
    slot.name = port.name;
    slot.type = port.type;
    ports.slots.push_back(std::move(slot));
  }
  TRY_ASSIGN(op::Bindings sizes, runtime::bind_inputs(ports, dims, {}));
  TRY(make_plan(sizes));
  return Lease{plans.size() - 1,
               std::make_unique<runtime::Executor>(machine->runtime, plans.back().plan)};
}

Result<std::vector<op::Value>> Model::run(const std::map<std::string, op::Value>& inputs,
                                          const RunOptions& options) {
  std::vector<op::Value> values;
  for (const Port& port : impl_->inputs) {
    auto found = inputs.find(port.name);
    if (found == inputs.end())
      return error(Code::kInvalidArgument, "input '{}' ({}) is missing", port.name,
                   port.type.str());
    TRY(ir::reference::check_type(found->second, port.type, port.name));
    values.push_back(found->second);
  }
  for (const auto& [name, value] : inputs)
    if (std::none_of(impl_->inputs.begin(), impl_->inputs.end(),
                     [&, n = std::string_view(name)](auto& p) { return p.name == n; }))
      return error(Code::kInvalidArgument, "the model has no input '{}'", name);
  if (!impl_->machine) {
    ir::reference::Options reference;
    reference.memory_limit = impl_->memory_limit;
    reference.deadline = options.deadline;
    if (options.observe)
      reference.observe = [&](const ir::Graph& graph, ir::ValueId id, const op::Value& value) {
        if (!graph.value(id).name.empty()) options.observe(graph.value(id).name, value);
      };
    return ir::reference::run(graph(), values, reference);
  }
  TRY_ASSIGN(Impl::Lease lease, impl_->executor_for(values));
  const hal::Device& device = *impl_->machine->runtime.memory.device;
  uint64_t begun = 0, ended = 0;
  if (impl_->machine->simulated) {
    TRY_ASSIGN(begun, device.clock_ns());
  }
  auto result =
      lease.executor->run(values, {options.deadline, impl_->memory_limit, options.observe});
  if (impl_->machine->simulated) {
    TRY_ASSIGN(ended, device.clock_ns());
  }
  const runtime::Counters& c = lease.executor->counters();
  const std::lock_guard lock(impl_->mutex);
  if (impl_->machine->simulated)
    impl_->counters.simulated = Seconds(static_cast<double>(ended - begun) * 1e-9);
  impl_->counters.kernel_launches = c.launches;
  impl_->counters.host_operators = c.host_operators;
  impl_->counters.reference_launches = c.reference;
  impl_->counters.bind = c.bind;
  impl_->memory.peak = std::max(impl_->memory.peak, c.peak);
  impl_->memory.live = std::max(impl_->memory.live, c.live);
  impl_->plans[lease.plan].idle.push_back(std::move(lease.executor));
  return result;
}

}  // namespace tessera::session
