#include "tessera/runtime/executor.h"

#include <algorithm>

#include "tessera/runtime/run.h"

namespace tessera::runtime {
namespace {

Error at_instruction(Error e, const Instruction& i) {
  if (e.message.find("op '") != std::string::npos) return e;
  return std::move(e).at(fmt::format("op '{}'", label_of(i)));
}

}  // namespace

std::string label_of(const Instruction& i) {
  return i.origin.empty() ? std::string(i.op ? i.op->name : "") : i.origin.front();
}

std::vector<int64_t> values_of(const std::vector<std::string>& symbols,
                               const op::Bindings& bindings) {
  std::vector<int64_t> values;
  for (const std::string& s : symbols) {
    auto found = bindings.find(s);
    values.push_back(found == bindings.end() ? INT64_MIN : found->second);
  }
  return values;
}

Result<op::Bindings> bind_inputs(const Region& region, const std::vector<op::Dims>& dims,
                                 op::Bindings known) {
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    const Slot& slot = region.slots[static_cast<size_t>(region.inputs[i])];
    if (!slot.type.ranked()) continue;
    if (dims[i].size() != slot.type.shape->size())
      return error(Code::kInvalidArgument, "input '{}' has rank {} ({}), need {}", slot.name,
                   dims[i].size(), op::to_string(dims[i]), slot.type.str());
    for (size_t a = 0; a < dims[i].size(); ++a) {
      const op::Expr& e = (*slot.type.shape)[a];
      if (auto symbol = e.as_symbol()) {
        auto [at, fresh] = known.emplace(*symbol, dims[i][a]);
        if (!fresh && at->second != dims[i][a])
          return error(Code::kInvalidArgument, "input '{}': dim {} is {}, but '{}' is {} already",
                       slot.name, a, dims[i][a], *symbol, at->second);
      } else if (auto fixed = e.constant(); fixed && *fixed != dims[i][a]) {
        return error(Code::kInvalidArgument, "input '{}': dim {} is {}, need {}", slot.name, a,
                     dims[i][a], *fixed);
      }
    }
  }
  return known;
}

Executor::Executor(const Machine& machine, std::shared_ptr<const plan::Plan> plan)
    : machine_(machine), plan_(std::move(plan)) {}
Executor::~Executor() = default;

Result<bool> Executor::fits(const std::vector<op::Value>& inputs) {
  std::vector<op::Dims> dims;
  for (const op::Value& v : inputs) dims.push_back(v.is_tensor() ? v.tensor().dims() : op::Dims{});
  TRY_ASSIGN(op::Bindings bindings, bind_inputs(plan_->main, dims, {}));
  auto& state = states_[&plan_->main];
  if (!state) state = std::make_unique<RegionState>();
  state->prepared.resize(plan_->main.body.size());
  for (size_t n = 0; n < plan_->main.body.size(); ++n) {
    const Instruction& i = plan_->main.body[n];
    if (i.kind != Kind::kLaunch) continue;
    const std::vector<int64_t> sizes = values_of(i.symbols, bindings);
    if (std::find(sizes.begin(), sizes.end(), INT64_MIN) != sizes.end())
      continue;  // known only at run time
    auto p = claimed(plan_->main, *state, n, bindings);
    if (!p) return error(at_instruction(std::move(p).error(), i));
    if (!(*p)->source) return false;
  }
  return true;
}

Result<std::vector<op::Value>> Executor::run(const std::vector<op::Value>& inputs,
                                             const RunOptions& options) {
  if (!ready_) {
    TRY_ASSIGN(queue_,
               machine_.memory.device->queue({.out_of_order = false, .run_on_submit = true}));
    TRY_ASSIGN(timeline_, machine_.memory.device->timeline());
    submitted_ = 0;
    ready_ = true;
  }
  counters_ = {};
  counters_.bind = std::exchange(bind_, Seconds());
  Run run{*this, options, {}, {}, {}, {}, {}};
  std::vector<Cell> cells;
  for (const op::Value& v : inputs) {
    Cell cell;
    if (v.is_tensor()) {
      TRY_ASSIGN(cell, from_tensor(machine_.memory, v.tensor()));
    } else {
      cell.value = v;
    }
    cells.push_back(std::move(cell));
  }
  TRY_ASSIGN(std::vector<Cell> results, run.region(plan_->main, std::move(cells), {}));
  std::vector<op::Value> outputs;
  for (const Cell& cell : results) outputs.push_back(to_value(cell));
  counters_.bind += std::exchange(bind_, Seconds());
  return outputs;
}

Status Executor::Run::check(const Instruction& i) const {
  if (options.deadline && std::chrono::steady_clock::now() > *options.deadline)
    return error(Code::kDeadlineExceeded, "the time limit has passed; op '{}'", label_of(i));
  return {};
}

