// Arithmetic on constants while compiling, where the interpreter would be slow or the result must
// be checked. Computed in f64, rounded once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/op/tensor.h"

namespace tessera::passes {

// c as a factor of a tensor of `rank` axes: one number for each of `size` places on `axis`; nullopt
// where c is not the same along all other axes.
std::optional<std::vector<double>> along_axis(const op::Tensor& c, int rank, int axis,
                                              int64_t size);
// (size, 1, ...), so that it broadcasts along `axis` of `rank` axes.
Result<op::Tensor> broadcast_along(DType dtype, std::span<const double> values, int rank, int axis);

// The slices of w along `axis` times `factors`; nullopt where a finite element becomes infinite.
std::optional<op::Tensor> scaled(const op::Tensor& w, int axis, std::span<const double> factors);

// fn of each pair of elements, broadcast; nullopt where the result is larger than both, or not
// finite.
std::optional<op::Tensor> combined(const op::Tensor& a, const op::Tensor& b,
                                   const std::function<double(double, double)>& fn);

// a + b, broadcast; nullopt where the result has more than `limit` bytes. Infinities stay.
std::optional<op::Tensor> broadcast_sum(const op::Tensor& a, const op::Tensor& b, int64_t limit);

// y(i...) = x(i[perm]...), as operator transpose.
Result<op::Tensor> transposed(const op::Tensor& x, std::span<const int64_t> perm);
// Tensors of equal sizes, except along `axis`, one behind the other.
Result<op::Tensor> joined(std::span<const op::Tensor> parts, int axis);

}  // namespace tessera::passes
