// rotary in f32: row cpu.rotary.
#include <algorithm>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/rotary_args.h"

namespace tessera::kernels::cpu {
namespace {

// Strides of all axes but the innermost, which is packed.
template <size_t kAxes>
bool outer_strides(const Operand& o, int64_t (&strides)[kAxes]) {
  const auto all = logical_strides(o);
  if (!all || all->size() != kAxes + 1 || (o.dims[kAxes] != 1 && (*all)[kAxes] != 1)) return false;
  for (size_t a = 0; a < kAxes; ++a) strides[a] = o.dims[a] == 1 ? 0 : (*all)[a];
  return true;
}

Reason fill(const Problem& p, RotaryArgs& a) {
  Reason why;
  for (size_t i : {0, 1, 2}) why.input_is(p, i, DType::kF32);
  why.need(!p.has(3), "positions: the tables are to be gathered first");
  if (!why.fine()) return why;
  const Operand &x = p.in[0], &y = p.out[0];
  why.need(outer_strides(x, a.x), "the innermost axis of input 0 is not packed");
  why.need(outer_strides(y, a.y), "the innermost axis of output 0 is not packed");
  why.need(outer_strides(p.in[1], a.cos) && outer_strides(p.in[2], a.sin),
           "the innermost axis of a table is not packed");
  a.H = x.dims[1];
  a.S = x.dims[2];
  a.E = x.dims[3];
  a.half = (p.attrs.i("dim") > 0 ? p.attrs.i("dim") : a.E) / 2;
  a.rows = x.dims[0] * a.H * a.S;
  a.chunk = std::max<int64_t>(1, 8192 / std::max<int64_t>(a.E, 1));
  a.interleaved = p.attrs.i("interleaved") != 0;
  for (size_t i : {1, 2})
    why.need((p.in[i].dims[0] == x.dims[0] || p.in[i].dims[0] == 1) &&
                 (p.in[i].dims[1] == a.S || p.in[i].dims[1] == 1),
             "tables of [{}] for {} x {} steps", fmt::join(p.in[i].dims, ","), x.dims[0], a.S);
  return why;
}

Claim probe(const Problem& p) {
  RotaryArgs args{};
  if (const Reason why = fill(p, args); !why.fine()) return why.refusal();
  return claim(3 * static_cast<double>(p.in[0].count()), bytes_of(p), 0.3,
               NumericClass::kReassociated);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  RotaryArgs args{};
  std::vector<LaunchSpec> launches;
  if (const Reason why = fill(p, args); !why.fine())
    return error(Code::kInternal, "prepare without a claim: {}", why.text());
  if (p.out[0].count() == 0) return launches;
  LaunchSpec launch;
  launch.entry = "cpu.rotary";
  launch.grid = items(args.rows, args.chunk);
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {{"rotary", "cpu.rotary", probe, prepare}};

}  // namespace

std::span<const Row> rotary_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
