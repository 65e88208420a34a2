// conv(x, w) as an implicit product: rows are pixels of the output, k runs over taps and channels,
// and the loads of x go by windows, so that no window is ever laid out in memory.
//
// N, C, H, W: of x; G: groups; F: channels of the result; R, S: taps; P, Q: height and width of the
// result. 1-D convolutions have a height of 1.
#include <algorithm>

#include "tessera/base/element.h"
#include "tessera/codegen/sim/dot.h"
#include "tessera/codegen/sim/matrix.h"
#include "tessera/op/window.h"
#include "tessera/tile/engine_chip.h"
#include "tessera/tile/frame.h"

namespace tessera::codegen::sim {
namespace {

using engine::Expr;
using engine::Index;
using tile::refuse;

constexpr int64_t kAllTaps = 256;  // so many products of a window are taken at once
constexpr int64_t kLine = 256;     // pixels of a line in one tile, at most

engine::Buffer argument(std::string name, int range, DType dtype, op::Dims dims, op::Dims strides) {
  engine::Buffer b;
  b.name = std::move(name);
  b.dtype = dtype;
  b.offset = range;
  for (int64_t d : dims) b.dims.emplace_back(d);
  b.strides = std::move(strides);
  return b;
}

// (n, c, h, w) of a tensor that may lack its height.
Result<std::pair<op::Dims, op::Dims>> as_image(const op::Operand& o) {
  TRY_ASSIGN(op::Dims strides, tile::operand_strides(o));
  op::Dims dims = o.dims;
  if (dims.size() == 3) {
    dims.insert(dims.begin() + 2, 1);
    strides.insert(strides.begin() + 2, 0);
  }
  return std::pair(std::move(dims), std::move(strides));
}

}  // namespace

Result<Multiplication> conv(const chip::Chip& chip, const op::Problem& p, const op::Operand& out) {
  TRY_ASSIGN(const engine::MatrixPath path, engine::find_matrix_path(chip));
  TRY_ASSIGN(const std::string compute, compute_type(chip, p));
  const auto stored = engine::stored_type(compute);
  const chip::Rate& rate = chip.units.find(path.unit)->second.rates.find(compute)->second;
  const auto sums = dtype_from_name(rate.accumulate.empty() ? compute : rate.accumulate);
  if (!stored || !sums || bits_of(*stored) < 8) return refuse("convolutions of {}", compute);
  if (out.dtype != *sums && !(is_float(out.dtype) && is_float(*sums)))
    return refuse("sums of {} become no {}", name_of(*sums), name_of(out.dtype));
  const int rank = p.in[0].rank();
  if (rank != 3 && rank != 4) return refuse("a convolution of {} axes", rank - 2);
  if (!p.in[1].constant) return refuse("weights that are computed");
  TRY_ASSIGN(const op::Window window, op::window_of(p.attrs, static_cast<size_t>(rank - 2)));

  Multiplication m;
  m.packs_b = true;
  op::Operand x = p.in[0];
  if (x.dtype != *stored) {
    m.convert_a = *stored;
    x.layout.clear();
    x.strides.clear();
  }
  TRY_ASSIGN(const auto image, as_image(x));
  TRY_ASSIGN(const auto result, as_image(out));
  const op::Dims &xd = image.first, &yd = result.first;
  op::Dims wd = p.in[1].dims;
  if (wd.size() == 3) wd.insert(wd.begin() + 2, 1);
  // Strides, dilations and pads at the beginning, of height and width.
  int64_t step[2] = {1, 1}, spread[2] = {1, 1}, pad[2] = {0, 0};
  for (size_t a = 0; a < static_cast<size_t>(rank - 2); ++a) {
    const size_t to = a + static_cast<size_t>(4 - rank);
    step[to] = window.strides[a];
    spread[to] = window.dilations[a];
    pad[to] = window.pads(a, xd[2 + to], wd[2 + to]).first;
  }
  const int64_t G = p.attrs.i("groups", 1), N = xd[0], C = wd[1], F = wd[0] / G, R = wd[2],
                S = wd[3], P = yd[2], Q = yd[3];
  if (N * C * F * R * S * P * Q == 0) return refuse("a convolution without elements");
  if (G > 1 && C * R * S < 32) return refuse("groups of {} products", C * R * S);
  m.packed_size = Bytes(G * F * C * R * S * (bits_of(*stored) / 8));
  m.flops = 2.0 * static_cast<double>(N * G * F) * static_cast<double>(C * R * S) *
            static_cast<double>(P * Q);

  const bool all_taps = R * S * C <= kAllTaps;
  const int64_t line = std::min(Q, kLine);
  TRY_ASSIGN(const Tiling tiling, choose_tiling(chip, path,
                                                {.compute = compute,
                                                 .stored = *stored,
                                                 .sums = *sums,
                                                 .out = out.dtype,
                                                 .batch = N * G * ((Q + line - 1) / line),
                                                 .m = P * line,
                                                 .n = F,
                                                 .k = R * S * C,
                                                 .rows_unit = line,
                                                 .inner_unit = all_taps ? R * S * C : 0,
                                                 .inner_most = all_taps ? R * S * C : C}));
  Product job;
  job.name = "conv";
  job.compute = compute;
  job.stored = *stored;
  job.sums = *sums;
  const int64_t lines = std::max<int64_t>(1, tiling.rows / line);
  job.rows = lines * line;
  job.columns = tiling.columns;
  job.inner = std::min(tiling.inner, all_taps ? R * S * C : C);
  job.step = std::min(tiling.step, job.inner);
  const int64_t pb = (P + lines - 1) / lines, qb = (Q + line - 1) / line,
                fb = (F + job.columns - 1) / job.columns,
                cb = all_taps ? 1 : (C + job.inner - 1) / job.inner;
  job.items = N * G * pb * qb * fb;
  job.chunks = all_taps ? 1 : R * S * cb;
  job.t = job.program.symbol("t");
  job.chunk = job.program.symbol("chunk");
  const Expr t = Expr::symbol(job.t), chunk = Expr::symbol(job.chunk);
  const Expr f0 = t % Expr(fb) * Expr(job.columns), q0 = t / Expr(fb) % Expr(qb) * Expr(line),
             p0 = t / Expr(fb * qb) % Expr(pb) * Expr(lines), g = t / Expr(fb * qb * pb) % Expr(G),
             n = t / Expr(fb * qb * pb * G);
  const Expr c0 = all_taps ? Expr(0) : chunk % Expr(cb) * Expr(job.inner);
  const Expr tap = all_taps ? Expr(0) : chunk / Expr(cb);
  const Expr r0 = tap / Expr(S), s0 = tap % Expr(S);
  const auto left = [](int64_t tile, int64_t all, const Expr& start) {
    return all % tile == 0 ? Expr(tile) : min(Expr(tile), Expr(all) - start);
  };
  const engine::StepAxis h{"_h", left(lines, P, p0)}, w{"_w", left(line, Q, q0)},
      f{"_f", left(job.columns, F, f0)};
  const auto window_index = [&](size_t axis, size_t a, const Expr& first, const Expr& tap_of,
                                size_t tap_axis) {
    Index i = along(axis, first * Expr(step[a]) + tap_of * Expr(spread[a]) - Expr(pad[a]), step[a]);
    if (all_taps) {
      i.coefficients.resize(std::max(i.coefficients.size(), tap_axis + 1), 0);
      i.coefficients[tap_axis] = spread[a];
    }
    return i;
  };
  // Axes: h, w, then r, s, c or c alone.
  const size_t c_axis = all_taps ? 4 : 2;
  std::vector<engine::StepAxis> inner;
  if (all_taps)
    inner = {{"_r", R}, {"_s", S}, {"_c", C}};
  else
    inner = {{"_c", left(job.inner, C, c0)}};
  const bool padded = true;
  job.a = {argument("a", 0, *stored, xd, image.second),
           {h, w},
           inner,
           {Index{n, {}}, along(c_axis, g * Expr(C) + c0), window_index(0, 0, p0, r0, 2),
            window_index(1, 1, q0, s0, 3)},
           image.second[1] != 1,
           padded};
  // Weights lie (g, tap, c, f).
  std::vector<Index> of_b;
  if (all_taps) {
    Index taps = along(2, 0, 1);
    taps.coefficients[1] = S;
    of_b = {Index{g, {}}, taps, along(3), along(0, f0)};
  } else {
    of_b = {Index{g, {}}, Index{tap, {}}, along(1, c0), along(0, f0)};
  }
  job.b = {argument("b", 1, *stored, {G, R * S, C, F}, {}), {f}, inner, of_b, true, false};
  job.c = {argument("c", 2, out.dtype, yd, result.second),
           {h, w, f},
           {},
           {Index{n, {}}, along(2, g * Expr(F) + f0), along(0, p0), along(1, q0)},
           false,
           false};
  TRY_ASSIGN(m.program, matrix(chip, path, std::move(job)));
  return m;
}

Status pack_conv(const op::Problem& p, DType to, const std::byte* source, std::byte* target) {
  const op::Operand& w = p.in[1];
  TRY_ASSIGN(const op::Dims strides, tile::operand_strides(w));
  const int64_t G = p.attrs.i("groups", 1), F = w.dims[0] / G, C = w.dims[1];
  int64_t taps = 1;
  for (size_t d = 2; d < w.dims.size(); ++d) taps *= w.dims[d];
  int64_t out = 0;
  for (int64_t g = 0; g < G; ++g)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < C; ++c)
        for (int64_t f = 0; f < F; ++f, ++out) {
          int64_t from = (g * F + f) * strides[0] + c * strides[1], rest = tap;
          for (size_t d = w.dims.size(); d-- > 2;) {
            from += rest % w.dims[d] * strides[d];
            rest /= w.dims[d];
          }
          if (w.dtype == to)
            store_bits(to, target, out, load_bits(to, source, from));
          else
            store_f64(to, target, out, load_f64(w.dtype, source, from));
        }
  return {};
}

}  // namespace tessera::codegen::sim
