// if, loop, scan. Loops stop at the limits of the options.
#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

std::vector<Value> captured(const Call& call, size_t from) {
  std::vector<Value> values;
  for (size_t i = from; i < call.in.size(); ++i)
    if (call.in[i]) values.push_back(*call.in[i]);
  return values;
}

Result<std::vector<Value>> if_(const Call& call) {
  const Tensor& condition = call.t(0);
  if (condition.count() != 1)
    return call.fail("the condition has {} elements, need 1", condition.count());
  return run(call.node.bodies[condition.i64(0) ? 0 : 1], captured(call, 1), call.options);
}

Result<std::vector<Value>> fused(const Call& call) {
  return run(call.node.bodies[0], captured(call, 0), call.options);
}

Status check_deadline(const Call& call) {
  if (call.options.deadline && std::chrono::steady_clock::now() > *call.options.deadline)
    return error(Code::kDeadlineExceeded, "{}: the time limit has passed", call.op());
  return {};
}

// Stacks equal tensors along a new axis. @pre !slices.empty() or `type` is ranked
Result<Tensor> stack(const Call& call, std::vector<Value>& slices, const op::Type& type,
                     int64_t axis, bool reverse) {
  Dims dims;
  if (!slices.empty()) {
    dims = slices[0].tensor().dims();
  } else if (type.ranked()) {
    for (const op::Expr& d : *type.shape) dims.push_back(d.constant().value_or(0));
  }
  if (axis < 0) axis += static_cast<int64_t>(dims.size()) + 1;
  const Dims inner = dims;
  dims.insert(dims.begin() + axis, static_cast<int64_t>(slices.size()));
  TRY_ASSIGN(Tensor y, Tensor::make(type.dtype, dims));
  Dims strides = op::strides_of(dims);
  const int64_t step = strides[static_cast<size_t>(axis)];
  strides.erase(strides.begin() + axis);
  for (size_t k = 0; k < slices.size(); ++k) {
    const Tensor& slice = slices[k].tensor();
    if (slice.dims() != inner)
      return call.fail("scanned values differ in shape: {} and {}", op::to_string(inner),
                       op::to_string(slice.dims()));
    const int64_t place = static_cast<int64_t>(reverse ? slices.size() - 1 - k : k);
    for (Index at(inner); !at.done(); at.next())
      copy_element(slice, at.linear(), y, place * step + at.dot(strides));
  }
  return y;
}

Result<std::vector<Value>> loop(const Call& call) {
  const Graph& body = call.node.bodies[0];
  const size_t carried_count = static_cast<size_t>(call.attrs().i("carried"));
  const int64_t trips = call.has(0) ? call.t(0).i64(0) : INT64_MAX;
  bool go = !call.has(1) || call.t(1).i64(0) != 0;
  std::vector<Value> carried;
  for (size_t i = 0; i < carried_count; ++i) carried.push_back(*call.in[i + 2]);
  const std::vector<Value> outer = captured(call, 2 + carried_count);
  std::vector<std::vector<Value>> scanned(body.outputs.size() - 1 - carried_count);
  Bytes held;
  for (int64_t i = 0; i < trips && go; ++i) {
    TRY(check_deadline(call));
    std::vector<Value> inputs{Tensor::scalar(DType::kI64, i),
                              Tensor::scalar(DType::kBool, int64_t{1})};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    inputs.insert(inputs.end(), outer.begin(), outer.end());
    Options rest = call.options;
    rest.memory_limit -= held;
    TRY_ASSIGN(std::vector<Value> results, run(body, inputs, rest));
    if (!results[0].is_tensor() || results[0].tensor().count() != 1)
      return call.fail("the condition must be one bool");
    go = results[0].tensor().i64(0) != 0;
    std::move(results.begin() + 1, results.begin() + 1 + static_cast<int64_t>(carried_count),
              carried.begin());
    for (size_t k = 0; k < scanned.size(); ++k) {
      scanned[k].push_back(std::move(results[1 + carried_count + k]));
      held += scanned[k].back().bytes();
      if (held > call.options.memory_limit)
        return error(Code::kResourceExhausted,
                     "{}: {} collected after {} trips exceed the memory limit", call.op(),
                     to_string(held), i + 1);
    }
  }
  std::vector<Value> outputs = std::move(carried);
  for (size_t k = 0; k < scanned.size(); ++k) {
    TRY_ASSIGN(Tensor y,
               stack(call, scanned[k], body.type(body.outputs[1 + carried_count + k]), 0, false));
    outputs.push_back(std::move(y));
  }
  return outputs;
}

