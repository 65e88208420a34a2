// dot: matrix products with broadcast batches.
#include <cmath>

#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

// M, N, K: extents; batches broadcast.
Result<std::vector<Value>> dot(const Call& call) {
  const Tensor &a = call.t(0), &b = call.t(1);
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims da = a.rank() == 1 ? Dims{1, a.dim(0)} : a.dims();  // (..., M, K)
  const Dims db = b.rank() == 1 ? Dims{b.dim(0), 1} : b.dims();  // (..., K, N)
  const bool ta = call.attrs().i("transpose_a") != 0, tb = call.attrs().i("transpose_b") != 0;
  const int64_t M = ta ? da.back() : da[da.size() - 2], K = ta ? da[da.size() - 2] : da.back();
  const int64_t N = tb ? db[db.size() - 2] : db.back(), K_b = tb ? db.back() : db[db.size() - 2];
  if (K_b != K) return call.fail("inner sizes differ: {} and {}", K, K_b);
  const int64_t a_m = ta ? 1 : K, a_k = ta ? M : 1, b_k = tb ? 1 : N, b_n = tb ? K : 1;
  const int64_t batches = y.count() == 0 ? 0 : y.count() / (M * N);
  const Dims batch_a(da.begin(), da.end() - 2), batch_b(db.begin(), db.end() - 2);
  Dims batch = batch_a.size() > batch_b.size() ? batch_a : batch_b;
  const Dims& shorter = batch_a.size() > batch_b.size() ? batch_b : batch_a;
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& d = batch[batch.size() - shorter.size() + i];
    if (d == 1) d = shorter[i];
  }
  const Dims sa = broadcast_strides(batch_a, batch), sb = broadcast_strides(batch_b, batch);
  const bool floats = is_float(a.dtype()) || is_float(b.dtype());
  Index at(batch);
  for (int64_t p = 0; p < batches; ++p, at.next()) {
    const int64_t a0 = at.dot(sa) * M * K, b0 = at.dot(sb) * K * N, y0 = p * M * N;
    for (int64_t m = 0; m < M; ++m)
      for (int64_t n = 0; n < N; ++n) {
        if (floats) {
          double sum = 0;
          for (int64_t k = 0; k < K; ++k)
            sum += a.f64(a0 + m * a_m + k * a_k) * b.f64(b0 + k * b_k + n * b_n);
          y.set_f64(y0 + m * N + n, sum);
        } else {
          uint64_t sum = 0;
          for (int64_t k = 0; k < K; ++k)
            sum += static_cast<uint64_t>(a.i64(a0 + m * a_m + k * a_k)) *
                   static_cast<uint64_t>(b.i64(b0 + k * b_k + n * b_n));
          y.set_i64(y0 + m * N + n, static_cast<int64_t>(sum));
        }
      }
  }
  return one(std::move(y));
}

// By elimination with the largest pivot of each column.
double determinant(std::vector<double> a, int64_t n) {
  auto at = [&](int64_t i, int64_t j) -> double& { return a[static_cast<size_t>(i * n + j)]; };
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(at(i, k)) > std::fabs(at(pivot, k))) pivot = i;
    if (at(pivot, k) == 0) return 0;
    for (int64_t j = 0; j < n && pivot != k; ++j) std::swap(at(pivot, j), at(k, j));
    product *= pivot == k ? at(k, k) : -at(k, k);
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = at(i, k) / at(k, k);
      for (int64_t j = k; j < n; ++j) at(i, j) -= factor * at(k, j);
    }
  }
  return product;
}

Result<std::vector<Value>> det(const Call& call) {
  const Tensor& x = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t n = x.dims().back();
  for (int64_t i = 0; i < y.count(); ++i) {
    std::vector<double> a(static_cast<size_t>(n * n));
    for (int64_t k = 0; k < n * n; ++k) a[static_cast<size_t>(k)] = x.f64(i * n * n + k);
    y.set_f64(i, determinant(std::move(a), n));
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {{"det", det}, {"dot", dot}};

}  // namespace

std::span<const Row> dot_rows() { return kRows; }

}  // namespace tessera::ir::reference
