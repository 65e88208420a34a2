// Gathers and scatters by index, cumulation, reinterpretation.
#include <algorithm>
#include <cstring>
#include <functional>

#include "tessera/ir/reference/loops.h"
#include "tessera/ir/reference/order.h"
#include "tessera/op/rules.h"

namespace tessera::ir::reference {
namespace {

// A copy that may be written.
Result<Tensor> copy_of(const Tensor& x) {
  TRY_ASSIGN(Tensor y, Tensor::make(x.dtype(), x.dims()));
  if (x.dtype() == DType::kString)
    y.mutable_text() = x.text();
  else if (x.bytes() > Bytes(0))
    std::memcpy(y.mutable_data(), x.data(), static_cast<size_t>(x.bytes().value));
  return y;
}

// Counts from the end where negative.
Result<int64_t> place(const Call& call, int64_t index, int64_t size) {
  if (index < -size || index >= size)
    return call.fail("index {} is outside [-{}, {})", index, size, size);
  return index < 0 ? index + size : index;
}

// The indices must lie within x on all axes but `axis`.
Status check_inside(const Call& call, const Dims& indices, const Dims& x, int axis) {
  for (size_t a = 0; a < x.size(); ++a)
    if (static_cast<int>(a) != axis && indices[a] > x[a])
      return call.fail("axis {} has {} indices for {} elements", a, indices[a], x[a]);
  return {};
}

Result<std::vector<Value>> gather_elements(const Call& call) {
  const Tensor &x = call.t(0), &indices = call.t(1);
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(int axis, op::normalize_axis(call.attrs().i("axis"), x.rank()));
  TRY(check_inside(call, indices.dims(), x.dims(), axis));
  const Dims strides = op::strides_of(x.dims());
  const size_t a = static_cast<size_t>(axis);
  for (Index at(indices.dims()); !at.done(); at.next()) {
    TRY_ASSIGN(int64_t i, place(call, indices.i64(at.linear()), x.dim(axis)));
    copy_element(x, at.dot(strides) + (i - at[a]) * strides[a], y, at.linear());
  }
  return one(std::move(y));
}

Result<std::vector<Value>> gather_nd(const Call& call) {
  const Tensor &x = call.t(0), &indices = call.t(1);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t batch = call.attrs().i("batch_dims"), length = indices.dim(indices.rank() - 1);
  const Dims strides = op::strides_of(x.dims());
  const Dims places(indices.dims().begin(), indices.dims().end() - 1);
  for (int64_t a = 0; a < batch; ++a)
    if (x.dims()[static_cast<size_t>(a)] != places[static_cast<size_t>(a)])
      return call.fail("batch axis {} is {} and {}", a, x.dims()[static_cast<size_t>(a)],
                       places[static_cast<size_t>(a)]);
  int64_t inner = 1;
  for (size_t a = static_cast<size_t>(batch + length); a < x.dims().size(); ++a)
    inner *= x.dims()[a];
  for (Index at(places); !at.done(); at.next()) {
    int64_t base = 0;
    for (int64_t a = 0; a < batch; ++a)
      base += at[static_cast<size_t>(a)] * strides[static_cast<size_t>(a)];
    for (int64_t k = 0; k < length; ++k) {
      const size_t a = static_cast<size_t>(batch + k);
      TRY_ASSIGN(int64_t i, place(call, indices.i64(at.linear() * length + k), x.dims()[a]));
      base += i * strides[a];
    }
    for (int64_t i = 0; i < inner; ++i) copy_element(x, base + i, y, at.linear() * inner + i);
  }
  return one(std::move(y));
}

// y[to] = reduction(y[to], x[from])
using Update = void (*)(const Tensor& x, int64_t from, Tensor& y, int64_t to);
template <class FloatFn, class IntFn>
void arithmetic(const Tensor& x, int64_t from, Tensor& y, int64_t to, FloatFn floats, IntFn ints) {
  if (is_float(x.dtype()))
    y.set_f64(to, floats(y.f64(to), x.f64(from)));
  else
    y.set_i64(to, static_cast<int64_t>(
                      ints(static_cast<uint64_t>(y.i64(to)), static_cast<uint64_t>(x.i64(from)))));
}
struct Reduction {
  std::string_view name;
  Update update;
};
constexpr Reduction kReductions[] = {
    {"none", copy_element},
    {"add", [](const Tensor& x, int64_t i, Tensor& y,
               int64_t j) { arithmetic(x, i, y, j, std::plus<double>(), std::plus<uint64_t>()); }},
    {"mul",
     [](const Tensor& x, int64_t i, Tensor& y, int64_t j) {
       arithmetic(x, i, y, j, std::multiplies<double>(), std::multiplies<uint64_t>());
     }},
    {"max",
     [](const Tensor& x, int64_t i, Tensor& y, int64_t j) {
       if (compare(x, i, y, j) > 0) copy_element(x, i, y, j);
     }},
    {"min",
     [](const Tensor& x, int64_t i, Tensor& y, int64_t j) {
       if (compare(x, i, y, j) < 0 || (is_float(x.dtype()) && std::isnan(x.f64(i))))
         copy_element(x, i, y, j);
     }},
};

Result<Update> reduction_of(const Call& call) {
  const std::string name = call.attrs().s("reduction", "none");
  const auto found = std::find_if(std::begin(kReductions), std::end(kReductions),
                                  [&](auto& r) { return r.name == name; });
  if (found == std::end(kReductions)) return call.fail("unknown reduction '{}'", name);
  const DType dtype = call.t(0).dtype();
  if (name != "none" && (dtype == DType::kString || is_complex(dtype)))
    return call.fail("{} is not defined for {}", name, name_of(dtype));
  return found->update;
}

Result<std::vector<Value>> scatter_elements(const Call& call) {
  const Tensor &x = call.t(0), &indices = call.t(1), &updates = call.t(2);
  TRY_ASSIGN(Update update, reduction_of(call));
  TRY_ASSIGN(int axis, op::normalize_axis(call.attrs().i("axis"), x.rank()));
  if (updates.dims() != indices.dims())
    return call.fail("updates are {}, indices {}", op::to_string(updates.dims()),
                     op::to_string(indices.dims()));
  TRY(check_inside(call, indices.dims(), x.dims(), axis));
  TRY_ASSIGN(Tensor y, copy_of(x));
  const Dims strides = op::strides_of(x.dims());
  const size_t a = static_cast<size_t>(axis);
  for (Index at(indices.dims()); !at.done(); at.next()) {
    TRY_ASSIGN(int64_t i, place(call, indices.i64(at.linear()), x.dim(axis)));
    update(updates, at.linear(), y, at.dot(strides) + (i - at[a]) * strides[a]);
  }
  return one(std::move(y));
}

Result<std::vector<Value>> scatter_nd(const Call& call) {
  const Tensor &x = call.t(0), &indices = call.t(1), &updates = call.t(2);
  TRY_ASSIGN(Update update, reduction_of(call));
  if (indices.rank() == 0) return call.fail("indices are a scalar");
  const int64_t length = indices.dim(indices.rank() - 1);
  if (length > x.rank()) return call.fail("places of {} axes in rank {}", length, x.rank());
  const Dims places(indices.dims().begin(), indices.dims().end() - 1),
      slice(x.dims().begin() + length, x.dims().end());
  Dims expected = places;
  expected.insert(expected.end(), slice.begin(), slice.end());
  if (updates.dims() != expected)
    return call.fail("updates are {}, need {}", op::to_string(updates.dims()),
                     op::to_string(expected));
  TRY_ASSIGN(Tensor y, copy_of(x));
  const Dims strides = op::strides_of(x.dims());
  TRY_ASSIGN(int64_t inner, op::element_count(slice));
  for (Index at(places); !at.done(); at.next()) {
    int64_t base = 0;
    for (int64_t k = 0; k < length; ++k) {
      TRY_ASSIGN(int64_t i, place(call, indices.i64(at.linear() * length + k),
                                  x.dims()[static_cast<size_t>(k)]));
      base += i * strides[static_cast<size_t>(k)];
    }
    for (int64_t i = 0; i < inner; ++i) update(updates, at.linear() * inner + i, y, base + i);
  }
  return one(std::move(y));
}

Result<std::vector<Value>> cumulative(const Call& call) {
  const Tensor& x = call.t(0);
  if (call.t(1).count() != 1)
    return call.fail("the axis has {} elements, need 1", call.t(1).count());
  const std::string kind = call.attrs().s("kind");
  if (kind != "sum" && kind != "prod") return call.fail("unknown kind '{}'", kind);
  if (is_complex(x.dtype()) || x.dtype() == DType::kString)
    return call.fail("is not defined for {}", name_of(x.dtype()));
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(int axis, op::normalize_axis(call.t(1).i64(0), x.rank()));
  const bool exclusive = call.attrs().i("exclusive") != 0, reverse = call.attrs().i("reverse") != 0,
             sum = kind == "sum";
  const int64_t n = x.dim(axis), step = op::strides_of(x.dims())[static_cast<size_t>(axis)];
  Dims starts = x.dims();
  starts[static_cast<size_t>(axis)] = std::min<int64_t>(n, 1);
  const Dims strides = op::strides_of(x.dims());
  for (Index at(starts); !at.done(); at.next()) {
    double wide = sum ? 0 : 1;
    uint64_t whole = sum ? 0 : 1;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = at.dot(strides) + (reverse ? n - 1 - k : k) * step;
      auto put = [&] {
        is_float(x.dtype()) ? y.set_f64(i, wide) : y.set_i64(i, static_cast<int64_t>(whole));
      };
      if (exclusive) put();
      wide = sum ? wide + x.f64(i) : wide * x.f64(i);
      whole =
          sum ? whole + static_cast<uint64_t>(x.i64(i)) : whole * static_cast<uint64_t>(x.i64(i));
      if (!exclusive) put();
    }
  }
  return one(std::move(y));
}

Result<std::vector<Value>> tile(const Call& call) {
  const Tensor& x = call.t(0);
  if (!call.out[0].is_static()) return call.fail("the repeats must be known");
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims strides = op::strides_of(x.dims());
  for (Index at(y.dims()); !at.done(); at.next()) {
    int64_t from = 0;
    for (size_t a = 0; a < strides.size(); ++a) from += at[a] % x.dims()[a] * strides[a];
    copy_element(x, from, y, at.linear());
  }
  return one(std::move(y));
}

Result<std::vector<Value>> bit_cast(const Call& call) {
  const Tensor& x = call.t(0);
  return one(Tensor::borrow(call.out[0].dtype, x.dims(), x.data(), x.storage()));
}

constexpr Row kRows[] = {
    {"bit_cast", bit_cast},
    {"cumulative", cumulative},
    {"gather_elements", gather_elements},
    {"gather_nd", gather_nd},
    {"scatter_elements", scatter_elements},
    {"scatter_nd", scatter_nd},
    {"tile", tile},
};

}  // namespace

std::span<const Row> index_rows() { return kRows; }

}  // namespace tessera::ir::reference
