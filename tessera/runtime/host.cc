// Instructions that the host evaluates.
#include <algorithm>
#include <cstring>

#include "tessera/base/element.h"
#include "tessera/kernels/host/evaluate.h"
#include "tessera/runtime/run.h"

namespace tessera::runtime {
namespace {

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

// The instruction's operator, and the steps behind it.
Result<std::vector<op::Value>> evaluate(const Instruction& i,
                                        std::span<const op::Value* const> inputs,
                                        const kernels::host::Options& limits) {
  if (i.steps.empty())
    return kernels::host::evaluate(*i.op, i.attrs, inputs, static_cast<int>(i.out.size()), limits);
  std::vector<op::Value> computed(i.steps.size() + 1);
  std::vector<const op::Value*> values(inputs.begin(), inputs.end());
  for (size_t s = 0; s <= i.steps.size(); ++s) {
    const plan::Step* step = s == 0 ? nullptr : &i.steps[s - 1];
    std::vector<const op::Value*> arguments(inputs.begin(), inputs.begin() + i.arity);
    if (step) {
      arguments.clear();
      for (int v : step->in) arguments.push_back(v < 0 ? nullptr : values[static_cast<size_t>(v)]);
    }
    TRY_ASSIGN(std::vector<op::Value> results,
               kernels::host::evaluate(step ? *step->op : *i.op, step ? step->attrs : i.attrs,
                                       arguments, 1, limits));
    computed[s] = std::move(results[0]);
    values.push_back(&computed[s]);
  }
  std::vector<op::Value> outputs;
  for (int v : i.results) outputs.push_back(*values[static_cast<size_t>(v)]);
  return outputs;
}

}  // namespace

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

Status Executor::Run::host(const Region& r, size_t n, std::vector<Cell>& cells) {
  const Instruction& i = r.body[n];
  std::vector<op::Value> values(i.in.size());
  std::vector<const op::Value*> inputs(i.in.size(), nullptr);
  for (size_t k = 0; k < i.in.size(); ++k) {
    if (i.in[k] == kNone) continue;
    TRY_ASSIGN(values[k], plain_value(cells[static_cast<size_t>(i.in[k])]));
    inputs[k] = &values[k];
  }
  kernels::host::Options limits;
  limits.memory_limit =
      Bytes(std::max<int64_t>(0, options.memory_limit.value - slabs.value - held.value));
  limits.deadline = options.deadline;
  TRY_ASSIGN(std::vector<op::Value> results, evaluate(i, inputs, limits));
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
    if (slot.storage == Storage::kSlab || slot.storage == Storage::kAlias) {
      if (auto ok = store_plain(t, cell); !ok)
        return error(std::move(ok).error().at(fmt::format("'{}'", slot.name)));
      continue;
    }
    if (!slot.layout.empty()) {
      TRY_ASSIGN(cell, allocate(e.machine_.memory, t.dtype(), t.dims()));
      cell.layout = slot.layout;
      TRY(store_plain(t, cell));
      TRY(hold(cell, i));
      continue;
    }
    TRY_ASSIGN(op::Value v, detached(results[k]));
    TRY_ASSIGN(cell, from_tensor(e.machine_.memory, v.tensor()));
    TRY(hold(cell, i));
  }
  return {};
}

}  // namespace tessera::runtime
