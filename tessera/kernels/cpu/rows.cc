#include "tessera/kernels/cpu/rows.h"

#include <algorithm>

namespace tessera::kernels::cpu {

void need_same_float(const Problem& p, Reason& why) {
  const DType d = p.in[0].dtype;
  why.need(d == DType::kF32 || d == DType::kF64, "input 0 is {}, need f32 or f64", name_of(d));
  auto check = [&](const Operand& o, std::string_view side, size_t i) {
    if (!o.present) return;
    why.need(o.dtype == d, "{} {} is {}, need {}", side, i, name_of(o.dtype), name_of(d));
    why.need(op::element_count(o.dims).has_value(), "{} {} has impossible sizes", side, i);
    why.need(logical_strides(o).has_value(), "{} {} has layout '{}', which is no order of axes",
             side, i, o.layout);
  };
  for (size_t i = 0; i < p.anchor_inputs(); ++i) check(p.in[i], "input", i);
  for (size_t i = 0; i < p.out.size(); ++i) check(p.out[i], "output", i);
  why.need(!p.out.empty() && p.out[0].present, "nobody reads output 0");
}

std::optional<RowSpace> row_space(const Problem& p, size_t first, size_t last) {
  const Dims x = *logical_strides(p.in[0]), y = *logical_strides(p.out[0]);
  std::vector<size_t> kept;
  for (size_t a = 0; a < x.size(); ++a)
    if (a < first || a >= last) kept.push_back(a);
  std::stable_sort(kept.begin(), kept.end(), [&](size_t a, size_t b) { return y[a] > y[b]; });
  Dims dims;
  std::vector<Dims> strides(2);
  for (size_t a : kept) {
    dims.push_back(p.in[0].dims[a]);
    strides[0].push_back(x[a]);
    strides[1].push_back(y[a]);
  }
  merge_axes(dims, strides);
  if (dims.size() > kMaxSpaceRank) return std::nullopt;
  RowSpace rows{};
  rows.rank = static_cast<int32_t>(dims.size());
  rows.count = 1;
  for (size_t a = 0; a < dims.size(); ++a) {
    rows.count *= rows.dims[a] = dims[a];
    for (size_t k : {0, 1}) rows.strides[k][a] = strides[k][a];
  }
  return rows;
}

std::optional<int64_t> stride_along(const Operand& o, size_t first, size_t last) {
  const Dims strides = *logical_strides(o);
  int64_t stride = 0, next = 0;
  for (size_t a = last; a-- > first;) {
    if (o.dims[a] == 1) continue;
    if (stride == 0)
      stride = strides[a];
    else if (strides[a] != next)
      return std::nullopt;
    next = strides[a] * o.dims[a];
  }
  return stride == 0 ? 1 : stride;
}

std::string no_rows_epilogue(const Problem& p, size_t first) {
  if (!p.fused()) return {};
  const Operand& y = p.out[0];
  if (y.dtype != DType::kF32) return "steps behind rows that are not f32";
  if (!y.strides.empty()) return "steps behind strided rows";
  const size_t columns = y.layout.empty() ? y.dims.size() - 1 : 1;
  if (first != columns) return "steps behind rows of several axes";
  return no_epilogue(p, rows_shape(p));
}

ResultShape rows_shape(const Problem& p) {
  return {p.anchor_result().dims, !p.out[0].layout.empty()};
}

}  // namespace tessera::kernels::cpu
