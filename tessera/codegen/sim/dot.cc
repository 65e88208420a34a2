#include "tessera/codegen/sim/dot.h"

#include <algorithm>

#include "tessera/base/element.h"
#include "tessera/codegen/sim/matrix.h"
#include "tessera/tile/engine_chip.h"
#include "tessera/tile/frame.h"

namespace tessera::codegen::sim {
namespace {

using engine::Expr;
using engine::Index;
using tile::refuse;

// M, N, K: extents; batch: of all axes before, outermost first.
struct Shape {
  op::Dims batch, a_batch, b_batch;  // strides of a and b along batch
  int64_t m = 1, n = 1, k = 1;
  int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;  // strides
};

int64_t at_end(const op::Dims& dims, int from_end, int64_t otherwise) {
  const int at = static_cast<int>(dims.size()) - 1 - from_end;
  return at < 0 ? otherwise : dims[static_cast<size_t>(at)];
}

Result<Shape> shape_of(const op::Problem& p, bool a_packed, bool b_packed) {
  op::Operand a = p.in[0], b = p.in[1];
  const bool row = a.rank() == 1, column = b.rank() == 1;
  const int a_inner = !row && p.attrs.i("transpose_a") != 0 ? 1 : 0;
  const int b_inner = column || p.attrs.i("transpose_b") != 0 ? 0 : 1;
  const auto strides_of = [](op::Operand& o, bool packed) -> Result<op::Dims> {
    if (packed) {
      o.layout.clear();
      o.strides.clear();
    }
    return tile::operand_strides(o);
  };
  TRY_ASSIGN(const op::Dims as, strides_of(a, a_packed));
  TRY_ASSIGN(const op::Dims bs, strides_of(b, b_packed));
  Shape s;
  const int batches = std::max({a.rank(), b.rank(), 2}) - 2;
  for (int k = batches; k-- > 0;) {
    const int64_t of_a = at_end(a.dims, k + 2, 1), of_b = at_end(b.dims, k + 2, 1);
    const int64_t n = of_a == 1 ? of_b : of_a;
    if (n == 1) continue;
    s.batch.push_back(n);
    s.a_batch.push_back(of_a == 1 ? 0 : at_end(as, k + 2, 0));
    s.b_batch.push_back(of_b == 1 ? 0 : at_end(bs, k + 2, 0));
  }
  s.m = row ? 1 : at_end(a.dims, 1 - a_inner, 1);
  s.a_m = row ? 0 : at_end(as, 1 - a_inner, 0);
  s.n = column ? 1 : at_end(b.dims, 1 - b_inner, 1);
  s.b_n = column ? 0 : at_end(bs, 1 - b_inner, 0);
  s.k = at_end(a.dims, a_inner, 1);
  s.a_k = at_end(as, a_inner, 0);
  s.b_k = at_end(bs, b_inner, 0);
  return s;
}

// Batches of a that share b are rows of one product, where their rows follow one another.
void join_rows(Shape& s, op::Dims& c_batch, int64_t& c_m) {
  while (!s.batch.empty() && s.b_batch.back() == 0 && s.a_batch.back() == s.m * s.a_m &&
         c_batch.back() == s.m * c_m) {
    s.m *= s.batch.back();
    for (op::Dims* d : {&s.batch, &s.a_batch, &s.b_batch, &c_batch}) d->pop_back();
  }
}

engine::Buffer argument(std::string name, int range, DType dtype, op::Dims dims, op::Dims strides) {
  engine::Buffer b;
  b.name = std::move(name);
  b.dtype = dtype;
  b.offset = range;
  for (int64_t d : dims) b.dims.emplace_back(d);
  b.strides = std::move(strides);
  return b;
}

op::Dims joined(op::Dims a, std::initializer_list<int64_t> b) {
  a.insert(a.end(), b);
  return a;
}

}  // namespace

Result<std::string> compute_type(const chip::Chip& chip, const op::Problem& p) {
  TRY_ASSIGN(const engine::MatrixPath path, engine::find_matrix_path(chip));
  const chip::Unit& unit = chip.units.find(path.unit)->second;
  const DType a = p.in[0].dtype, b = p.in[1].dtype;
  const std::string allowed(p.attrs.has("compute") ? name_of(p.attrs.dtype("compute")) : "");
  if (a == DType::kF32 && b == DType::kF32 && unit.rates.contains(allowed)) return allowed;
  if (a == b && unit.rates.contains(name_of(a))) return std::string(name_of(a));
  return refuse(
      "{} multiplies no {} by {}{}", chip.id, name_of(a), name_of(b),
      a == DType::kF32 && b == DType::kF32 ? "; --precision says what it may round to" : "");
}

Result<Multiplication> dot(const chip::Chip& chip, const op::Problem& p, const op::Operand& out) {
  TRY_ASSIGN(const engine::MatrixPath path, engine::find_matrix_path(chip));
  TRY_ASSIGN(const std::string compute, compute_type(chip, p));
  const auto stored = engine::stored_type(compute);
  const chip::Rate& rate = chip.units.find(path.unit)->second.rates.find(compute)->second;
  const auto sums = dtype_from_name(rate.accumulate.empty() ? compute : rate.accumulate);
  if (!stored || !sums) return refuse("{} sums {} in no type of elements", chip.id, compute);
  const DType result = out.dtype;
  if (result != *sums && !(is_float(result) && is_float(*sums)))
    return refuse("sums of {} become no {}", name_of(*sums), name_of(result));
  if (bits_of(*stored) < 8) return refuse("elements of {}", name_of(*stored));

  Multiplication m;
  if (p.in[0].dtype != *stored) m.convert_a = *stored;
  m.packs_b = p.in[1].constant;
  if (!m.packs_b && p.in[1].dtype != *stored) m.convert_b = *stored;
  TRY_ASSIGN(Shape s, shape_of(p, m.convert_a.has_value(), m.packs_b || m.convert_b.has_value()));
  if (s.m == 0 || s.n == 0 || s.k == 0) return refuse("a product without elements");
  TRY_ASSIGN(const op::Dims out_strides, tile::operand_strides(out));
  op::Dims c_batch;
  int64_t c_m = 0, c_n = 0;
  {
    // Dimensions of the result: batch, m, n; those of 1 are left out of `batch`.
    size_t d = out.dims.size();
    if (p.in[1].rank() != 1) c_n = out_strides[--d];
    if (p.in[0].rank() != 1) c_m = out_strides[--d];
    for (size_t k = 0; k < d; ++k)
      if (out.dims[k] != 1) c_batch.push_back(out_strides[k]);
  }
  if (m.packs_b) {
    // As pack_dot lays it: (batch of b, k, n).
    int64_t count = 1;
    op::Dims strides;
    const op::Operand& b = p.in[1];
    op::Dims own;  // extents of b's own batch axes, by axis of s.batch
    for (size_t k = 0; k < s.batch.size(); ++k) own.push_back(s.b_batch[k] == 0 ? 1 : s.batch[k]);
    strides.assign(own.size(), 0);
    int64_t step = s.k * s.n;
    for (size_t k = own.size(); k-- > 0;) {
      if (own[k] != 1) strides[k] = step;
      step *= own[k];
    }
    count = step;
    s.b_batch = strides;
    s.b_k = s.n;
    s.b_n = 1;
    if (count != b.count()) return refuse("weights that are spread");
    m.packed_size = Bytes(count * (bits_of(*stored) / 8));
  }
  join_rows(s, c_batch, c_m);
  int64_t batch = 1;
  for (int64_t d : s.batch) batch *= d;
  m.flops = 2.0 * static_cast<double>(batch) * static_cast<double>(s.m) * static_cast<double>(s.n) *
            static_cast<double>(s.k);
  TRY_ASSIGN(const Tiling tiling, choose_tiling(chip, path,
                                                {.compute = compute,
                                                 .stored = *stored,
                                                 .sums = *sums,
                                                 .out = result,
                                                 .batch = batch,
                                                 .m = s.m,
                                                 .n = s.n,
                                                 .k = s.k}));
  Product job;
  job.name = "dot";
  job.compute = compute;
  job.stored = *stored;
  job.sums = *sums;
  job.rows = tiling.rows;
  job.columns = tiling.columns;
  job.inner = tiling.inner;
  job.step = tiling.step;
  const int64_t mb = (s.m + job.rows - 1) / job.rows, nb = (s.n + job.columns - 1) / job.columns;
  job.items = batch * mb * nb;
  job.chunks = (s.k + job.inner - 1) / job.inner;
  job.t = job.program.symbol("t");
  job.chunk = job.program.symbol("chunk");
  const Expr t = Expr::symbol(job.t), chunk = Expr::symbol(job.chunk);
  const Expr n0 = t % Expr(nb) * Expr(job.columns), m0 = t / Expr(nb) % Expr(mb) * Expr(job.rows);
  const Expr k0 = chunk * Expr(job.inner);
  const auto left = [](int64_t tile, int64_t all, const Expr& start) {
    return all % tile == 0 ? Expr(tile) : min(Expr(tile), Expr(all) - start);
  };
  const engine::StepAxis i{"_i", left(job.rows, s.m, m0)}, j{"_j", left(job.columns, s.n, n0)},
      k{"_k", left(job.inner, s.k, k0)};
  std::vector<Index> z;
  Expr rest = t / Expr(mb * nb);
  for (size_t d = s.batch.size(); d-- > 0;) {
    z.insert(z.begin(), Index{d == 0 ? rest : rest % Expr(s.batch[d]), {}});
    rest = rest / Expr(s.batch[d]);
  }
  const auto indices = [&](Index first, Index second) {
    std::vector<Index> all = z;
    all.push_back(std::move(first));
    all.push_back(std::move(second));
    return all;
  };
  if (s.batch.size() + 2 > engine::kMaxDims) return refuse("{} batch axes", s.batch.size());
  job.a = {
      argument("a", 0, *stored, joined(s.batch, {s.m, s.k}), joined(s.a_batch, {s.a_m, s.a_k})),
      {i},
      {k},
      indices(along(0, m0), along(1, k0)),
      s.a_k != 1 && s.a_m == 1,
      false};
  job.b = {
      argument("b", 1, *stored, joined(s.batch, {s.k, s.n}), joined(s.b_batch, {s.b_k, s.b_n})),
      {j},
      {k},
      indices(along(1, k0), along(0, n0)),
      s.b_k != 1 && s.b_n == 1,
      false};
  job.c = {argument("c", 2, result, joined(s.batch, {s.m, s.n}), joined(c_batch, {c_m, c_n})),
           {i, j},
           {},
           indices(along(0, m0), along(1, n0)),
           false,
           false};
  TRY_ASSIGN(m.program, matrix(chip, path, std::move(job)));
  return m;
}

Status pack_dot(const op::Problem& p, DType to, const std::byte* source, std::byte* target) {
  const op::Operand& b = p.in[1];
  TRY_ASSIGN(const op::Dims strides, tile::operand_strides(b));
  const bool transposed = b.rank() > 1 && p.attrs.i("transpose_b") != 0;
  const int64_t k = b.rank() == 1 ? b.dims[0] : at_end(b.dims, transposed ? 0 : 1, 1);
  const int64_t n = b.rank() == 1 ? 1 : at_end(b.dims, transposed ? 1 : 0, 1);
  const int64_t sk = b.rank() == 1 ? strides[0] : at_end(strides, transposed ? 0 : 1, 0);
  const int64_t sn = b.rank() == 1 ? 0 : at_end(strides, transposed ? 1 : 0, 0);
  const size_t batches = b.rank() > 2 ? b.dims.size() - 2 : 0;
  op::Dims now(batches, 0);
  int64_t out = 0;
  while (true) {
    int64_t base = 0;
    for (size_t d = 0; d < batches; ++d) base += now[d] * strides[d];
    for (int64_t x = 0; x < k; ++x)
      for (int64_t y = 0; y < n; ++y, ++out) {
        const int64_t from = base + x * sk + y * sn;
        if (b.dtype == to)
          store_bits(to, target, out, load_bits(to, source, from));
        else
          store_f64(to, target, out, load_f64(b.dtype, source, from));
      }
    size_t d = batches;
    while (d > 0 && ++now[d - 1] == b.dims[d - 1]) now[--d] = 0;
    if (d == 0) return {};
  }
}

}  // namespace tessera::codegen::sim
