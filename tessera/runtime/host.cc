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

}  // namespace tessera::runtime
