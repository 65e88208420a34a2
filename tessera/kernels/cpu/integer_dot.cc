// dot_integer(a, b, a_zero?, b_zero?) and the steps behind it: row cpu.integer_dot.
#include <algorithm>

#include "tessera/kernels/cpu/dot.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/integer.h"

namespace tessera::kernels::cpu {
namespace {

// Work of an item, about ten microseconds.
constexpr double kProducts = 4e6;

struct Shape {
  IntegerDotArgs args{};
  IntegerPack pack{};
  int64_t matrices = 1;  // of b
};

// a (batch..., M, K), b (batch..., K, N), row-major and packed; rows of a may lie apart.
Reason fill(const Problem& p, Shape& shape) {
  Reason why;
  if (!why.need(p.has(0) && p.has(1) && p.out[0].present, "an operand is missing")) return why;
  const Operand &a = p.in[0], &b = p.in[1], &y = p.out[0];
  for (const Operand* o : {&a, &b, &y}) {
    why.need(o->layout.empty(), "an operand has layout '{}', need row-major", o->layout);
    why.need(o->strides.empty(), "an operand is strided");
    why.need(op::element_count(o->dims).has_value(), "impossible sizes {}", op::to_string(o->dims));
  }
  if (!why.fine()) return why;
  Products& s = shape.args.products;
  const bool row = a.rank() == 1, column = b.rank() == 1;
  s.K = a.dims.back();
  s.M = row ? 1 : a.dims[a.dims.size() - 2];
  s.N = column ? 1 : b.dims.back();
  auto batch_of = [](const Operand& o) {
    return o.rank() > 2 ? Dims(o.dims.begin(), o.dims.end() - 2) : Dims{};
  };
  Dims batch(y.dims.begin(), y.dims.end() - !row - !column);
  auto along = [&](const Operand& o, int64_t matrix) {
    const Dims own = batch_of(o);
    Dims strides = broadcast_strides(own, batch);
    for (int64_t& d : strides) d *= matrix;
    return strides;
  };
  shape.pack = {.terms = 1,
                .term_stride = 0,
                .outer = 1,
                .outer_stride = 0,
                .inner = s.K,
                .inner_stride = s.N,
                .columns = s.N,
                .column_stride = 1,
                .moved = 0,
                .stored_signed = 0};
  set_signs(p, shape.pack);
  shape.matrices = s.K * s.N > 0 ? b.count() / (s.K * s.N) : 1;
  std::vector<Dims> strides{along(a, s.M * s.K), along(b, packed_bytes(shape.pack)),
                            op::strides_of(batch)};
  for (int64_t& d : strides[2]) d *= s.M * s.N;
  merge_axes(batch, strides);
  // Rows that share a matrix of b are rows of one product.
  if (strides[1].back() == 0 && (batch.back() == 1 || strides[0].back() == s.M * s.K)) {
    s.M *= batch.back();
    batch.pop_back();
    for (Dims& d : strides) d.pop_back();
  }
  if (!why.need(set_batch(batch, strides, s), "batch has more than {} axes that do not merge",
                kMaxBatchRank))
    return why;
  shape.args.a_row = s.K;
  shape.args.y_row = s.N;
  return why;
}

Reason check(const Problem& p, Shape& shape) {
  Reason why = fill(p, shape);
  if (!why.fine()) return why;
  const Products& s = shape.args.products;
  why = check_integer(p, s.N);
  // A rank-1 zero point of a is one for each row.
  why.need(!p.has(3) || p.in[3].count() == 1 || p.in[1].rank() == 2,
           "zero points of columns of {} matrices", shape.matrices);
  why.need(!p.fused() || p.in[1].rank() > 1, "takes no steps behind a product with a vector");
  if (!why.fine()) return why;
  const std::string refusal = no_integer_result(p, {p.anchor_result().dims});
  why.need(refusal.empty(), "{}", refusal);
  return why;
}

double work_of(const Products& s) {
  return static_cast<double>(batches(s) * s.M) * static_cast<double>(s.N) *
         static_cast<double>(s.K);
}

Claim probe(const Problem& p) {
  Shape shape;
  const Reason why = check(p, shape);
  if (!why.fine()) return why.refusal();
  const Products& s = shape.args.products;
  const double n = static_cast<double>(std::max<int64_t>(s.N, 1));
  const double k = static_cast<double>(std::max<int64_t>(s.K, 1));
  Claim c = claim(2 * work_of(s) * static_cast<double>(panels_of(s.N) * kPanel) / n, bytes_of(p),
                  k / (k + 32), integer_class(p));
  const Bytes size(shape.matrices * packed_bytes(shape.pack) + kTileSlack);
  if (p.in[1].constant)
    c.packed.push_back({1, size});
  else
    c.workspace = size;
  return c;
}

// Items of some ten microseconds, which read as little as possible twice.
uint32_t cut(Products& s) {
  const int64_t all = std::max<int64_t>(batches(s), 1);
  const auto wanted = static_cast<int64_t>(std::clamp(work_of(s) / kProducts, 1.0, 32.0) /
                                           static_cast<double>(all)) +
                      1;
  constexpr int64_t kLeastRows = 24, kLeastCols = 64;
  const int64_t n_most = std::max<int64_t>(s.N / kLeastCols, 1),
                m_most = std::max<int64_t>(s.M / kLeastRows, 1);
  const int64_t n_parts = s.N > s.M ? std::min(n_most, wanted)
                                    : std::min(n_most, ceil_div(wanted, m_most)),
                m_parts = std::min(m_most, ceil_div(wanted, n_parts));
  s.n_step = ceil_div(std::max<int64_t>(ceil_div(s.N, n_parts), 1), kPanel) * kPanel;
  s.m_step = std::max<int64_t>(ceil_div(s.M, m_parts), 1);
  s.n_items = ceil_div(s.N, s.n_step);
  s.m_items = ceil_div(s.M, s.m_step);
  return items(all * s.m_items * s.n_items, 1);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  Shape shape;
  check(p, shape);
  IntegerDotArgs& args = shape.args;
  Products& s = args.products;
  const bool constant = p.in[1].constant;
  if (!constant) {
    LaunchSpec pack;
    pack.entry = "cpu.integer_pack";
    pack.grid = items(shape.matrices, 1);
    pack.arguments = {{Argument::kInput, 1, 0}, {Argument::kWorkspace, 0, 0}};
    pack.set_constants(IntegerPackArgs{shape.pack, s.K * s.N});
    launches.push_back(std::move(pack));
  }
  LaunchSpec launch;
  launch.entry = "cpu.integer_dot";
  launch.grid = cut(s);
  launch.arguments = {{Argument::kInput, 0, 0},
                      {constant ? Argument::kPacked : Argument::kWorkspace, 0, 0},
                      {Argument::kOutput, 0, 0}};
  make_integer(p, {p.anchor_result().dims}, launch.arguments, args.terms, args.result);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  Shape shape;
  fill(p, shape);
  const auto* b = reinterpret_cast<const uint8_t*>(source);
  auto* packed = reinterpret_cast<uint8_t*>(target);
  for (int64_t i = 0; i < shape.matrices; ++i)
    pack_integer(shape.pack, b + i * shape.args.products.K * shape.args.products.N,
                 packed + i * packed_bytes(shape.pack));
  return {};
}

void integer_pack(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const IntegerPackArgs*>(launch->constants);
  const auto* b = static_cast<const uint8_t*>(launch->ranges[0].data);
  auto* packed = static_cast<uint8_t*>(launch->ranges[1].data);
  for (int64_t i = first; i < int64_t{first} + count; ++i)
    pack_integer(a.pack, b + i * a.stride, packed + i * packed_bytes(a.pack));
}

constexpr Row kRows[] = {{"dot_integer", "cpu.integer_dot", probe, prepare, pack, true}};
constexpr Entry kEntries[] = {{"cpu.integer_pack", integer_pack}};

}  // namespace

Family integer_dot_family() { return {kRows, kEntries}; }

}  // namespace tessera::kernels::cpu
