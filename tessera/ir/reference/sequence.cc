// Sequences and optionals.
#include <algorithm>

#include "tessera/ir/reference/loops.h"
#include "tessera/op/rules.h"

namespace tessera::ir::reference {
namespace {

using op::Sequence;
using Values = Result<std::vector<Value>>;

Values yield(Value v) { return std::vector<Value>{std::move(v)}; }

// Input i, one integer in [-n, limit), counted from the end if negative.
Result<size_t> position(const Call& call, size_t i, int64_t n, int64_t limit) {
  const Tensor& t = call.t(i);
  if (t.count() != 1) return call.fail("a position is one integer, got {} elements", t.count());
  const int64_t p = t.i64(0);
  if (p < -n || p >= limit)
    return call.fail("position {} is outside [-{}, {}) of a sequence of {}", p, n, limit, n);
  return static_cast<size_t>(p < 0 ? p + n : p);
}

Values construct(const Call& call) {
  Sequence s{*call.out[0].element, {}};
  for (const Value* v : call.in) s.items.push_back(*v);
  return yield(std::move(s));
}

Values empty(const Call& call) { return yield(Sequence{*call.out[0].element, {}}); }

Values at(const Call& call) {
  const Sequence& s = call.in[0]->sequence();
  const int64_t n = static_cast<int64_t>(s.items.size());
  TRY_ASSIGN(size_t p, position(call, 1, n, n));
  return yield(s.items[p]);
}

Values insert(const Call& call) {
  Sequence s{*call.out[0].element, call.in[0]->sequence().items};
  const int64_t n = static_cast<int64_t>(s.items.size());
  size_t p = s.items.size();
  if (call.has(2)) {
    TRY_ASSIGN(p, position(call, 2, n, n + 1));
  }
  s.items.insert(s.items.begin() + static_cast<int64_t>(p), *call.in[1]);
  return yield(std::move(s));
}

Values erase(const Call& call) {
  Sequence s = call.in[0]->sequence();
  const int64_t n = static_cast<int64_t>(s.items.size());
  if (n == 0) return call.fail("the sequence is empty");
  size_t p = s.items.size() - 1;
  if (call.has(1)) {
    TRY_ASSIGN(p, position(call, 1, n, n));
  }
  s.items.erase(s.items.begin() + static_cast<int64_t>(p));
  return yield(std::move(s));
}

Values length(const Call& call) {
  return one(
      Tensor::scalar(DType::kI64, static_cast<int64_t>(call.in[0]->sequence().items.size())));
}

// Copies all of `from` into `to`, shifted by `offset` along `axis`; equal shapes otherwise.
void place(const Tensor& from, Tensor& to, const Dims& to_strides, int64_t offset) {
  for (Index i(from.dims()); !i.done(); i.next())
    copy_element(from, i.linear(), to, offset + i.dot(to_strides));
}

Values concat(const Call& call) {
  const Sequence& s = call.in[0]->sequence();
  if (s.items.empty()) return call.fail("the sequence is empty");
  const bool stack = call.attrs().i("new_axis") != 0;
  const Tensor& first = s.items[0].tensor();
  TRY_ASSIGN(int where, op::normalize_axis(call.attrs().i("axis"), first.rank() + stack));
  const size_t axis = static_cast<size_t>(where);
  Dims dims = first.dims();
  if (stack) dims.insert(dims.begin() + where, 0);
  dims[axis] = 0;
  for (size_t i = 0; i < s.items.size(); ++i) {
    const Tensor& t = s.items[i].tensor();
    bool fits = t.dtype() == first.dtype() && t.rank() == first.rank();
    for (size_t a = 0; fits && a < t.dims().size(); ++a)
      fits = t.dims()[a] == first.dims()[a] || (!stack && a == axis);
    if (!fits)
      return call.fail("item {} is {}, item 0 is {}: they do not join along axis {}", i,
                       t.type().str(), first.type().str(), axis);
    if (__builtin_add_overflow(dims[axis], stack ? 1 : t.dims()[axis], &dims[axis]))
      return call.fail("the result is beyond any memory");
  }
  TRY_ASSIGN(Tensor y, Tensor::make(first.dtype(), dims));
  Dims strides = op::strides_of(dims);
  const int64_t step = strides[axis];
  if (stack) strides.erase(strides.begin() + where);
  int64_t offset = 0;
  for (const Value& item : s.items) {
    place(item.tensor(), y, strides, offset);
    offset += step * (stack ? 1 : item.tensor().dims()[axis]);
  }
  return one(std::move(y));
}

Values split(const Call& call) {
  const Tensor& x = call.t(0);
  TRY_ASSIGN(int where, op::normalize_axis(call.attrs().i("axis"), x.rank()));
  const size_t axis = static_cast<size_t>(where);
  const int64_t size = x.dims()[axis];
  std::vector<int64_t> parts;
  if (call.has(1) && call.t(1).rank() == 1) {
    int64_t rest = size;
    parts = call.t(1).to_i64s();
    for (int64_t p : parts) {
      if (p < 0 || p > rest)
        return call.fail("part of size {} does not fit what is left of axis {}: {}", p, axis, rest);
      rest -= p;
    }
    if (rest != 0) return call.fail("the parts leave {} of {} of axis {}", rest, size, axis);
  } else {
    const int64_t part = call.has(1) ? call.t(1).i64(0) : 1;
    if (part < 1) return call.fail("part size is {}, need at least 1", part);
    for (int64_t begin = 0; begin < size; begin += std::min(part, size - begin))
      parts.push_back(std::min(part, size - begin));
  }
  const bool drop = !call.has(1) && !call.attrs().i("keepdims", 1);
  const Dims strides = op::strides_of(x.dims());
  Sequence s{*call.out[0].element, {}};
  int64_t begin = 0;
  for (int64_t part : parts) {
    Dims dims = x.dims();
    dims[axis] = part;
    TRY_ASSIGN(Tensor y, Tensor::make(x.dtype(), dims));
    for (Index i(dims); !i.done(); i.next())
      copy_element(x, begin * strides[axis] + i.dot(strides), y, i.linear());
    if (drop) {
      dims.erase(dims.begin() + where);
      y = y.reshaped(dims);
    }
    s.items.push_back(std::move(y));
    begin += part;
  }
  return yield(std::move(s));
}

Values map(const Call& call) {
  const Graph& body = call.node.bodies[0];
  const size_t mapped = static_cast<size_t>(call.attrs().i("mapped"));
  const size_t n = call.in[0]->sequence().items.size();
  for (size_t i = 1; i < mapped; ++i) {
    if (!call.has(i)) return call.fail("input {} is missing", i);
    if (call.in[i]->is_sequence() && call.in[i]->sequence().items.size() != n)
      return call.fail("sequences of {} and {} (input {}) items", n,
                       call.in[i]->sequence().items.size(), i);
  }
  std::vector<Sequence> results;
  for (const op::Type& t : call.out) results.push_back({*t.element, {}});
  Options rest = call.options;
  for (size_t k = 0; k < n; ++k) {
    std::vector<Value> inputs;
    for (size_t i = 0; i < call.in.size(); ++i) {
      if (!call.in[i]) continue;
      const bool apart = i < mapped && call.in[i]->is_sequence();
      inputs.push_back(apart ? call.in[i]->sequence().items[k] : *call.in[i]);
    }
    TRY_ASSIGN(std::vector<Value> outputs, run(body, inputs, rest));
    for (size_t i = 0; i < results.size(); ++i) {
      rest.memory_limit -= outputs[i].bytes();
      results[i].items.push_back(std::move(outputs[i]));
    }
    if (rest.memory_limit.value < 0)
      return error(Code::kResourceExhausted, "{}: the results exceed the memory limit", call.op());
  }
  return std::vector<Value>(std::make_move_iterator(results.begin()),
                            std::make_move_iterator(results.end()));
}

Values optional(const Call& call) {
  op::Optional o{*call.out[0].element, nullptr};
  if (call.has(0)) o.value = std::make_shared<const Value>(*call.in[0]);
  return yield(std::move(o));
}

Values has(const Call& call) {
  const bool there = call.has(0) && (!call.in[0]->is_optional() || call.in[0]->optional().value);
  return one(Tensor::scalar(DType::kBool, int64_t{there}));
}

Values get(const Call& call) {
  if (!call.in[0]->is_optional()) return yield(*call.in[0]);
  if (!call.in[0]->optional().value) return call.fail("the optional is empty");
  return yield(*call.in[0]->optional().value);
}

constexpr Row kRows[] = {
    {"sequence_construct", construct},
    {"sequence_empty", empty},
    {"sequence_at", at},
    {"sequence_insert", insert},
    {"sequence_erase", erase},
    {"sequence_length", length},
    {"sequence_concat", concat},
    {"sequence_split", split},
    {"sequence_map", map},
    {"optional", optional},
    {"optional_has", has},
    {"optional_get", get},
};

}  // namespace

std::span<const Row> sequence_rows() { return kRows; }

}  // namespace tessera::ir::reference
