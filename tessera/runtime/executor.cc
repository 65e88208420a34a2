#include "tessera/runtime/executor.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/element.h"
#include "tessera/kernels/host/evaluate.h"

namespace tessera::runtime {
namespace {

using plan::Instruction;
using plan::kNone;
using plan::Region;
using plan::Slot;
using plan::Storage;
using Kind = Instruction::Kind;
using Clock = std::chrono::steady_clock;

// Commands are handed over in batches, so that a deadline is noticed.
constexpr size_t kBatch = 64;

std::string label_of(const Instruction& i) {
  return i.origin.empty() ? std::string(i.op ? i.op->name : "") : i.origin.front();
}

Error at_instruction(Error e, const Instruction& i) {
  if (e.message.find("op '") != std::string::npos) return e;
  return std::move(e).at(fmt::format("op '{}'", label_of(i)));
}

// A host result may share bytes with the slab (storage() is null); what outlives the instruction
// must not.
Result<op::Value> detached(const op::Value& value) {
  if (value.is_tensor()) {
    const op::Tensor& t = value.tensor();
    if (t.dtype() == DType::kString || t.storage() || t.count() == 0) return value;
    TRY_ASSIGN(op::Tensor copy, op::Tensor::make(t.dtype(), t.dims()));
    std::memcpy(copy.mutable_data(), t.data(), static_cast<size_t>(t.bytes().value));
    return op::Value(std::move(copy));
  }
  if (value.is_sequence()) {
    op::Sequence sequence{value.sequence().element, {}};
    for (const op::Value& item : value.sequence().items) {
      TRY_ASSIGN(op::Value v, detached(item));
      sequence.items.push_back(std::move(v));
    }
    return op::Value(std::move(sequence));
  }
  if (value.is_optional() && value.optional().value) {
    TRY_ASSIGN(op::Value v, detached(*value.optional().value));
    return op::Value(
        op::Optional{value.optional().element, std::make_shared<const op::Value>(std::move(v))});
  }
  return value;
}

}  // namespace

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

// A launch instruction made ready for certain sizes.
struct Executor::Prepared {
  bool valid = false;
  std::vector<int64_t> sizes;  // of the instruction's symbols
  const op::ClaimSource* source = nullptr;
  op::Problem problem;
  op::Claim claim;
  std::vector<op::LaunchSpec> launches;
  std::vector<uint32_t> entries;
  std::vector<Cell> packed;
};

struct Executor::RegionState {
  std::vector<Prepared> prepared;
  std::vector<std::string> slab_symbols;  // that slab sizes depend on
  std::vector<int64_t> slab_sizes;
  bool laid_out = false;
  plan::Layout layout;
  hal::Buffer slab;
  Bytes slab_bytes;
  Cell workspace;
  std::vector<std::string> labels;
};

// One execution of the plan.
struct Executor::Run {
  Executor& e;
  const RunOptions& options;
  std::vector<hal::Command> commands;
  // What pending commands point to: stable addresses until flush.
  std::vector<std::unique_ptr<std::vector<hal::Slice>>> ranges;
  std::vector<Cell> garbage;
  Bytes held;  // heap and host values
  Bytes slabs;

  Status check(const Instruction& i) const {
    if (options.deadline && Clock::now() > *options.deadline)
      return error(Code::kDeadlineExceeded, "the time limit has passed; op '{}'", label_of(i));
    return {};
  }

