#include "tessera/passes/constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/op/index.h"

namespace tessera::passes {
namespace {

// Rows of `inner` elements: row r belongs to place r % factors.size().
template <class T>
bool scale_rows(const op::Tensor& w, op::Tensor& result, std::span<const double> factors,
                int64_t inner) {
  constexpr T kMost = std::numeric_limits<T>::max();
  const T* from = w.as<T>().data();
  T* to = result.mutable_as<T>().data();
  // Without branches, for the vectorizer: weights are large.
  int overflows = 0;
  for (int64_t row = 0, rows = w.count() / inner; row < rows; ++row, from += inner, to += inner) {
    const double f = factors[static_cast<size_t>(row) % factors.size()];
    for (int64_t i = 0; i < inner; ++i) {
      to[i] = static_cast<T>(static_cast<double>(from[i]) * f);
      overflows |= static_cast<int>(!(std::abs(to[i]) <= kMost)) &
                   static_cast<int>(std::abs(from[i]) <= kMost);
    }
  }
  return overflows == 0;
}

bool scale_any(const op::Tensor& w, op::Tensor& result, std::span<const double> factors,
               int64_t inner) {
  bool fine = true;
  for (int64_t i = 0; i < w.count(); ++i) {
    const double x = w.f64(i);
    result.set_f64(i, x * factors[static_cast<size_t>(i / inner) % factors.size()]);
    fine &= std::isfinite(result.f64(i)) || !std::isfinite(x);
  }
  return fine;
}

// fn of each pair of elements, broadcast, of at most `limit` bytes.
std::optional<op::Tensor> broadcast_pairs(const op::Tensor& a, const op::Tensor& b, int64_t limit,
                                          const std::function<double(double, double)>& fn) {
  op::Dims dims(static_cast<size_t>(std::max(a.rank(), b.rank())));
  for (size_t i = 1; i <= dims.size(); ++i) {
    auto size = [i](const op::Tensor& t) {
      return static_cast<int>(i) <= t.rank() ? t.dim(t.rank() - static_cast<int>(i)) : 1;
    };
    if (size(a) != size(b) && size(a) != 1 && size(b) != 1) return std::nullopt;
    dims[dims.size() - i] = size(a) == 1 ? size(b) : size(a);
  }
  const auto count = op::element_count(dims);
  if (!count || packed_bytes(a.dtype(), *count) > limit) return std::nullopt;
  auto result = op::Tensor::make(a.dtype(), dims);
  if (!result) return std::nullopt;
  const op::Dims sa = op::broadcast_strides(a.dims(), dims),
                 sb = op::broadcast_strides(b.dims(), dims);
  for (op::Index at(dims); !at.done(); at.next())
    result->set_f64(at.linear(), fn(a.f64(at.dot(sa)), b.f64(at.dot(sb))));
  return *std::move(result);
}

}  // namespace

std::optional<std::vector<double>> along_axis(const op::Tensor& c, int rank, int axis,
                                              int64_t size) {
  if (c.rank() > rank) return std::nullopt;
  const int own = axis - (rank - c.rank());  // the axis of c that meets `axis`
  const int64_t count = own < 0 ? 1 : c.dim(own);
  if (c.count() != count || (count != 1 && count != size)) return std::nullopt;
  std::vector<double> values(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i)] = c.f64(count == 1 ? 0 : i);
  return values;
}

Result<op::Tensor> broadcast_along(DType dtype, std::span<const double> values, int rank,
                                   int axis) {
  op::Dims dims(static_cast<size_t>(rank - axis), 1);
  dims[0] = static_cast<int64_t>(values.size());
  TRY_ASSIGN(op::Tensor t, op::Tensor::make(dtype, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) t.set_f64(static_cast<int64_t>(i), values[i]);
  return t;
}

std::optional<op::Tensor> scaled(const op::Tensor& w, int axis, std::span<const double> factors) {
  auto result = op::Tensor::make(w.dtype(), w.dims());
  if (!result || w.count() == 0) return std::nullopt;
  const int64_t inner = op::strides_of(w.dims())[static_cast<size_t>(axis)];
  const bool fine = w.dtype() == DType::kF32   ? scale_rows<float>(w, *result, factors, inner)
                    : w.dtype() == DType::kF64 ? scale_rows<double>(w, *result, factors, inner)
                                               : scale_any(w, *result, factors, inner);
  return fine ? std::optional(*std::move(result)) : std::nullopt;
}

std::optional<op::Tensor> combined(const op::Tensor& a, const op::Tensor& b,
                                   const std::function<double(double, double)>& fn) {
  const int64_t limit = std::max(a.bytes().value, b.bytes().value);
  auto result = broadcast_pairs(a, b, limit, fn);
  if (!result) return std::nullopt;
  for (int64_t i = 0; i < result->count(); ++i)
    if (!std::isfinite(result->f64(i))) return std::nullopt;
  return result;
}

std::optional<op::Tensor> broadcast_sum(const op::Tensor& a, const op::Tensor& b, int64_t limit) {
  return broadcast_pairs(a, b, limit, std::plus<double>());
}

Result<op::Tensor> transposed(const op::Tensor& x, std::span<const int64_t> perm) {
  const op::Dims own = op::strides_of(x.dims());
  op::Dims dims, strides;
  for (int64_t p : perm) {
    dims.push_back(x.dim(static_cast<int>(p)));
    strides.push_back(own[static_cast<size_t>(p)]);
  }
  if (x.dtype() == DType::kString || bits_of(x.dtype()) % 8 != 0)
    return error(Code::kUnimplemented, "transposed: {}", name_of(x.dtype()));
  const auto size = static_cast<size_t>(bits_of(x.dtype()) / 8);
  TRY_ASSIGN(op::Tensor y, op::Tensor::make(x.dtype(), dims));
  for (op::Index at(dims); !at.done(); at.next())
    std::memcpy(y.mutable_data() + static_cast<size_t>(at.linear()) * size,
                x.data() + static_cast<size_t>(at.dot(strides)) * size, size);
  return y;
}

Result<op::Tensor> joined(std::span<const op::Tensor> parts, int axis) {
  op::Dims dims = parts[0].dims();
  int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= dims[static_cast<size_t>(i)];
  dims[static_cast<size_t>(axis)] = 0;
  for (const op::Tensor& part : parts) dims[static_cast<size_t>(axis)] += part.dim(axis);
  if (parts[0].dtype() == DType::kString || bits_of(parts[0].dtype()) % 8 != 0)
    return error(Code::kUnimplemented, "joined: {}", name_of(parts[0].dtype()));
  TRY_ASSIGN(op::Tensor y, op::Tensor::make(parts[0].dtype(), std::move(dims)));
  std::byte* to = y.mutable_data();
  for (int64_t o = 0; o < outer; ++o)
    for (const op::Tensor& part : parts) {
      const auto row = static_cast<size_t>(part.bytes().value / outer);
      std::memcpy(to, part.data() + static_cast<size_t>(o) * row, row);
      to += row;
    }
  return y;
}

}  // namespace tessera::passes