Status Executor::Run::flush() {
  if (!commands.empty()) {
    const uint64_t value = ++e.submitted_;
    auto number = e.queue_.submit(commands, {}, std::vector<hal::Point>{e.timeline_.at(value)});
    Status status = number ? Status() : Status(tl::unexpected(number.error()));
    if (status) status = e.timeline_.wait(value);
    commands.clear();
    ranges.clear();
    if (!status) {
      // The queue and its timeline hold the failure for good: the next run starts with new ones.
      e.ready_ = false;
      return status;
    }
  }
  garbage.clear();
  return {};
}

void Executor::Run::account(Bytes slab_live) {
  e.counters_.peak = std::max(e.counters_.peak, slabs + held);
  e.counters_.live = std::max(e.counters_.live, slab_live + held);
}

Status Executor::Run::hold(const Cell& cell, const Instruction& i) {
  held += cell.bytes();
  if (slabs + held > options.memory_limit)
    return error(Code::kResourceExhausted, "{} of values exceed the memory limit of {}; op '{}'",
                 to_string(slabs + held), to_string(options.memory_limit), label_of(i));
  return {};
}

// Slab slots whose sizes first become known on the way are heap slots in a region that binds.
Status Executor::Run::lay_out(const Region& r, RegionState& state, const op::Bindings& bindings) {
  if (!state.laid_out) {
    std::vector<std::string>& symbols = state.slab_symbols;
    for (const Slot& s : r.slots)
      if (s.storage == Storage::kSlab)
        for (const op::Expr& d : *s.type.shape)
          for (std::string& name : d.symbols()) symbols.push_back(std::move(name));
    std::sort(symbols.begin(), symbols.end());
    symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  }
  std::vector<int64_t> sizes = values_of(state.slab_symbols, bindings);
  if (state.laid_out && sizes == state.slab_sizes) return {};
  {
    const Stopwatch watch(&e.counters_.bind);
    TRY_ASSIGN(state.layout, plan::lay_out(r, bindings));
  }
  if (state.layout.size > state.slab_bytes || !state.slab) {
    if (slabs + held + state.layout.size > options.memory_limit)
      return error(Code::kResourceExhausted, "needs {} for values, the memory limit is {}",
                   to_string(slabs + held + state.layout.size), to_string(options.memory_limit));
    state.slab = hal::Buffer();
    if (state.layout.size.value > 0) {
      TRY_ASSIGN(state.slab,
                 e.machine_.memory.allocator->allocate(state.layout.size, {.tag = "slab"}));
      if (!state.slab.host())
        return error(Code::kUnimplemented, "the host cannot see the memory of '{}'",
                     e.machine_.memory.device->name());
    }
    state.slab_bytes = state.layout.size;
  }
  state.slab_sizes = std::move(sizes);
  state.laid_out = true;
  return {};
}