  Status flush() {
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

  void account(Bytes slab_live) {
    e.counters_.peak = std::max(e.counters_.peak, slabs + held);
    e.counters_.live = std::max(e.counters_.live, slab_live + held);
  }

  Status hold(const Cell& cell, const Instruction& i) {
    held += cell.bytes();
    if (slabs + held > options.memory_limit)
      return error(Code::kResourceExhausted, "{} of values exceed the memory limit of {}; op '{}'",
                   to_string(slabs + held), to_string(options.memory_limit), label_of(i));
    return {};
  }

  Result<std::vector<Cell>> region(const Region& r, std::vector<Cell> inputs,
                                   op::Bindings bindings);
  Status instruction(const Region& r, RegionState& state, size_t n, std::vector<Cell>& cells,
                     op::Bindings& bindings);
  Status launch(const Region& r, RegionState& state, size_t n, std::vector<Cell>& cells,
                const op::Bindings& bindings);
  Status host(const Region& r, size_t n, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status sizes(const Region& r, size_t n, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status branch(const Instruction& i, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status loop(const Region& r, const Instruction& i, std::vector<Cell>& cells,
              const op::Bindings& bindings);
  Status scan(const Region& r, const Instruction& i, std::vector<Cell>& cells,
              const op::Bindings& bindings);
  Status map(const Instruction& i, std::vector<Cell>& cells, const op::Bindings& bindings);
  Status deliver(const Instruction& i, std::vector<Cell>& cells, std::vector<Cell> results);
  // The cell with its bytes where kernels can reach them.
  Status to_device(const Region& r, int id, std::vector<Cell>& cells);
  // A place for a result: in the slab, or a block of its own.
  Status place(const Region& r, RegionState& state, int slot, std::vector<Cell>& cells,
               const op::Bindings& bindings, const Instruction& i);
  Result<Cell> stack(const Instruction& i, const std::vector<Cell>& slices, const op::Type& type,
                     int64_t axis, bool reverse);
  Result<Cell> slice(const Cell& cell, int64_t axis, int64_t at);
};

Executor::Executor(const Machine& machine, std::shared_ptr<const plan::Plan> plan)
    : machine_(machine), plan_(std::move(plan)) {}
Executor::~Executor() = default;

namespace {

std::vector<int64_t> values_of(const std::vector<std::string>& symbols,
                               const op::Bindings& bindings) {
  std::vector<int64_t> values;
  for (const std::string& s : symbols) {
    auto found = bindings.find(s);
    values.push_back(found == bindings.end() ? INT64_MIN : found->second);
  }
  return values;
}

}  // namespace

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
    Prepared& p = state->prepared[n];
    if (p.valid && p.sizes == sizes) continue;
    auto problem = plan::problem_of(*plan_, plan_->main, i, bindings);
    if (!problem) return error(at_instruction(std::move(problem).error(), i));
    bool supported = false;
    for (const op::ClaimSource* source : machine_.sources)
      for (const op::Claim& claim : source->probe(*problem))
        supported |= claim.kernel == i.kernel && claim.supported();
    if (!supported) return false;
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
  if (!state.laid_out) {
    std::vector<std::string>& symbols = state.slab_symbols;
    for (const Slot& s : r.slots)
      if (s.storage == Storage::kSlab)
        for (const op::Expr& d : *s.type.shape)
          for (std::string& name : d.symbols()) symbols.push_back(std::move(name));
    std::sort(symbols.begin(), symbols.end());
    symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  }
  // Slab slots whose sizes first become known on the way are heap slots in a region that binds.
  if (std::vector<int64_t> sizes = values_of(state.slab_symbols, bindings);
      !state.laid_out || sizes != state.slab_sizes) {
    TRY_ASSIGN(state.layout, plan::lay_out(r, bindings));
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
  }
  slabs += state.slab_bytes;
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
      if (t.dtype() == DType::kString) cells[s].value = op::Value(t);
    }
  for (size_t n = 0; n < r.body.size(); ++n) {
    const Instruction& i = r.body[n];
    if (auto ok = instruction(r, state, n, cells, bindings); !ok) {
      commands.clear();
      return error(at_instruction(std::move(ok).error(), i));
    }
    account(Bytes(state.layout.live[n]));
    if (options.observe) {
      TRY(flush());
      for (int id : i.out)
        if (id != kNone && i.kind != Kind::kBind && !r.slots[static_cast<size_t>(id)].name.empty())
          options.observe(r.slots[static_cast<size_t>(id)].name,
                          to_value(cells[static_cast<size_t>(id)]));
    }
    // Blocks of their own go after their last use; what commands still read, after the next flush.
    auto release = [&](int id) {
      const Slot& s = r.slots[static_cast<size_t>(id)];
      if ((s.storage != Storage::kHeap && s.storage != Storage::kHost) ||
          s.last > static_cast<int>(n))
        return;
      Cell& cell = cells[static_cast<size_t>(id)];
      if (!cell.filled()) return;
      held -= cell.bytes();
      garbage.push_back(std::exchange(cell, Cell()));
    };
    for (const std::vector<int>* side : {&i.in, &i.out})
      for (int id : *side)
        if (id != kNone)
          release(r.slots[static_cast<size_t>(id)].alias == kNone
                      ? id
                      : r.slots[static_cast<size_t>(id)].alias);
  }
  TRY(flush());
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
  slabs -= state.slab_bytes;
  return outputs;
}

Status Executor::Run::to_device(const Region& r, int id, std::vector<Cell>& cells) {
  Cell& cell = cells[static_cast<size_t>(id)];
  if (cell.slice.slab || cell.count() == 0) return {};
  const Slot& slot = r.slots[static_cast<size_t>(id)];
  const Slot& root = slot.alias == kNone ? slot : r.slots[static_cast<size_t>(slot.alias)];
  const op::Tensor tensor = to_value(cell).tensor();
  TRY_ASSIGN(Cell wrapped, root.storage == Storage::kConstant
                               ? e.machine_.weights->get(
                                     e.plan_->constants[static_cast<size_t>(root.constant)].tensor)
                               : from_tensor(e.machine_.memory, tensor));
  cell.slice = wrapped.slice;
  cell.host = wrapped.host;
  cell.keep = wrapped.keep;
  return {};
}

Status Executor::Run::place(const Region& r, RegionState& state, int id, std::vector<Cell>& cells,
                            const op::Bindings& bindings, const Instruction& i) {
  const Slot& slot = r.slots[static_cast<size_t>(id)];
  Cell& cell = cells[static_cast<size_t>(id)];
  TRY_ASSIGN(op::Dims dims, plan::dims_of(slot, bindings));
  if (slot.storage == Storage::kHeap) {
    TRY_ASSIGN(cell, allocate(e.machine_.memory, slot.type.dtype, std::move(dims)));
    return hold(cell, i);
  }
  const int64_t offset = state.layout.offsets[static_cast<size_t>(id)];
  cell.dtype = slot.type.dtype;
  cell.dims = std::move(dims);
  cell.slice = state.slab.slice();
  cell.slice.offset_bytes += static_cast<uint64_t>(offset);
  cell.slice.size_bytes = static_cast<uint64_t>(cell.bytes().value);
  cell.host = state.slab.host() + offset;
  if (!state.slab) {
    static std::byte nowhere[kAlignment];
    cell.slice = {};
    cell.host = nowhere;
  }
  return {};
}

Status Executor::Run::instruction(const Region& r, RegionState& state, size_t n,
                                  std::vector<Cell>& cells, op::Bindings& bindings) {
  const Instruction& i = r.body[n];
  // Aliases look at what their root holds now.
  for (int id : i.in) {
    if (id == kNone || r.slots[static_cast<size_t>(id)].alias == kNone) continue;
    Cell& cell = cells[static_cast<size_t>(id)];
    cell = cells[static_cast<size_t>(r.slots[static_cast<size_t>(id)].alias)];
    TRY_ASSIGN(cell.dims, plan::dims_of(r.slots[static_cast<size_t>(id)], bindings));
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
        if (id != kNone && r.slots[static_cast<size_t>(id)].storage == Storage::kSlab)
          TRY(place(r, state, id, cells, bindings, i));
      return host(r, n, cells, bindings);
    case Kind::kBranch:
      TRY(flush());
      return branch(i, cells, bindings);
    case Kind::kLoop:
      TRY(flush());
      return loop(r, i, cells, bindings);
    case Kind::kScan:
      TRY(flush());
      return scan(r, i, cells, bindings);
    case Kind::kMap:
      TRY(flush());
      return map(i, cells, bindings);
  }
  return {};
}

Status Executor::Run::launch(const Region& r, RegionState& state, size_t n,
                             std::vector<Cell>& cells, const op::Bindings& bindings) {
  const Instruction& i = r.body[n];
  Prepared& p = state.prepared[n];
  if (std::vector<int64_t> sizes = values_of(i.symbols, bindings); !p.valid || p.sizes != sizes) {
    p.valid = false;
    TRY_ASSIGN(p.problem, plan::problem_of(*e.plan_, r, i, bindings));
    p.source = nullptr;
    std::string refusals;
    for (const op::ClaimSource* source : e.machine_.sources)
      for (op::Claim& claim : source->probe(p.problem)) {
        if (claim.kernel != i.kernel) continue;
        if (!claim.supported()) {
          refusals = claim.refusal;
          continue;
        }
        p.source = source;
        p.claim = std::move(claim);
      }
    // Sizes that came up on the way may be another kernel's, or the reference's, business.
    if (!p.source) {
      TRY(flush());
      for (int id : i.out)
        if (id != kNone && r.slots[static_cast<size_t>(id)].storage == Storage::kHeap)
          held -= cells[static_cast<size_t>(id)].bytes();
      return host(r, n, cells, bindings);
    }
    TRY_ASSIGN(p.launches, p.source->prepare(p.problem, p.claim));
    p.entries.clear();
    for (const op::LaunchSpec& spec : p.launches) {
      auto entry = e.machine_.entries.find(spec.entry);
      if (entry == e.machine_.entries.end())
        return error(Code::kInternal, "kernel '{}' has no entry '{}'", i.kernel, spec.entry);
      p.entries.push_back(entry->second);
    }
    p.packed.clear();
    for (size_t k = 0; k < p.claim.packed.size(); ++k) {
      const int id = i.in[static_cast<size_t>(p.claim.packed[k].input)];
      const Slot& slot = r.slots[static_cast<size_t>(id)];
      const Slot& root = slot.alias == kNone ? slot : r.slots[static_cast<size_t>(slot.alias)];
      const op::Tensor& tensor = e.plan_->constants[static_cast<size_t>(root.constant)].tensor;
      TRY_ASSIGN(Cell cell, e.machine_.weights->packed(*p.source, p.problem, p.claim,
                                                       static_cast<int>(k), tensor));
      p.packed.push_back(std::move(cell));
    }
    p.sizes = std::move(sizes);
    p.valid = true;
  }
  if (p.claim.workspace.value > 0 &&
      (!state.workspace.host || state.workspace.bytes() < p.claim.workspace)) {
    TRY(flush());
    TRY_ASSIGN(state.workspace,
               allocate(e.machine_.memory, DType::kU8, {p.claim.workspace.value}, "workspace"));
  }
  for (size_t k = 0; k < p.launches.size(); ++k) {
    const op::LaunchSpec& spec = p.launches[k];
    if (spec.grid == 0) continue;
    auto slices = std::make_unique<std::vector<hal::Slice>>();
    for (const op::Argument& a : spec.arguments) {
      hal::Slice slice{};
      switch (a.kind) {
        case op::Argument::kInput:
        case op::Argument::kOutput: {
          const int id =
              (a.kind == op::Argument::kInput ? i.in : i.out)[static_cast<size_t>(a.index)];
          if (id == kNone) break;
          TRY(to_device(r, id, cells));
          slice = cells[static_cast<size_t>(id)].slice;
          break;
        }
        case op::Argument::kPacked:
          slice = p.packed[static_cast<size_t>(a.index)].slice;
          break;
        case op::Argument::kWorkspace:
          slice = state.workspace.slice;
          slice.offset_bytes += static_cast<uint64_t>(a.offset);
          slice.size_bytes -= static_cast<uint64_t>(a.offset);
          break;
      }
      slices->push_back(slice);
    }
    commands.push_back(hal::launch({.executable = &e.machine_.executable,
                                    .entry = p.entries[k],
                                    .grid = spec.grid,
                                    .ranges = *slices,
                                    .constants = spec.constants,
                                    .label = state.labels[n].c_str(),
                                    .site = {}}));
    ranges.push_back(std::move(slices));
  }
  ++e.counters_.launches;
  if (commands.size() >= kBatch && options.deadline) {
    TRY(flush());
    TRY(check(i));
  }
  return {};
}

Status Executor::Run::sizes(const Region& r, size_t n, std::vector<Cell>& cells,
                            const op::Bindings& bindings) {
  const int id = r.body[n].out[0];
  Cell& cell = cells[static_cast<size_t>(id)];
  const op::Contents& contents = *r.slots[static_cast<size_t>(id)].contents;
  if (cell.count() != static_cast<int64_t>(contents.size()))
    return error(Code::kInternal, "{} elements for {}", contents.size(), op::to_string(cell.dims));
  for (size_t k = 0; k < contents.size(); ++k) {
    TRY_ASSIGN(int64_t v, contents[k].eval(bindings));
    store_i64(cell.dtype, cell.host, static_cast<int64_t>(k), v);
  }
  return {};
}

Status Executor::Run::host(const Region& r, size_t n, std::vector<Cell>& cells,
                           const op::Bindings&) {
  const Instruction& i = r.body[n];
  std::vector<op::Value> values(i.in.size());
  std::vector<const op::Value*> inputs(i.in.size(), nullptr);
  for (size_t k = 0; k < i.in.size(); ++k) {
    if (i.in[k] == kNone) continue;
    values[k] = to_value(cells[static_cast<size_t>(i.in[k])]);
    inputs[k] = &values[k];
  }
  kernels::host::Options limits;
  limits.memory_limit =
      Bytes(std::max<int64_t>(0, options.memory_limit.value - slabs.value - held.value));
  limits.deadline = options.deadline;
  TRY_ASSIGN(
      std::vector<op::Value> results,
      kernels::host::evaluate(*i.op, i.attrs, inputs, static_cast<int>(i.out.size()), limits));
  ++(i.op->kind == op::OpClass::kHost ? e.counters_.host_operators : e.counters_.reference);
  for (size_t k = 0; k < i.out.size(); ++k) {
    if (i.out[k] == kNone) continue;
    const Slot& slot = r.slots[static_cast<size_t>(i.out[k])];
    Cell& cell = cells[static_cast<size_t>(i.out[k])];
    if (slot.storage == Storage::kHost || !results[k].is_tensor()) {
      TRY_ASSIGN(op::Value v, detached(results[k]));
      cell = Cell();
      if (v.is_tensor()) {
        cell.dtype = v.tensor().dtype();
        cell.dims = v.tensor().dims();
      }
      cell.value = std::move(v);
      TRY(hold(cell, i));
      continue;
    }
    const op::Tensor& t = results[k].tensor();
    if (slot.storage == Storage::kSlab) {
      if (t.dims() != cell.dims)
        return error(Code::kInternal, "'{}' came out as {}, planned as {}", slot.name,
                     op::to_string(t.dims()), op::to_string(cell.dims));
      if (t.count() > 0) std::memmove(cell.host, t.data(), static_cast<size_t>(t.bytes().value));
      continue;
    }
    TRY_ASSIGN(op::Value v, detached(results[k]));
    TRY_ASSIGN(cell, from_tensor(e.machine_.memory, v.tensor()));
    TRY(hold(cell, i));
  }
  return {};
}

Status Executor::Run::deliver(const Instruction& i, std::vector<Cell>& cells,
                              std::vector<Cell> results) {
  for (size_t k = 0; k < i.out.size(); ++k) {
    if (i.out[k] == kNone) continue;
    if (k >= results.size())
      return error(Code::kInternal, "{} results for {}", results.size(), i.out.size());
    cells[static_cast<size_t>(i.out[k])] = std::move(results[k]);
    TRY(hold(cells[static_cast<size_t>(i.out[k])], i));
  }
  return {};
}

Status Executor::Run::branch(const Instruction& i, std::vector<Cell>& cells,
                             const op::Bindings& bindings) {
  const Cell& condition = cells[static_cast<size_t>(i.in[0])];
  if (condition.count() != 1)
    return error(Code::kInvalidArgument, "if: the condition has {} elements, need 1",
                 condition.count());
  std::vector<Cell> inputs;
  for (size_t k = 1; k < i.in.size(); ++k) inputs.push_back(cells[static_cast<size_t>(i.in[k])]);
  const bool taken = load_i64(condition.dtype, condition.host, 0) != 0;
  TRY_ASSIGN(std::vector<Cell> results,
             region(i.regions[taken ? 0 : 1], std::move(inputs), bindings));
  return deliver(i, cells, std::move(results));
}

Status Executor::Run::loop(const Region& r, const Instruction& i, std::vector<Cell>& cells,
                           const op::Bindings& bindings) {
  const Memory& memory = e.machine_.memory;
  const size_t carried_count = static_cast<size_t>(i.attrs.i("carried"));
  auto scalar = [&](size_t k) {
    return load_i64(cells[static_cast<size_t>(i.in[k])].dtype,
                    cells[static_cast<size_t>(i.in[k])].host, 0);
  };
  const int64_t trips = i.in[0] == kNone ? INT64_MAX : scalar(0);
  bool go = i.in[1] == kNone || scalar(1) != 0;
  std::vector<Cell> carried, captured;
  for (size_t k = 2; k < i.in.size(); ++k)
    (k < 2 + carried_count ? carried : captured).push_back(cells[static_cast<size_t>(i.in[k])]);
  const Region& body = i.regions[0];
  std::vector<std::vector<Cell>> scanned(body.outputs.size() - 1 - carried_count);
  Bytes collected;
  for (int64_t t = 0; t < trips && go; ++t) {
    TRY(check(i));
    std::vector<Cell> inputs;
    for (auto [dtype, value] : {std::pair{DType::kI64, t}, std::pair{DType::kBool, int64_t{1}}}) {
      TRY_ASSIGN(Cell cell, from_tensor(memory, op::Tensor::scalar(dtype, value)));
      inputs.push_back(std::move(cell));
    }
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    TRY_ASSIGN(std::vector<Cell> results, region(body, std::move(inputs), bindings));
    if (results[0].count() != 1)
      return error(Code::kInvalidArgument, "loop: the condition has {} elements, need 1",
                   results[0].count());
    go = load_i64(results[0].dtype, results[0].host, 0) != 0;
    Bytes state;
    for (size_t k = 0; k < carried_count; ++k) {
      carried[k] = std::move(results[1 + k]);
      state += carried[k].bytes();
    }
    for (size_t k = 0; k < scanned.size(); ++k) {
      collected += results[1 + carried_count + k].bytes();
      scanned[k].push_back(std::move(results[1 + carried_count + k]));
    }
    if (slabs + held + state + collected > options.memory_limit)
      return error(Code::kResourceExhausted,
                   "after {} trips the loop holds {}, the memory limit is {}", t + 1,
                   to_string(state + collected), to_string(options.memory_limit));
  }
  std::vector<Cell> results;
  for (Cell& cell : carried) {
    TRY_ASSIGN(Cell own, owned(memory, cell));
    results.push_back(std::move(own));
  }
  for (size_t k = 0; k < scanned.size(); ++k) {
    TRY_ASSIGN(
        Cell cell,
        stack(i, scanned[k],
              body.slots[static_cast<size_t>(body.outputs[1 + carried_count + k])].type, 0, false));
    results.push_back(std::move(cell));
  }
  static_cast<void>(r);
  return deliver(i, cells, std::move(results));
}

Status Executor::Run::scan(const Region& r, const Instruction& i, std::vector<Cell>& cells,
                           const op::Bindings& bindings) {
  static_cast<void>(r);
  const size_t states = static_cast<size_t>(i.attrs.i("states")),
               inputs = static_cast<size_t>(i.attrs.i("scanned"));
  const op::Ints in_axes = i.attrs.ints("input_axes"), out_axes = i.attrs.ints("output_axes");
  const op::Ints in_reverse = i.attrs.ints("input_reverse"),
                 out_reverse = i.attrs.ints("output_reverse");
  auto at = [](const op::Ints& list, size_t k) { return k < list.size() ? list[k] : 0; };
  const Region& body = i.regions[0];
  std::vector<Cell> state, captured;
  for (size_t k = 0; k < states; ++k) state.push_back(cells[static_cast<size_t>(i.in[k])]);
  for (size_t k = states + inputs; k < i.in.size(); ++k)
    captured.push_back(cells[static_cast<size_t>(i.in[k])]);
  int64_t length = -1;
  std::vector<int64_t> axes;
  for (size_t k = 0; k < inputs; ++k) {
    const Cell& x = cells[static_cast<size_t>(i.in[states + k])];
    const int64_t rank = static_cast<int64_t>(x.dims.size());
    const int64_t axis = at(in_axes, k) < 0 ? at(in_axes, k) + rank : at(in_axes, k);
    if (axis < 0 || axis >= rank)
      return error(Code::kInvalidArgument, "scan: axis {} is outside rank {}", at(in_axes, k),
                   rank);
    axes.push_back(axis);
    const int64_t own = x.dims[static_cast<size_t>(axis)];
    if (length >= 0 && own != length)
      return error(Code::kInvalidArgument, "scan: inputs have {} and {} slices", length, own);
    length = own;
  }
  std::vector<std::vector<Cell>> scanned(body.outputs.size() - states);
  for (int64_t t = 0; t < length; ++t) {
    TRY(check(i));
    std::vector<Cell> arguments = state;
    for (size_t k = 0; k < inputs; ++k) {
      TRY_ASSIGN(Cell cell, slice(cells[static_cast<size_t>(i.in[states + k])], axes[k],
                                  at(in_reverse, k) ? length - 1 - t : t));
      arguments.push_back(std::move(cell));
    }
    arguments.insert(arguments.end(), captured.begin(), captured.end());
    TRY_ASSIGN(std::vector<Cell> results, region(body, std::move(arguments), bindings));
    for (size_t k = 0; k < states; ++k) state[k] = std::move(results[k]);
    for (size_t k = 0; k < scanned.size(); ++k)
      scanned[k].push_back(std::move(results[states + k]));
  }
  std::vector<Cell> results;
  for (Cell& cell : state) {
    TRY_ASSIGN(Cell own, owned(e.machine_.memory, cell));
    results.push_back(std::move(own));
  }
  for (size_t k = 0; k < scanned.size(); ++k) {
    TRY_ASSIGN(Cell cell,
               stack(i, scanned[k], body.slots[static_cast<size_t>(body.outputs[states + k])].type,
                     at(out_axes, k), at(out_reverse, k) != 0));
    results.push_back(std::move(cell));
  }
  return deliver(i, cells, std::move(results));
}

// Sequences among the mapped inputs are taken apart; each result is gathered into a sequence.
Status Executor::Run::map(const Instruction& i, std::vector<Cell>& cells,
                          const op::Bindings& bindings) {
  const size_t mapped = static_cast<size_t>(i.attrs.i("mapped"));
  auto cell_of = [&](size_t k) -> const Cell& { return cells[static_cast<size_t>(i.in[k])]; };
  if (!cell_of(0).value || !cell_of(0).value->is_sequence())
    return error(Code::kInvalidArgument, "sequence_map: input 0 is not a sequence");
  const size_t length = cell_of(0).value->sequence().items.size();
  std::vector<op::Sequence> sequences(i.out.size());
  const Region& body = i.regions[0];
  for (size_t k = 0; k < sequences.size(); ++k)
    sequences[k].element = body.slots[static_cast<size_t>(body.outputs[k])].type;
  for (size_t t = 0; t < length; ++t) {
    TRY(check(i));
    std::vector<Cell> inputs;
    for (size_t k = 0; k < i.in.size(); ++k) {
      const Cell& cell = cell_of(k);
      if (k >= mapped || !cell.value || !cell.value->is_sequence()) {
        inputs.push_back(cell);
        continue;
      }
      const op::Sequence& sequence = cell.value->sequence();
      if (sequence.items.size() != length)
        return error(Code::kInvalidArgument, "sequence_map: sequences of {} and {} items", length,
                     sequence.items.size());
      Cell item;
      if (sequence.items[t].is_tensor()) {
        TRY_ASSIGN(item, from_tensor(e.machine_.memory, sequence.items[t].tensor()));
      } else {
        item.value = sequence.items[t];
      }
      inputs.push_back(std::move(item));
    }
    TRY_ASSIGN(std::vector<Cell> results, region(body, std::move(inputs), bindings));
    for (size_t k = 0; k < sequences.size(); ++k)
      sequences[k].items.push_back(to_value(results[k]));
  }
  std::vector<Cell> results(sequences.size());
  for (size_t k = 0; k < results.size(); ++k) results[k].value = op::Value(std::move(sequences[k]));
  return deliver(i, cells, std::move(results));
}

namespace {

// Elements [0, count) from one packed place to another; bits, not values.
void copy_run(DType dtype, const std::byte* source, int64_t from, std::byte* target, int64_t to,
              int64_t count) {
  const int bits = bits_of(dtype);
  if (bits >= 8) {
    const size_t size = static_cast<size_t>(bits / 8);
    std::memcpy(target + static_cast<size_t>(to) * size, source + static_cast<size_t>(from) * size,
                static_cast<size_t>(count) * size);
    return;
  }
  for (int64_t k = 0; k < count; ++k)
    store_bits(dtype, target, to + k, load_bits(dtype, source, from + k));
}

int64_t product(const op::Dims& dims, size_t begin, size_t end) {
  int64_t p = 1;
  for (size_t k = begin; k < end; ++k) p *= dims[k];
  return p;
}

}  // namespace

Result<Cell> Executor::Run::slice(const Cell& cell, int64_t axis, int64_t at) {
  if (cell.value) return error(Code::kUnimplemented, "scan over strings");
  op::Dims dims = cell.dims;
  const int64_t outer = product(dims, 0, static_cast<size_t>(axis)),
                inner = product(dims, static_cast<size_t>(axis) + 1, dims.size());
  const int64_t length = dims[static_cast<size_t>(axis)];
  dims.erase(dims.begin() + axis);
  TRY_ASSIGN(Cell result, allocate(e.machine_.memory, cell.dtype, dims));
  for (int64_t o = 0; o < outer && inner > 0; ++o)
    copy_run(cell.dtype, cell.host, (o * length + at) * inner, result.host, o * inner, inner);
  return result;
}

Result<Cell> Executor::Run::stack(const Instruction& i, const std::vector<Cell>& slices,
                                  const op::Type& type, int64_t axis, bool reverse) {
  op::Dims dims;
  if (!slices.empty()) {
    dims = slices[0].dims;
  } else if (type.ranked()) {
    for (const op::Expr& d : *type.shape) dims.push_back(d.constant().value_or(0));
  }
  const op::Dims inner_dims = dims;
  if (axis < 0) axis += static_cast<int64_t>(dims.size()) + 1;
  dims.insert(dims.begin() + axis, static_cast<int64_t>(slices.size()));
  const int64_t outer = product(dims, 0, static_cast<size_t>(axis)),
                inner = product(dims, static_cast<size_t>(axis) + 1, dims.size());
  const int64_t length = static_cast<int64_t>(slices.size());
  if (type.dtype == DType::kString) {
    // Strings are stacked along the first axis only: a list of lists.
    std::vector<std::string> all;
    for (const Cell& c : slices)
      all.insert(all.end(), c.value->tensor().text().begin(), c.value->tensor().text().end());
    TRY_ASSIGN(op::Tensor t, op::Tensor::strings(dims, std::move(all)));
    return from_tensor(e.machine_.memory, t);
  }
  TRY_ASSIGN(Cell result, allocate(e.machine_.memory, type.dtype, dims));
  for (int64_t k = 0; k < length; ++k) {
    const Cell& c = slices[static_cast<size_t>(reverse ? length - 1 - k : k)];
    if (c.dims != inner_dims)
      return error(Code::kInvalidArgument, "{}: scanned values differ in shape: {} and {}",
                   label_of(i), op::to_string(inner_dims), op::to_string(c.dims));
    for (int64_t o = 0; o < outer && inner > 0; ++o)
      copy_run(type.dtype, c.host, o * inner, result.host, (o * length + k) * inner, inner);
  }
  return result;
}

}  // namespace tessera::runtime