Result<Tensor> slice_at(const Tensor& x, int64_t axis, int64_t at) {
  Dims dims = x.dims();
  Dims strides = op::strides_of(dims);
  const int64_t base = strides[static_cast<size_t>(axis)] * at;
  dims.erase(dims.begin() + axis);
  strides.erase(strides.begin() + axis);
  TRY_ASSIGN(Tensor y, Tensor::make(x.dtype(), dims));
  for (Index index(dims); !index.done(); index.next())
    copy_element(x, base + index.dot(strides), y, index.linear());
  return y;
}

Result<std::vector<Value>> scan(const Call& call) {
  const Graph& body = call.node.bodies[0];
  const size_t states = static_cast<size_t>(call.attrs().i("states")),
               inputs = static_cast<size_t>(call.attrs().i("scanned"));
  const op::Ints in_axes = call.attrs().ints("input_axes"),
                 out_axes = call.attrs().ints("output_axes");
  const op::Ints in_reverse = call.attrs().ints("input_reverse"),
                 out_reverse = call.attrs().ints("output_reverse");
  auto at = [](const op::Ints& list, size_t i) { return i < list.size() ? list[i] : 0; };
  std::vector<Value> state;
  for (size_t i = 0; i < states; ++i) state.push_back(*call.in[i]);
  const std::vector<Value> outer = captured(call, states + inputs);
  int64_t length = -1;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < inputs; ++i) {
    const Tensor& x = call.t(states + i);
    const int64_t axis = at(in_axes, i) < 0 ? at(in_axes, i) + x.rank() : at(in_axes, i);
    if (axis < 0 || axis >= x.rank())
      return call.fail("axis {} is outside rank {}", at(in_axes, i), x.rank());
    axes.push_back(axis);
    if (length >= 0 && x.dim(static_cast<int>(axis)) != length)
      return call.fail("scanned inputs have {} and {} slices", length,
                       x.dim(static_cast<int>(axis)));
    length = x.dim(static_cast<int>(axis));
  }
  std::vector<std::vector<Value>> scanned(body.outputs.size() - states);
  for (int64_t k = 0; k < length; ++k) {
    TRY(check_deadline(call));
    std::vector<Value> arguments = state;
    for (size_t i = 0; i < inputs; ++i) {
      TRY_ASSIGN(Tensor slice,
                 slice_at(call.t(states + i), axes[i], at(in_reverse, i) ? length - 1 - k : k));
      arguments.push_back(std::move(slice));
    }
    arguments.insert(arguments.end(), outer.begin(), outer.end());
    TRY_ASSIGN(std::vector<Value> results, run(body, arguments, call.options));
    std::move(results.begin(), results.begin() + static_cast<int64_t>(states), state.begin());
    for (size_t i = 0; i < scanned.size(); ++i)
      scanned[i].push_back(std::move(results[states + i]));
  }
  std::vector<Value> outputs = std::move(state);
  for (size_t i = 0; i < scanned.size(); ++i) {
    TRY_ASSIGN(Tensor y, stack(call, scanned[i], body.type(body.outputs[states + i]),
                               at(out_axes, i), at(out_reverse, i) != 0));
    outputs.push_back(std::move(y));
  }
  return outputs;
}

constexpr Row kRows[] = {{"if", if_}, {"loop", loop}, {"scan", scan}, {"fused", fused}};

}  // namespace

std::span<const Row> control_rows() { return kRows; }

}  // namespace tessera::ir::reference
