// Launch instructions: prepared once per sizes, then handed over as commands.
#include <algorithm>

#include "tessera/runtime/run.h"

namespace tessera::runtime {
namespace {

// Commands are handed over in batches, so that a deadline is noticed.
constexpr size_t kBatch = 64;
constexpr size_t kKept = 4;  // sizes per instruction

}  // namespace

Result<Entry> Machine::find(const op::LaunchSpec& spec) const {
  if (spec.binary) return binaries->find(*spec.binary, spec.entry);
  const auto entry = entries.find(spec.entry);
  if (entry == entries.end()) return error(Code::kInternal, "there is no entry '{}'", spec.entry);
  return Entry{&executable, entry->second};
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

Status Executor::Run::look(const Region& r, int id, std::vector<Cell>& cells,
                           const op::Bindings& bindings) {
  const Slot& slot = r.slots[static_cast<size_t>(id)];
  const Cell& root = cells[static_cast<size_t>(slot.alias)];
  Cell& cell = cells[static_cast<size_t>(id)];
  cell = root;
  TRY_ASSIGN(cell.dims, plan::dims_of(slot, bindings));
  cell.layout = slot.layout;
  cell.strides.clear();
  if (!slot.view) return {};
  TRY_ASSIGN(const int64_t offset, slot.view->offset.eval(bindings));
  int64_t last = 0;  // place of the last element, from the first
  bool empty = false;
  for (size_t a = 0; a < cell.dims.size(); ++a) {
    TRY_ASSIGN(const int64_t stride, slot.view->strides[a].eval(bindings));
    if (stride < 0 || (cell.dims[a] > 0 && stride > INT32_MAX * int64_t{4096}))
      return error(Code::kOutOfRange, "'{}': a stride of {}", slot.name, stride);
    cell.strides.push_back(stride);
    empty |= cell.dims[a] == 0;
    last += (cell.dims[a] - 1) * stride;
  }
  if (empty) return {};
  if (offset < 0 || offset + last >= root.count())
    return error(Code::kOutOfRange, "'{}' is elements {} to {} of {}", slot.name, offset,
                 offset + last, root.count());
  const int64_t size = bits_of(cell.dtype) / 8;
  cell.host += offset * size;
  if (!cell.slice.slab) return {};
  cell.slice.offset_bytes += static_cast<uint64_t>(offset * size);
  cell.slice.size_bytes = static_cast<uint64_t>((last + 1) * size);
  return {};
}

Status Executor::Run::place(const Region& r, RegionState& state, int id, std::vector<Cell>& cells,
                            const op::Bindings& bindings, const Instruction& i) {
  const Slot& slot = r.slots[static_cast<size_t>(id)];
  Cell& cell = cells[static_cast<size_t>(id)];
  if (slot.storage == Storage::kAlias) {
    // Whoever comes first makes room for all parts.
    const Slot& root = r.slots[static_cast<size_t>(slot.alias)];
    if (root.storage == Storage::kSlab || !cells[static_cast<size_t>(slot.alias)].filled())
      TRY(place(r, state, slot.alias, cells, bindings, i));
    return look(r, id, cells, bindings);
  }
  cell.layout = slot.layout;
  TRY_ASSIGN(op::Dims dims, plan::dims_of(slot, bindings));
  if (slot.storage == Storage::kHeap) {
    TRY_ASSIGN(cell, allocate(e.machine_.memory, slot.type.dtype, std::move(dims)));
    cell.layout = slot.layout;
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

Result<Executor::Prepared*> Executor::claimed(const Region& region, RegionState& state, size_t n,
                                              const op::Bindings& bindings) {
  const Instruction& i = region.body[n];
  std::vector<std::unique_ptr<Prepared>>& known = state.prepared[n];
  std::vector<int64_t> sizes = values_of(i.symbols, bindings);
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const auto& p) { return p->sizes == sizes; });
  if (found != known.end()) {
    std::rotate(known.begin(), found, found + 1);
    return known.front().get();
  }
  const Stopwatch watch(&bind_);
  auto p = std::make_unique<Prepared>();
  p->sizes = std::move(sizes);
  TRY_ASSIGN(p->problem, plan::problem_of(*plan_, region, i, bindings));
  for (const op::ClaimSource* source : machine_.sources) {
    p->claim = source->ask(p->problem, i.kernel);
    if (!p->claim.supported()) continue;
    p->source = source;
    break;
  }
  if (known.size() == kKept) known.pop_back();
  known.insert(known.begin(), std::move(p));
  return known.front().get();
}

Status Executor::Run::prepare(const Region& r, RegionState& state, size_t n, Prepared& p) {
  const Instruction& i = r.body[n];
  {
    const Stopwatch watch(&e.counters_.bind);
    TRY_ASSIGN(p.launches, p.source->prepare(p.problem, p.claim));
    for (const op::LaunchSpec& spec : p.launches) {
      auto entry = e.machine_.find(spec);
      if (!entry) return error(std::move(entry).error().at(fmt::format("kernel '{}'", i.kernel)));
      p.entries.push_back(*entry);
    }
  }
  // Packed forms depend on the weight and the attributes, never on the sizes of activations.
  const auto same_size = [](const op::Packing& a, const op::Packing& b) {
    return a.input == b.input && a.size == b.size;
  };
  for (const auto& other : state.prepared[n])
    if (other->ready && std::equal(other->claim.packed.begin(), other->claim.packed.end(),
                                   p.claim.packed.begin(), p.claim.packed.end(), same_size)) {
      p.packed = other->packed;
      p.ready = true;
      return {};
    }
  for (size_t k = 0; k < p.claim.packed.size(); ++k) {
    const int id = i.in[static_cast<size_t>(p.claim.packed[k].input)];
    const Slot& slot = r.slots[static_cast<size_t>(id)];
    const Slot& root = slot.alias == kNone ? slot : r.slots[static_cast<size_t>(slot.alias)];
    const op::Tensor& tensor = e.plan_->constants[static_cast<size_t>(root.constant)].tensor;
    TRY_ASSIGN(Cell cell, e.machine_.weights->packed(*p.source, p.problem, p.claim,
                                                     static_cast<int>(k), tensor));
    p.packed.push_back(std::move(cell));
  }
  p.ready = true;
  return {};
}

Status Executor::Run::launch(const Region& r, RegionState& state, size_t n,
                             std::vector<Cell>& cells, const op::Bindings& bindings) {
  const Instruction& i = r.body[n];
  TRY_ASSIGN(Prepared* const found, e.claimed(r, state, n, bindings));
  Prepared& p = *found;
  // Sizes that came up on the way may be another kernel's, or the reference's, business.
  if (!p.source) {
    TRY(flush());
    for (int id : i.out)
      if (id != kNone && r.slots[static_cast<size_t>(id)].storage == Storage::kHeap)
        held -= cells[static_cast<size_t>(id)].bytes();
    return host(r, n, cells);
  }
  if (!p.ready) TRY(prepare(r, state, n, p));
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
    commands.push_back(hal::launch({.executable = p.entries[k].executable,
                                    .entry = p.entries[k].index,
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

}  // namespace tessera::runtime
