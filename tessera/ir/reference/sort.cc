// Operators that order elements or search them.
#include <algorithm>
#include <numeric>

#include "tessera/ir/reference/loops.h"
#include "tessera/ir/reference/order.h"
#include "tessera/op/rules.h"

namespace tessera::ir::reference {
namespace {

// One line of x along an axis: first element, step, length.
struct Lines {
  Dims starts, strides;
  int64_t n = 0, step = 0;
};
Lines lines_of(const Tensor& x, int axis) {
  Lines lines{x.dims(), op::strides_of(x.dims()), x.dim(axis), 0};
  lines.step = lines.strides[static_cast<size_t>(axis)];
  lines.starts[static_cast<size_t>(axis)] = 1;
  return lines;
}

Status check_ordered(const Call& call, const Tensor& x) {
  if (is_complex(x.dtype())) return call.fail("is not defined for {}", name_of(x.dtype()));
  return {};
}

Result<std::vector<Value>> top_k(const Call& call) {
  const Tensor& x = call.t(0);
  TRY(check_ordered(call, x));
  if (!call.out[0].is_static()) return call.fail("k must be known");
  TRY_ASSIGN(Tensor values, call.make(0));
  TRY_ASSIGN(Tensor indices, call.make(1));
  TRY_ASSIGN(int axis, op::normalize_axis(call.attrs().i("axis", -1), x.rank()));
  const bool largest = call.attrs().i("largest", 1) != 0;
  const Lines lines = lines_of(x, axis);
  const int64_t k = values.dim(axis);
  const Dims out = op::strides_of(values.dims());
  std::vector<int64_t> order(static_cast<size_t>(lines.n));
  for (Index at(lines.starts); !at.done() && k > 0; at.next()) {
    const int64_t base = at.dot(lines.strides);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      const int c = compare(x, base + a * lines.step, x, base + b * lines.step);
      return c != 0 ? (c > 0) == largest : a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t to = at.dot(out) + i * out[static_cast<size_t>(axis)];
      copy_element(x, base + order[static_cast<size_t>(i)] * lines.step, values, to);
      indices.set_i64(to, order[static_cast<size_t>(i)]);
    }
  }
  return std::vector<Value>{Value(std::move(values)), Value(std::move(indices))};
}

Result<std::vector<Value>> arg(const Call& call) {
  const Tensor& x = call.t(0);
  TRY(check_ordered(call, x));
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(int axis, op::normalize_axis(call.attrs().i("axis"), x.rank()));
  const bool largest = call.op() == "argmax", last = call.attrs().i("select_last") != 0,
             floats = is_float(x.dtype());
  const Lines lines = lines_of(x, axis);
  int64_t to = 0;
  for (Index at(lines.starts); !at.done(); at.next()) {
    const int64_t base = at.dot(lines.strides);
    int64_t best = 0;
    for (int64_t i = 1; i < lines.n; ++i) {
      const int64_t a = base + i * lines.step, b = base + best * lines.step;
      const bool nan_a = floats && std::isnan(x.f64(a)), nan_b = floats && std::isnan(x.f64(b));
      const int c =
          nan_a || nan_b ? int{nan_a} - int{nan_b} : compare(x, a, x, b) * (largest ? 1 : -1);
      if (c > 0 || (c == 0 && last)) best = i;
    }
    y.set_i64(to++, best);
  }
  return one(std::move(y));
}

Result<std::vector<Value>> non_zero(const Call& call) {
  const Tensor& x = call.t(0);
  std::vector<int64_t> found;
  int64_t count = 0;
  for (Index at(x.dims()); !at.done(); at.next()) {
    const bool zero = x.dtype() == DType::kString
                          ? x.text()[static_cast<size_t>(at.linear())].empty()
                      : is_float(x.dtype()) ? x.f64(at.linear()) == 0
                                            : x.i64(at.linear()) == 0;
    if (zero) continue;
    found.insert(found.end(), (*at).begin(), (*at).end());
    ++count;
  }
  TRY_ASSIGN(Tensor y, Tensor::make(DType::kI64, {x.rank(), count}));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t a = 0; a < x.rank(); ++a)
      y.set_i64(a * count + i, found[static_cast<size_t>(i * x.rank() + a)]);
  return one(std::move(y));
}

// Slices along an axis are compared element by element in row-major order of the other axes.
Result<std::vector<Value>> unique(const Call& call) {
  TRY(check_ordered(call, call.t(0)));
  const bool flat = !call.attrs().has("axis"), sorted = call.attrs().i("sorted", 1) != 0;
  const Tensor x = flat ? call.t(0).reshaped({call.t(0).count()}) : call.t(0);
  TRY_ASSIGN(int axis, op::normalize_axis(flat ? 0 : call.attrs().i("axis"), x.rank()));
  const int64_t n = x.dim(axis);
  Dims inner = x.dims(), strides = op::strides_of(x.dims());
  const int64_t step = strides[static_cast<size_t>(axis)];
  inner.erase(inner.begin() + axis);
  strides.erase(strides.begin() + axis);
  auto compare_slices = [&](int64_t a, int64_t b) {
    for (Index at(inner); !at.done(); at.next())
      if (const int c = compare(x, at.dot(strides) + a * step, x, at.dot(strides) + b * step))
        return c;
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(n)), group(static_cast<size_t>(n)), first, counts;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare_slices(a, b) < 0; });
  for (size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || compare_slices(order[k - 1], order[k]) != 0) {
      first.push_back(order[k]);
      counts.push_back(0);
    }
    group[static_cast<size_t>(order[k])] = static_cast<int64_t>(first.size()) - 1;
    ++counts.back();
  }
  std::vector<int64_t> places(first.size()), rank(first.size());
  std::iota(places.begin(), places.end(), 0);
  if (!sorted)
    std::sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
      return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(first.size());
  TRY_ASSIGN(Tensor values, Tensor::make(x.dtype(), dims));
  Dims out = op::strides_of(dims);
  const int64_t out_step = out[static_cast<size_t>(axis)];
  out.erase(out.begin() + axis);
  std::vector<int64_t> first_in_order, counts_in_order, inverse;
  for (size_t k = 0; k < places.size(); ++k) {
    const size_t from = static_cast<size_t>(places[k]);
    rank[from] = static_cast<int64_t>(k);
    first_in_order.push_back(first[from]);
    counts_in_order.push_back(counts[from]);
    for (Index at(inner); !at.done(); at.next())
      copy_element(x, at.dot(strides) + first[from] * step, values,
                   at.dot(out) + static_cast<int64_t>(k) * out_step);
  }
  for (int64_t g : group) inverse.push_back(rank[static_cast<size_t>(g)]);
  return std::vector<Value>{Value(std::move(values)), Value(Tensor::of_i64(first_in_order)),
                            Value(Tensor::of_i64(inverse)), Value(Tensor::of_i64(counts_in_order))};
}

constexpr Row kRows[] = {
    {"argmax", arg}, {"argmin", arg}, {"non_zero", non_zero}, {"top_k", top_k}, {"unique", unique},
};

}  // namespace

std::span<const Row> sort_rows() { return kRows; }

}  // namespace tessera::ir::reference
