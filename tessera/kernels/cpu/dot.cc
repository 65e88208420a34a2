// dot(a, b) and the steps behind it: rows cpu.gemv, cpu.gemm (f32, any strides) and cpu.dot_plain
// (other types, row-major).
#include <algorithm>

#include "tessera/kernels/cpu/dot.h"
#include "tessera/kernels/cpu/epilogue.h"
#include "tessera/kernels/cpu/families.h"

namespace tessera::kernels::cpu {
namespace {

bool transposed_b(const Problem& p) { return p.attrs.i("transpose_b") != 0; }

// An operand as matrices: their extents and strides in elements, and those of the batch axes.
struct Matrices {
  int64_t rows = 1, cols = 1, row = 0, col = 0;
  Dims batch, strides;
};

// A vector is a row if `row` is set, else a column.
Matrices matrices_of(const Operand& o, bool row, bool transposed) {
  const Dims strides = o.strides.empty() ? op::strides_of(o.dims) : o.strides;
  Matrices m;
  const size_t rank = o.dims.size();
  if (rank == 1) {
    (row ? m.cols : m.rows) = o.dims[0];
    (row ? m.col : m.row) = strides[0];
    return m;
  }
  m.rows = o.dims[rank - 2], m.cols = o.dims[rank - 1];
  m.row = strides[rank - 2], m.col = strides[rank - 1];
  if (transposed) std::swap(m.rows, m.cols), std::swap(m.row, m.col);
  m.batch.assign(o.dims.begin(), o.dims.end() - 2);
  m.strides.assign(strides.begin(), strides.end() - 2);
  return m;
}

// Strides along the axes of `to`: 0 where this side broadcasts.
Dims along(const Matrices& m, const Dims& to) {
  Dims strides(to.size(), 0);
  for (size_t i = 0; i < m.batch.size(); ++i)
    if (m.batch[i] != 1) strides[to.size() - m.batch.size() + i] = m.strides[i];
  return strides;
}

// All but items and epilogue. Rows that share a matrix of b are rows of one product. False if too
// many batch axes are left.
bool fill(const Problem& p, GemmArgs& g) {
  const Operand& y = p.out[0];
  const Matrices a = matrices_of(p.in[0], true, p.attrs.i("transpose_a") != 0),
                 b = matrices_of(p.in[1], false, transposed_b(p));
  const Dims y_strides = y.strides.empty() ? op::strides_of(y.dims) : y.strides;
  const size_t a_axis = p.in[0].rank() > 1, b_axis = p.in[1].rank() > 1,
               axes = y.dims.size() - a_axis - b_axis;
  Products& s = g.products;
  s.M = a.rows;
  s.N = b.cols;
  s.K = a.cols;
  g.a_row = a.row, g.a_col = a.col;
  g.b_row = b.row, g.b_col = b.col;
  g.y_row = a_axis ? y_strides[axes] : 0;
  Dims batch(y.dims.begin(), y.dims.begin() + static_cast<int64_t>(axes));
  std::vector<Dims> strides{
      along(a, batch), along(b, batch),
      Dims(y_strides.begin(), y_strides.begin() + static_cast<int64_t>(axes))};
  merge_axes(batch, strides);
  const size_t last = batch.size() - 1;
  const bool rows =
      strides[1][last] == 0 &&
      (s.M == 1 || (strides[0][last] == s.M * g.a_row && strides[2][last] == s.M * g.y_row));
  if (rows && batch[last] != 1) {
    if (s.M == 1) g.a_row = strides[0][last], g.y_row = strides[2][last];
    s.M *= batch[last];
    batch.pop_back();
    for (Dims& d : strides) d.pop_back();
  }
  return set_batch(batch, strides, s);
}

int64_t round_up(int64_t a, int64_t step) { return ceil_div(a, step) * step; }

double work_of(const Problem& p, const Products& s) {
  return static_cast<double>(p.out[0].count()) * static_cast<double>(s.K);
}

// Cuts the products into `wanted` items or a few more, where that leaves them `m_least` rows and
// `n_least` columns: so that as little as possible is read twice. An element of b costs `b_cost`
// times one of a.
uint32_t cut(Products& s, int64_t wanted, int64_t m_least, int64_t n_least, int64_t b_cost,
             int64_t m_unit = 6) {
  const int64_t all = batches(s);
  wanted = ceil_div(wanted, std::max<int64_t>(all, 1));
  const int64_t m_most = ceil_div(s.M, m_least), n_most = ceil_div(s.N, n_least);
  int64_t best = INT64_MAX;
  for (int64_t n = 1; n <= std::min(n_most, wanted); ++n) {
    const int64_t m = std::min(ceil_div(wanted, n), m_most);
    // Too few items is the worst.
    const int64_t missing = std::max<int64_t>(wanted - m * n, 0);
    const int64_t cost = missing * (s.M + b_cost * s.N) + n * s.M + m * b_cost * s.N;
    if (cost >= best) continue;
    best = cost;
    s.n_step = round_up(ceil_div(s.N, n), n_least);
    s.m_step = round_up(ceil_div(s.M, m), m == 1 ? 1 : std::min<int64_t>(m_least, m_unit));
  }
  s.m_items = ceil_div(s.M, s.m_step);
  s.n_items = ceil_div(s.N, s.n_step);
  return items(all * s.m_items * s.n_items, 1);
}

// Items of some ten microseconds, at most 32.
int64_t items_for(const Problem& p, const Products& s) {
  constexpr double kProducts = 1.5e6, kBytes = 3e5;
  return static_cast<int64_t>(
      std::clamp(std::max(work_of(p, s) / kProducts, bytes_of(p) / kBytes), 1.0, 32.0));
}

// ---- f32

bool packs(const Problem& p, const Products& s) {
  return p.in[1].constant && p.in[1].strides.empty() && s.N > 1 && p.in[1].count() > 0;
}

Reason check(const Problem& p, GemmArgs& g) {
  Reason why;
  why.input_is(p, 0, DType::kF32) && why.input_is(p, 1, DType::kF32) &&
      why.output_is(p, 0, DType::kF32);
  if (why.fine()) why.need(p.out[0].present, "nobody reads output 0");
  for (const Operand* o : {&p.in[0], &p.in[1], &p.out[0]})
    if (why.fine()) {
      why.need(o->layout.empty(), "an operand has layout '{}', need row-major", o->layout);
      why.need(op::element_count(o->dims).has_value(), "impossible sizes {}",
               op::to_string(o->dims));
    }
  if (!why.fine()) return why;
  why.need(fill(p, g), "batch has more than {} axes that do not merge", kMaxBatchRank);
  why.need(!p.fused() || p.in[1].rank() > 1, "takes no steps behind a product with a vector");
  const std::string refusal = no_epilogue(p, {p.anchor_result().dims});
  why.need(refusal.empty(), "{}", refusal);
  return why;
}

LaunchSpec launch_of(const Problem& p, std::string_view entry, Argument b, uint32_t grid,
                     GemmArgs& g) {
  LaunchSpec launch;
  launch.entry = entry;
  launch.grid = grid;
  launch.arguments = {{Argument::kInput, 0, 0}, b, {Argument::kOutput, 0, 0}};
  if (p.fused()) make_epilogue(p, {p.anchor_result().dims}, launch.arguments, g.epilogue);
  return launch;
}

// A matrix times one column, seen as a row times the rows of the matrix.
void flip(GemmArgs& g) {
  Products& s = g.products;
  std::swap(s.M, s.N);
  std::swap(s.a_batch, s.b_batch);
  const int64_t a_row = g.a_row;
  g.a_row = g.b_col;
  g.b_col = a_row;
  std::swap(g.a_col, g.b_row);
  g.y_row = 0;
}

// gemv: why not. One column is flipped, which `column` says.
Reason fit_gemv(const Problem& p, GemmArgs& g, bool& column) {
  Reason why = check(p, g);
  if (!why.fine()) return why;
  const Products& s = g.products;
  const bool one = s.K <= 1;
  column = s.N == 1;
  why.need(column || (s.M <= kMaxDotRows && !packs(p, s)),
           "{} rows and {} columns, need one column, or at most {} rows and no packed columns", s.M,
           s.N, kMaxDotRows);
  why.need(one || (g.a_col == 1 && g.b_row == 1), "k is not innermost on both sides");
  if (column) {
    why.need(s.M == 1 || g.y_row == 1, "rows of the result are strided");
    for (const op::Step& step : p.steps)
      for (int v : step.in)
        if (v >= 0 && v < std::ssize(p.in))
          why.need(p.in[static_cast<size_t>(v)].strides.empty(), "input {} is strided", v);
    flip(g);
  }
  why.need(p.out[0].strides.empty() || p.out[0].strides.back() == 1 || column,
           "columns of the result are strided");
  return why;
}

Claim probe_gemv(const Problem& p) {
  GemmArgs g{};
  bool column = false;
  const Reason why = fit_gemv(p, g, column);
  if (!why.fine()) return why.refusal();
  return claim(2 * work_of(p, g.products), bytes_of(p), 0.25, NumericClass::kReassociated);
}

Result<std::vector<LaunchSpec>> prepare_gemv(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  GemmArgs g{};
  bool column = false;
  fit_gemv(p, g, column);
  Products& s = g.products;
  const uint32_t grid = cut(s, items_for(p, s), s.M, 16, 1);
  LaunchSpec launch = launch_of(p, "cpu.gemv", {Argument::kInput, 1, 0}, grid, g);
  if (column) {
    std::swap(launch.arguments[0], launch.arguments[1]);
    // A value per row of a column is a row of the flipped result.
    for (EpilogueStep& step : g.epilogue.steps)
      if (step.broadcast == Broadcast::kRows) step.broadcast = Broadcast::kFull, step.ld = s.N;
  }
  launch.set_constants(g);
  launches.push_back(std::move(launch));
  return launches;
}

// Where gemm finds b. Values are packed by a launch of their own if there are so many, all in one
// matrix, that they do not stay in the caches between a's rows.
struct Plan {
  RightSide right;
  bool ahead = false;
};

Plan plan_of(const Problem& p, const GemmArgs& g) {
  // So few rows do not pay for packing, and rows of b so near to each other do not need it.
  constexpr int64_t kDirectRows = 32, kNear = 256;
  constexpr int64_t kAheadRows = 48, kAheadFloats = 1 << 17;
  const Products& s = g.products;
  if (packs(p, s)) return {RightSide::kPanels};
  if (g.b_col == 1 && (s.M <= kDirectRows || g.b_row <= kNear)) return {RightSide::kRows};
  const bool one =
      std::all_of(s.b_batch, s.b_batch + s.batch_rank, [](int64_t d) { return d == 0; });
  if (one && s.M >= kAheadRows && s.K * s.N >= kAheadFloats) return {RightSide::kPanels, true};
  return {RightSide::kStrided};
}

Claim probe_gemm(const Problem& p) {
  GemmArgs g{};
  Reason why = check(p, g);
  if (why.fine())
    why.need(p.out[0].strides.empty() || p.out[0].strides.back() == 1 || g.products.N == 1,
             "columns of the result are strided");
  if (!why.fine()) return why.refusal();
  const Products& s = g.products;
  const Plan plan = plan_of(p, g);
  const double rows = static_cast<double>(std::max<int64_t>(s.M, 1)),
               cols = static_cast<double>(std::max<int64_t>(s.N, 1));
  // Panels have whole vectors; packing one costs as much as four rows of products.
  double efficiency = 0.9 * cols / static_cast<double>(round_up(std::max<int64_t>(s.N, 1), kPanel));
  if (plan.ahead || plan.right == RightSide::kStrided) efficiency *= rows / (rows + 4);
  Claim c = claim(2 * work_of(p, s), bytes_of(p), efficiency, NumericClass::kReassociated);
  if (packs(p, s))
    c.packed.push_back({1, Bytes(p.in[1].count() / (s.K * s.N) * packed_size(s.K, s.N) * 4)});
  if (plan.ahead) c.workspace = Bytes(packed_size(s.K, s.N) * 4);
  return c;
}

Result<std::vector<LaunchSpec>> prepare_gemm(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  GemmArgs g{};
  fill(p, g);
  Products& s = g.products;
  const Plan plan = plan_of(p, g);
  g.right = plan.right;
  if (plan.ahead) {
    LaunchSpec pack;
    pack.entry = "cpu.pack_b";
    pack.grid = items(panels_of(s.N), 1);
    pack.arguments = {{Argument::kInput, 1, 0}, {Argument::kWorkspace, 0, 0}};
    pack.set_constants(PackArgs{s.K, s.N, g.b_row, g.b_col});
    launches.push_back(std::move(pack));
  }
  if (plan.right == RightSide::kPanels)
    for (int i = 0; i < s.batch_rank; ++i)
      s.b_batch[i] = s.b_batch[i] / (s.K * s.N) * packed_size(s.K, s.N);
  const Argument b{plan.ahead                         ? Argument::kWorkspace
                   : plan.right == RightSide::kPanels ? Argument::kPacked
                                                      : Argument::kInput,
                   plan.ahead || plan.right == RightSide::kPanels ? 0 : 1, 0};
  const uint32_t grid = cut(s, items_for(p, s), 48, 64, plan.right == RightSide::kStrided ? 4 : 1);
  LaunchSpec launch = launch_of(p, "cpu.gemm", b, grid, g);
  launch.set_constants(g);
  launches.push_back(std::move(launch));
  return launches;
}

Status pack_gemm(const Problem& p, int, const std::byte* source, std::byte* target) {
  GemmArgs g{};
  fill(p, g);
  const Products& s = g.products;
  const auto* b = reinterpret_cast<const float*>(source);
  auto* panels = reinterpret_cast<float*>(target);
  for (int64_t i = p.in[1].count() / (s.K * s.N); i > 0; --i) {
    pack_panels(b, g.b_row, g.b_col, s.K, s.N, panels);
    b += s.K * s.N;
    panels += packed_size(s.K, s.N);
  }
  return {};
}

// ---- Other types

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
  GemmArgs g{};
  why.need(fill(p, g), "batch has more than {} axes that do not merge", kMaxBatchRank);
  if (!why.fine()) return why.refusal();
  return claim(2 * work_of(p, g.products), bytes_of(p), 0.1,
               is_float(p.in[0].dtype) ? NumericClass::kReassociated : NumericClass::kExact);
}

Result<std::vector<LaunchSpec>> prepare_plain(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  GemmArgs g{};
  fill(p, g);
  PlainDotArgs args{g.products, types_of(p)->types};
  LaunchSpec launch;
  launch.entry = "cpu.dot_plain";
  launch.grid = cut(args.products, 8 * items_for(p, args.products), 4, 64, 1);
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {
    {"dot", "cpu.gemv", probe_gemv, prepare_gemv, nullptr, true},
    {"dot", "cpu.gemm", probe_gemm, prepare_gemm, pack_gemm, true},
    {"dot", "cpu.dot_plain", row_major<probe_plain>, prepare_plain},
};

}  // namespace

bool set_batch(const Dims& batch, const std::vector<Dims>& strides, Products& s) {
  if (batch.size() > kMaxBatchRank) return false;
  s.batch_rank = static_cast<int32_t>(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    s.batch_dims[i] = batch[i];
    s.a_batch[i] = strides[0][i];
    s.b_batch[i] = strides[1][i];
    s.y_batch[i] = strides[2][i];
  }
  return true;
}

int64_t batches(const Products& s) {
  int64_t n = 1;
  for (int i = 0; i < s.batch_rank; ++i) n *= s.batch_dims[i];
  return n;
}

Reason check_dot(const Problem& p, GemmArgs& g) { return check(p, g); }

bool packs_right(const Problem& p, const GemmArgs& g) { return packs(p, g.products); }

double dot_flops(const Problem& p, const GemmArgs& g) { return 2 * work_of(p, g.products); }

LaunchSpec dot_launch(const Problem& p, std::string_view entry, Argument b, GemmArgs& g) {
  return launch_of(p, entry, b, 0, g);
}

uint32_t cut_products(const Problem& p, Products& s) { return cut(s, items_for(p, s), 48, 64, 1); }

uint32_t cut_narrow(const Problem& p, int64_t height, Products& s) {
  // Of some microseconds on the fastest processors.
  constexpr double kProducts = 6e6, kBytes = 3e5;
  const auto wanted = static_cast<int64_t>(
      std::clamp(std::max(work_of(p, s) / kProducts, bytes_of(p) / kBytes), 1.0, 32.0));
  return cut(s, wanted, 4 * height, 64, 1, 2 * height);
}

std::span<const Row> dot_rows() { return kRows; }
const Row& gemm_row() { return kRows[1]; }

}  // namespace tessera::kernels::cpu
