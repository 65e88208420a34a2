// dot(a, b): a tile of the result is kept while the inner axis is walked.
#include "tessera/tile/frame.h"
#include "tessera/tile/problems.h"

namespace tessera::tile {
namespace {

constexpr int kRows = 0, kColumns = 1, kInner = 2;  // tags; batch axes count as rows

// The operand's stride along its last axis but `from_end`; 0 if it has no such axis.
int64_t stride_at(const op::Dims& strides, int from_end) {
  const int at = static_cast<int>(strides.size()) - 1 - from_end;
  return at < 0 ? 0 : strides[static_cast<size_t>(at)];
}
int64_t size_at(const op::Dims& dims, int from_end) {
  const int at = static_cast<int>(dims.size()) - 1 - from_end;
  return at < 0 ? 1 : dims[static_cast<size_t>(at)];
}

}  // namespace

Result<Instance> product(const op::Problem& p) {
  const op::Operand &a = p.in[0], &b = p.in[1];
  const bool row = a.rank() == 1, column = b.rank() == 1;
  const int a_inner = !row && p.attrs.i("transpose_a") != 0 ? 1 : 0;
  const int b_inner = column || p.attrs.i("transpose_b") != 0 ? 0 : 1;
  TRY_ASSIGN(const op::Dims a_strides, operand_strides(a));
  TRY_ASSIGN(const op::Dims b_strides, operand_strides(b));

  // The space: batch axes, M, N, K.
  const int batches = std::max({a.rank(), b.rank(), 2}) - 2;
  op::Dims dims, a_walk, b_walk;
  for (int k = batches; k-- > 0;) {
    const int64_t of_a = size_at(a.dims, k + 2), of_b = size_at(b.dims, k + 2);
    dims.push_back(of_a == 1 ? of_b : of_a);
    a_walk.push_back(of_a == 1 ? 0 : stride_at(a_strides, k + 2));
    b_walk.push_back(of_b == 1 ? 0 : stride_at(b_strides, k + 2));
  }
  const auto extend = [&](int64_t size, int64_t of_a, int64_t of_b) {
    dims.push_back(size);
    a_walk.push_back(of_a);
    b_walk.push_back(of_b);
  };
  extend(row ? 1 : size_at(a.dims, 1 - a_inner), row ? 0 : stride_at(a_strides, 1 - a_inner), 0);
  extend(column ? 1 : size_at(b.dims, 1 - b_inner), 0,
         column ? 0 : stride_at(b_strides, 1 - b_inner));
  extend(size_at(a.dims, a_inner), stride_at(a_strides, a_inner), stride_at(b_strides, b_inner));
  std::vector<int> tags(dims.size(), kRows), of_result;
  tags[tags.size() - 2] = kColumns;
  tags.back() = kInner;
  for (int k = 0; k < batches; ++k) of_result.push_back(k);
  if (!row) of_result.push_back(batches);
  if (!column) of_result.push_back(batches + 1);

  Frame f("dot", p, std::move(dims), std::move(tags), std::move(of_result));
  TRY(f.input(0, std::move(a_walk)));
  TRY(f.input(1, std::move(b_walk)));
  TRY(f.settle());
  f.grid(kRows);
  f.grid(kColumns);
  f.reassociated();

  // Sums of narrow floats and integers are wider than what is summed.
  const DType result = p.anchor_result().dtype;
  const DType sum = is_narrow(result) ? DType::kF32 : result;
  const bool as_they_are = a.dtype == b.dtype && is_float(a.dtype) == is_float(sum);
  const auto load = [&](size_t i) { return as_they_are ? f.load(i) : f.load(i, sum); };
  std::vector<int> left = f.axes(kRows);
  for (int n : f.axes(kColumns)) left.push_back(n);
  const std::vector<int> inner = f.axes(kInner);
  int value = kNone;
  if (inner.empty()) {
    value = f.b.mul(f.load(0, sum), f.load(1, sum));
  } else {
    value = f.loops(inner, {f.b.constant(sum, 0)}, left, [&](const std::vector<int>& so_far) {
      const int x = load(0), y = load(1);
      return std::vector<int>{f.b.dot(x, y, so_far[0], inner, sum)};
    })[0];
  }
  TRY(f.finish_value(value));
  return f.finish();
}

}  // namespace tessera::tile
