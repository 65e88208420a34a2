// Control flow: regions entered by a condition, a count, or the slices of a value.
#include <cstring>

#include "tessera/base/element.h"
#include "tessera/runtime/run.h"

namespace tessera::runtime {
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

Status Executor::Run::loop(const Instruction& i, std::vector<Cell>& cells,
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
  return deliver(i, cells, std::move(results));
}

Status Executor::Run::scan(const Instruction& i, std::vector<Cell>& cells,
                           const op::Bindings& bindings) {
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
