// Primitives that pick or join elements.
#include <algorithm>

#include "tessera/ir/reference/loops.h"
#include "tessera/op/rules.h"

namespace tessera::ir::reference {
namespace {

Result<std::vector<Value>> slice(const Call& call) {
  const Tensor& x = call.t(0);
  if (!call.out[0].is_static()) return call.fail("the bounds must be known");
  TRY_ASSIGN(Tensor y, call.make(0));
  const std::vector<int64_t> starts = call.t(1).to_i64s();
  Dims strides = op::strides_of(x.dims());
  int64_t base = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    TRY_ASSIGN(int axis, op::normalize_axis(call.has(3) ? call.t(3).i64(static_cast<int64_t>(i))
                                                        : static_cast<int64_t>(i),
                                            x.rank()));
    const int64_t step = call.has(4) ? call.t(4).i64(static_cast<int64_t>(i)) : 1, n = x.dim(axis);
    const int64_t start = starts[i] < 0 ? starts[i] + n : starts[i];
    int64_t& stride = strides[static_cast<size_t>(axis)];
    base += stride * std::clamp<int64_t>(start, 0, std::max<int64_t>(0, step > 0 ? n : n - 1));
    // A step beyond the axis is never taken.
    stride *= std::clamp(step, -n - 1, n + 1);
  }
  for (Index at(y.dims()); !at.done(); at.next())
    copy_element(x, base + at.dot(strides), y, at.linear());
  return one(std::move(y));
}

Result<std::vector<Value>> concat(const Call& call) {
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(int axis, op::normalize_axis(call.attrs().i("axis"), y.rank()));
  const Dims strides = op::strides_of(y.dims());
  int64_t base = 0;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const Tensor& x = call.t(i);
    for (Index at(x.dims()); !at.done(); at.next())
      copy_element(x, at.linear(), y, base + at.dot(strides));
    base += x.dim(axis) * strides[static_cast<size_t>(axis)];
  }
  return one(std::move(y));
}

// The source of index `i` on an axis of n elements (n > 0), by mode.
int64_t mirrored(int64_t i, int64_t n) {
  const int64_t period = std::max<int64_t>(1, 2 * (n - 1));
  const int64_t at = ((i % period) + period) % period;
  return at < n ? at : period - at;
}
int64_t nearest(int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); }
int64_t wrapped(int64_t i, int64_t n) { return ((i % n) + n) % n; }

struct PadMode {
  std::string_view name;
  int64_t (*source)(int64_t i, int64_t n);  // null: outside there is the constant
};
constexpr PadMode kPadModes[] = {
    {"constant", nullptr}, {"reflect", mirrored}, {"edge", nearest}, {"wrap", wrapped}};

Result<std::vector<Value>> pad(const Call& call) {
  const Tensor& x = call.t(0);
  const std::string name = call.attrs().s("mode", "constant");
  auto mode = std::find_if(std::begin(kPadModes), std::end(kPadModes),
                           [&](auto& m) { return m.name == name; });
  if (mode == std::end(kPadModes)) return call.fail("unknown mode '{}'", name);
  if (!call.out[0].is_static()) return call.fail("the pads must be known");
  TRY_ASSIGN(Tensor y, call.make(0));
  const std::vector<int64_t> pads = call.t(1).to_i64s();
  Dims begin(x.dims().size(), 0);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    TRY_ASSIGN(int axis, op::normalize_axis(call.has(3) ? call.t(3).i64(static_cast<int64_t>(i))
                                                        : static_cast<int64_t>(i),
                                            x.rank()));
    begin[static_cast<size_t>(axis)] += pads[i];
  }
  if (call.has(2) && (call.t(2).count() != 1 || call.t(2).dtype() != x.dtype()))
    return call.fail("the value is {}, need one {}", call.t(2).type().str(), name_of(x.dtype()));
  const Dims strides = op::strides_of(x.dims());
  for (Index at(y.dims()); !at.done(); at.next()) {
    int64_t from = 0;
    bool inside = true;
    for (size_t a = 0; a < begin.size(); ++a) {
      const int64_t n = x.dims()[a];
      int64_t i = at[a] - begin[a];
      if (mode->source) {
        if (n == 0) return call.fail("axis {} is empty: there is nothing to pad with", a);
        i = mode->source(i, n);
      }
      inside = inside && i >= 0 && i < n;
      from += i * strides[a];
    }
    if (inside)
      copy_element(x, from, y, at.linear());
    else if (call.has(2))
      copy_element(call.t(2), 0, y, at.linear());
  }
  return one(std::move(y));
}

Result<std::vector<Value>> gather(const Call& call) {
  const Tensor &x = call.t(0), &indices = call.t(1);
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(int axis, op::normalize_axis(call.attrs().i("axis"), x.rank()));
  const int64_t n = x.dim(axis), inner = op::strides_of(x.dims())[static_cast<size_t>(axis)];
  int64_t outer = 1, to = 0;
  for (int a = 0; a < axis; ++a) outer *= x.dim(a);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < indices.count(); ++k) {
      const int64_t given = indices.i64(k), at = given < 0 ? given + n : given;
      if (at < 0 || at >= n) return call.fail("index {} is outside [-{}, {})", given, n, n);
      for (int64_t i = 0; i < inner; ++i) copy_element(x, (o * n + at) * inner + i, y, to++);
    }
  return one(std::move(y));
}

Result<std::vector<Value>> range(const Call& call) {
  const Tensor &start = call.t(0), &limit = call.t(1), &delta = call.t(2);
  if (start.count() != 1 || limit.count() != 1 || delta.count() != 1)
    return call.fail("needs scalars");
  TRY_ASSIGN(Tensor y, call.make(0));
  for (int64_t i = 0; i < y.count(); ++i) {
    if (is_float(y.dtype()))
      y.set_f64(i, start.f64(0) + static_cast<double>(i) * delta.f64(0));
    else
      y.set_i64(i, start.i64(0) + i * delta.i64(0));
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {
    {"concat", concat}, {"gather", gather}, {"pad", pad}, {"range", range}, {"slice", slice},
};

}  // namespace

std::span<const Row> move_rows() { return kRows; }

}  // namespace tessera::ir::reference
