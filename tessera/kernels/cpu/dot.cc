// dot(a, b): rows cpu.gemv, cpu.gemm (f32) and cpu.dot_plain (other types).
#include <algorithm>
#include <cstring>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/dot_args.h"
#include "tessera/kernels/cpu/families.h"

namespace tessera::kernels::cpu {
namespace {

struct Shape {
  int64_t M = 1, N = 1, K = 1;
  Dims batch, a_batch, b_batch;
};

bool transposed_b(const Problem& p) { return p.attrs.i("transpose_b") != 0; }

Shape shape_of(const Problem& p) {
  Shape s;
  const Dims &a = p.in[0].dims, &b = p.in[1].dims, &y = p.out[0].dims;
  s.K = a.back();
  s.M = a.size() == 1 ? 1 : a[a.size() - 2];
  s.N = b.size() == 1 ? 1 : transposed_b(p) ? b[b.size() - 2] : b.back();
  s.a_batch.assign(a.begin(), a.end() - std::min<int64_t>(2, std::ssize(a)));
  s.b_batch.assign(b.begin(), b.end() - std::min<int64_t>(2, std::ssize(b)));
  s.batch.assign(y.begin(), y.end() - (a.size() > 1) - (b.size() > 1));
  // One b for all rows: the batches of a are more rows.
  const bool shared =
      std::all_of(s.b_batch.begin(), s.b_batch.end(), [](int64_t d) { return d == 1; });
  if (shared) {
    for (int64_t d : s.batch) s.M *= d;
    s.batch = s.a_batch = s.b_batch = {};
  }
  return s;
}

bool fill(const Shape& s, GemmArgs& g) {
  g.M = s.M;
  g.N = s.N;
  g.K = s.K;
  g.b_batch_size = s.K * s.N;
  Dims batch = s.batch;
  std::vector<Dims> strides{broadcast_strides(s.a_batch, batch),
                            broadcast_strides(s.b_batch, batch)};
  merge_axes(batch, strides);
  if (batch.size() > kMaxBatchRank) return false;
  g.batch_rank = static_cast<int32_t>(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    g.batch_dims[i] = batch[i];
    g.a_strides[i] = strides[0][i];
    g.b_strides[i] = strides[1][i];
  }
  return true;
}

int64_t batches(const GemmArgs& g) {
  int64_t n = 1;
  for (int i = 0; i < g.batch_rank; ++i) n *= g.batch_dims[i];
  return n;
}

int64_t round_up(int64_t a, int64_t step) { return ceil_div(a, step) * step; }

// Cuts the products into about `target` items, columns first: rows share what is packed of b.
uint32_t cut(GemmArgs& g, int64_t row_step, int64_t col_step, int64_t n_most) {
  const int64_t all = batches(g);
  const double work = static_cast<double>(g.M) * static_cast<double>(g.N) *
                      static_cast<double>(g.K) * static_cast<double>(all);
  const int64_t target = std::clamp<int64_t>(static_cast<int64_t>(work / 5e5), 1, 64);
  int64_t wanted = ceil_div(target, std::max<int64_t>(all, 1));
  g.n_items =
      std::clamp<int64_t>(std::max(ceil_div(g.N, n_most), std::min(wanted, ceil_div(g.N, kStrip))),
                          1, ceil_div(g.N, col_step));
  g.n_step = round_up(ceil_div(g.N, g.n_items), col_step);
  g.n_items = ceil_div(g.N, g.n_step);
  wanted = ceil_div(wanted, g.n_items);
  g.m_step = round_up(ceil_div(g.M, std::clamp<int64_t>(wanted, 1, ceil_div(g.M, 4 * row_step))),
                      row_step);
  g.m_items = ceil_div(g.M, g.m_step);
  return static_cast<uint32_t>(std::min<int64_t>(all * g.m_items * g.n_items, INT32_MAX));
}

bool packs(const Problem& p, const Shape& s) {
  return p.in[1].constant && s.N > 1 && p.in[1].count() > 0;
}

Claim probe_f32(const Problem& p, bool vector) {
  Reason why;
  why.input_is(p, 0, DType::kF32) && why.input_is(p, 1, DType::kF32) &&
      why.output_is(p, 0, DType::kF32);
  if (!why.fine()) return why.refusal();
  const Shape s = shape_of(p);
  GemmArgs g{};
  why.need(fill(s, g), "batch has more than {} axes that do not merge", kMaxBatchRank);
  why.need(p.attrs.i("transpose_a") == 0, "input 0 is transposed");
  why.need(!transposed_b(p) || (!vector && packs(p, s)), "input 1 is transposed and not packed");
  if (vector)
    why.need(s.N == 1 || (s.M == 1 && !packs(p, s)),
             "{} rows and {} columns, need a vector that is not packed", s.M, s.N);
  if (!why.fine()) return why.refusal();
  const double flops = 2.0 * static_cast<double>(p.out[0].count()) * static_cast<double>(s.K);
  const double waste = vector ? 1
                              : static_cast<double>(round_up(std::max<int64_t>(s.N, 1), 16)) /
                                    static_cast<double>(std::max<int64_t>(s.N, 1));
  Claim c = claim(flops * waste, bytes_of(p), vector ? 0.25 : 0.7, NumericClass::kReassociated);
  if (!vector && packs(p, s))
    c.packed.push_back({1, Bytes(p.in[1].count() / s.N * round_up(s.N, kPanelCols) * 4)});
  return c;
}

Claim probe_gemm(const Problem& p) { return probe_f32(p, false); }
Claim probe_gemv(const Problem& p) { return probe_f32(p, true); }

Result<std::vector<LaunchSpec>> prepare_f32(const Problem& p, const Claim&, bool vector) {
  const Shape s = shape_of(p);
  GemmArgs g{};
  fill(s, g);
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  LaunchSpec launch;
  launch.entry = vector ? "cpu.gemv" : "cpu.gemm";
  g.b_packed = !vector && packs(p, s);
  if (g.b_packed) g.b_batch_size = s.K * round_up(s.N, kPanelCols);
  launch.grid = vector ? cut(g, 16, 256, 1024)
                       : cut(g, kPanelRows, kPanelCols, g.b_packed ? 512 : 4 * kStrip);
  launch.arguments = {{Argument::kInput, 0, 0},
                      {g.b_packed ? Argument::kPacked : Argument::kInput, g.b_packed ? 0 : 1, 0},
                      {Argument::kOutput, 0, 0}};
  launch.set_constants(g);
  launches.push_back(std::move(launch));
  return launches;
}

Result<std::vector<LaunchSpec>> prepare_gemm(const Problem& p, const Claim& c) {
  return prepare_f32(p, c, false);
}
Result<std::vector<LaunchSpec>> prepare_gemv(const Problem& p, const Claim& c) {
  return prepare_f32(p, c, true);
}

// One panel of a transposed matrix, by squares: a run of k in each of the panel's columns is one
// cache line.
void transpose_panel(const float* b, int64_t K, int64_t width, float* panel) {
  constexpr int64_t kRun = 16;
  for (int64_t k0 = 0; k0 < K; k0 += kRun) {
    const int64_t run = std::min(kRun, K - k0);
    for (int64_t j = 0; j < width; ++j)
      for (int64_t k = k0; k < k0 + run; ++k) panel[k * kPanelCols + j] = b[j * K + k];
  }
}

// (batch, k, n) -> (batch, n / kPanelCols, k, n % kPanelCols), columns beyond N are zero
Status pack_gemm(const Problem& p, int, const std::byte* source, std::byte* target) {
  const Shape s = shape_of(p);
  const auto* b = reinterpret_cast<const float*>(source);
  auto* panels = reinterpret_cast<float*>(target);
  const int64_t matrices = s.K == 0 ? 0 : p.in[1].count() / (s.K * s.N);
  for (int64_t i = 0; i < matrices; ++i, b += s.K * s.N)
    for (int64_t n = 0; n < s.N; n += kPanelCols, panels += s.K * kPanelCols) {
      const int64_t width = std::min(kPanelCols, s.N - n);
      if (width < kPanelCols) std::fill(panels, panels + s.K * kPanelCols, 0.0f);
      if (transposed_b(p)) {
        transpose_panel(b + n * s.K, s.K, width, panels);
        continue;
      }
      for (int64_t k = 0; k < s.K; ++k)
        std::memcpy(panels + k * kPanelCols, b + k * s.N + n,
                    static_cast<size_t>(width) * sizeof(float));
    }
  return {};
}

struct TypesRow {
  DType a, b, y;
  DotTypes types;
};
using enum DType;
constexpr TypesRow kTypes[] = {
    {kF64, kF64, kF64, DotTypes::kF64},         {kF16, kF16, kF16, DotTypes::kF16},
    {kBF16, kBF16, kBF16, DotTypes::kBF16},     {kF16, kF16, kF32, DotTypes::kF16ToF32},
    {kBF16, kBF16, kF32, DotTypes::kBF16ToF32}, {kI8, kI8, kI32, DotTypes::kI8I8},
    {kI8, kU8, kI32, DotTypes::kI8U8},          {kU8, kI8, kI32, DotTypes::kU8I8},
    {kU8, kU8, kI32, DotTypes::kU8U8},          {kI32, kI32, kI32, DotTypes::kI32},
    {kU32, kU32, kU32, DotTypes::kI32},         {kI64, kI64, kI64, DotTypes::kI64},
    {kU64, kU64, kU64, DotTypes::kI64},
};

const TypesRow* types_of(const Problem& p) {
  for (const TypesRow& row : kTypes)
    if (row.a == p.in[0].dtype && row.b == p.in[1].dtype && row.y == p.out[0].dtype) return &row;
  return nullptr;
}

Claim probe_plain(const Problem& p) {
  Reason why;
  why.need(types_of(p) != nullptr, "no product of {} and {} into {}", name_of(p.in[0].dtype),
           name_of(p.in[1].dtype), name_of(p.out[0].dtype));
  why.need(p.attrs.i("transpose_a") == 0 && !transposed_b(p), "an input is transposed");
  if (!why.fine()) return why.refusal();
  const Shape s = shape_of(p);
  GemmArgs g{};
  why.need(fill(s, g), "batch has more than {} axes that do not merge", kMaxBatchRank);
  if (!why.fine()) return why.refusal();
  const double flops = 2.0 * static_cast<double>(p.out[0].count()) * static_cast<double>(s.K);
  return claim(flops, bytes_of(p), 0.1,
               is_float(p.in[0].dtype) ? NumericClass::kReassociated : NumericClass::kExact);
}

Result<std::vector<LaunchSpec>> prepare_plain(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  PlainDotArgs args{};
  fill(shape_of(p), args.gemm);
  args.types = types_of(p)->types;
  LaunchSpec launch;
  launch.entry = "cpu.dot_plain";
  launch.grid = cut(args.gemm, 4, 64, 256);
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {
    {"dot", "cpu.gemv", row_major<probe_gemv>, prepare_gemv},
    {"dot", "cpu.gemm", row_major<probe_gemm>, prepare_gemm, pack_gemm},
    {"dot", "cpu.dot_plain", row_major<probe_plain>, prepare_plain},
};

}  // namespace

std::span<const Row> dot_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