std::vector<Cell> Executor::Run::cells_of(const Region& r, std::vector<Cell> inputs) const {
  std::vector<Cell> cells(r.slots.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    cells[static_cast<size_t>(r.inputs[i])] = std::move(inputs[i]);
  for (size_t s = 0; s < r.slots.size(); ++s)
    if (r.slots[s].storage == Storage::kConstant) {
      // On the device only when a kernel wants it there: most weights are read in a packed form.
      const op::Tensor& t = e.plan_->constants[static_cast<size_t>(r.slots[s].constant)].tensor;
      cells[s].dtype = t.dtype();
      cells[s].dims = t.dims();
      cells[s].host = const_cast<std::byte*>(t.data());
      cells[s].keep = t.storage();
      cells[s].layout = r.slots[s].layout;
      if (t.dtype() == DType::kString) cells[s].value = op::Value(t);
    }
  return cells;
}

void Executor::Run::release(const Region& r, size_t n, std::vector<Cell>& cells) {
  for (const std::vector<int>* side : {&r.body[n].in, &r.body[n].out})
    for (int id : *side) {
      if (id == kNone) continue;
      const int alias = r.slots[static_cast<size_t>(id)].alias;
      const size_t root = static_cast<size_t>(alias == kNone ? id : alias);
      const Slot& s = r.slots[root];
      if ((s.storage != Storage::kHeap && s.storage != Storage::kHost) ||
          s.last > static_cast<int>(n) || !cells[root].filled())
        continue;
      held -= cells[root].bytes();
      garbage.push_back(std::exchange(cells[root], Cell()));
    }
}

Result<std::vector<Cell>> Executor::Run::outputs(const Region& r, std::vector<Cell>& cells,
                                                 const op::Bindings& bindings) {
  std::vector<Cell> outputs;
  for (int id : r.outputs) {
    const Slot& s = r.slots[static_cast<size_t>(id)];
    Cell cell = cells[static_cast<size_t>(s.alias == kNone ? id : s.alias)];
    if (s.alias != kNone) {
      TRY_ASSIGN(cell.dims, plan::dims_of(s, bindings));
    }
    TRY_ASSIGN(cell, owned(e.machine_.memory, cell));
    outputs.push_back(std::move(cell));
  }
  for (size_t s = 0; s < r.slots.size(); ++s)
    if ((r.slots[s].storage == Storage::kHeap || r.slots[s].storage == Storage::kHost) &&
        cells[s].filled()) {
      if (std::find(r.inputs.begin(), r.inputs.end(), static_cast<int>(s)) == r.inputs.end())
        held -= cells[s].bytes();
    }
  return outputs;
}

Result<std::vector<Cell>> Executor::Run::region(const Region& r, std::vector<Cell> inputs,
                                                op::Bindings bindings) {
  std::vector<op::Dims> dims;
  for (const Cell& c : inputs) dims.push_back(c.dims);
  TRY_ASSIGN(bindings, bind_inputs(r, dims, std::move(bindings)));
  auto& slot = e.states_[&r];
  if (!slot) slot = std::make_unique<RegionState>();
  RegionState& state = *slot;
  state.prepared.resize(r.body.size());
  if (state.labels.empty())
    for (const Instruction& i : r.body) state.labels.push_back(label_of(i));
  TRY(lay_out(r, state, bindings));
  slabs += state.slab_bytes;
  std::vector<Cell> cells = cells_of(r, std::move(inputs));
  for (size_t n = 0; n < r.body.size(); ++n) {
    const Instruction& i = r.body[n];
    if (auto ok = instruction(r, state, n, cells, bindings); !ok) {
      commands.clear();
      return error(at_instruction(std::move(ok).error(), i));
    }
    account(Bytes(state.layout.live[n]));
    if (options.observe) {
      TRY(flush());
      for (int id : i.out) {
        if (id == kNone || i.kind == Kind::kBind || r.slots[static_cast<size_t>(id)].name.empty())
          continue;
        TRY_ASSIGN(op::Value value, plain_value(cells[static_cast<size_t>(id)]));
        options.observe(r.slots[static_cast<size_t>(id)].name, value);
      }
    }
    release(r, n, cells);
  }
  TRY(flush());
  TRY_ASSIGN(std::vector<Cell> results, outputs(r, cells, bindings));
  slabs -= state.slab_bytes;
  return results;
}

Status Executor::Run::instruction(const Region& r, RegionState& state, size_t n,
                                  std::vector<Cell>& cells, op::Bindings& bindings) {
  const Instruction& i = r.body[n];
  for (int id : i.in) {
    if (id == kNone || r.slots[static_cast<size_t>(id)].alias == kNone) continue;
    // Parts of a slot need to know where it is on the device.
    if (i.kind == Kind::kLaunch && r.slots[static_cast<size_t>(id)].view)
      TRY(to_device(r, r.slots[static_cast<size_t>(id)].alias, cells));
    TRY(look(r, id, cells, bindings));
  }
  switch (i.kind) {
    case Kind::kLaunch:
      for (int id : i.out)
        if (id != kNone) TRY(place(r, state, id, cells, bindings, i));
      return launch(r, state, n, cells, bindings);
    case Kind::kSizes:
      TRY(place(r, state, i.out[0], cells, bindings, i));
      return sizes(r, n, cells, bindings);
    case Kind::kBind: {
      const Slot& slot = r.slots[static_cast<size_t>(i.in[0])];
      const Cell& cell = cells[static_cast<size_t>(i.in[0])];
      if (cell.dims.size() != slot.type.shape->size())
        return error(Code::kInvalidArgument, "'{}' has rank {}, its type is {}", slot.name,
                     cell.dims.size(), slot.type.str());
      for (size_t a = 0; a < cell.dims.size(); ++a)
        if (auto symbol = (*slot.type.shape)[a].as_symbol();
            symbol && std::binary_search(i.symbols.begin(), i.symbols.end(), *symbol))
          bindings[*symbol] = cell.dims[a];
      return {};
    }
    case Kind::kHost:
      TRY(flush());
      TRY(check(i));
      for (int id : i.out)
        if (id != kNone && (r.slots[static_cast<size_t>(id)].storage == Storage::kSlab ||
                            r.slots[static_cast<size_t>(id)].storage == Storage::kAlias))
          TRY(place(r, state, id, cells, bindings, i));
      return host(r, n, cells);
    case Kind::kCopy:
      return error(Code::kUnimplemented, "a plan over several devices ('{}') cannot be run yet",
                   i.place);
    case Kind::kBranch:
      TRY(flush());
      return branch(i, cells, bindings);
    case Kind::kLoop:
      TRY(flush());
      return loop(i, cells, bindings);
    case Kind::kScan:
      TRY(flush());
      return scan(i, cells, bindings);
    case Kind::kMap:
      TRY(flush());
      return map(i, cells, bindings);
  }
  return {};
}

}  // namespace tessera::runtime
