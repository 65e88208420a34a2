// Products on systolic arrays. R, C: rows and columns of one array.
#include <algorithm>
#include <cmath>

#include "tessera/cost/cycles.h"
#include "tessera/cost/product.h"

namespace tessera::cost {
namespace {

struct Array {
  double rows, columns;
  double streams;  // cycles for one row to enter
  chip::Dataflow flow;
};

// What streams through and what is folded over the array, by dataflow.
struct Folded {
  double stream, down, across;
};

Folded folded(const Array& array, double m, double n, double k) {
  switch (array.flow) {
    case chip::Dataflow::kOutputStationary:
      return {k, ceil_div(m, array.rows), ceil_div(n, array.columns)};
    case chip::Dataflow::kInputStationary:
      return {n, ceil_div(k, array.rows), ceil_div(m, array.columns)};
    case chip::Dataflow::kWeightStationary:
    case chip::Dataflow::kStep:
      break;
  }
  return {m, ceil_div(k, array.rows), ceil_div(n, array.columns)};
}

// Cycles of one array for its part of a product. With `pipelined` folds follow each other without
// a gap, as the next operand is loaded beside; then filling and draining count once.
double cycles_of(const Array& a, bool pipelined, double m, double n, double k) {
  if (!pipelined)
    return systolic_cycles(a.flow, static_cast<int64_t>(a.rows), static_cast<int64_t>(a.columns),
                           static_cast<int64_t>(m), static_cast<int64_t>(n),
                           static_cast<int64_t>(k));
  const Folded f = folded(a, m, n, k);
  // Loading what stays takes a cycle a row: a shorter stream waits for it.
  const double load = a.flow == chip::Dataflow::kOutputStationary ? 0 : a.rows;
  return f.down * f.across * std::max(f.stream * a.streams, load) + 2 * a.rows + a.columns - 2;
}

// Bytes from memory when blocks of c stay in the scratchpad while k streams by.
double blocked_reads(const Product& p, double scratch) {
  if (scratch <= 0) return p.a_memory + p.b_memory;
  double least = -1;
  for (double bm = 128; bm <= 16384; bm *= 2) {
    const double rows = std::min(bm, std::max(p.m, 1.0));
    const double bn = std::clamp(scratch / 2 / (4 * rows), 128.0, std::max(p.n, 128.0));
    const double reads = p.a_memory * ceil_div(p.n, bn) + p.b_memory * ceil_div(p.m, rows);
    if (least < 0 || reads < least) least = reads;
  }
  return std::max(least, p.a_memory + p.b_memory);
}

}  // namespace

Tally systolic_product(const Machine& machine, const Engaged& unit, const Product& p) {
  const chip::Unit& u = *unit.unit;
  const Array array{.rows = u.rows ? static_cast<double>(u.rows->value) : 128,
                    .columns = u.columns ? static_cast<double>(u.columns->value) : 128,
                    .streams = 1,
                    .flow = u.dataflow.value_or(chip::Dataflow::kWeightStationary)};
  Array timed = array;
  timed.streams = array.rows * array.columns / unit.rate->macs_per_cycle.value;
  const bool pipelined = machine.constant("fold_overlap", 0) > 0;
  const double arrays = unit.cores * static_cast<double>(u.per_core.value);
  const double row_step =
      u.rates.empty() || !unit.rate->m ? 1 : static_cast<double>(unit.rate->m->value);
  const double k = p.deep();
  // Arrays share the batch, then columns, then rows.
  double best = -1, part_m = 0, part_n = 0;
  for (double pm = 1; pm <= arrays; ++pm)
    for (double pn = 1; pn <= arrays; pn = pn < arrays ? std::min(pn * 2, arrays) : pn + 1) {
      const double m = round_up(ceil_div(p.m, pm), row_step);
      const double n = ceil_div(ceil_div(p.n, array.columns), pn) * array.columns;
      const double turns = ceil_div(p.batch * pm * pn, arrays);
      const double cycles =
          turns * cycles_of(timed, pipelined, pm > 1 ? m : round_up(p.m, row_step),
                            pn > 1 ? std::min(n, p.n) : p.n, k);
      if (best >= 0 && cycles >= best) continue;
      best = cycles;
      part_m = m;
      part_n = std::min(n, p.n);
    }
  Tally t;
  t.cycles = std::max(best, 0.0) * unit.passes;
  t.flops = p.flops();
  t.padded_flops = 2 * p.batch * round_up(p.m, row_step) * round_up(p.n, array.columns) *
                   round_up(k, array.rows);
  const double work = t.cycles / clock_at(unit, 1) / machine.matrix_efficiency(p.type, 1);
  double scratch = 0;
  const auto home = machine.chip().memory.find(
      u.operands.contains("c") ? u.operands.find("c")->second.memory : std::string());
  if (home != machine.chip().memory.end())
    scratch = static_cast<double>(home->second.capacity_bytes.value.value) *
              (home->second.core.empty() ? 1 : unit.cores);
  const double moved = blocked_reads(p, scratch) + p.c_memory;
  const double memory = moved / (machine.bandwidth() * machine.constant("stream_efficiency", 0.85));
  const bool stalls = machine.constant("without_stalls", 0) <= 0;
  // The first operands arrive and the last results leave with nothing beside them.
  const double ends = stalls ? machine.latency() * 2 : 0;
  t.seconds =
      stalls ? overlapped(machine.constant("overlap_order", 8), {work, memory}) + ends : work;
  t.bytes[std::string(machine.memory())] = moved;
  t.busy[std::string(unit.name)] = work;
  if (stalls) t.busy[std::string(machine.memory())] = memory;
  t.tile = fmt::format("m{:.0f} n{:.0f} of each array", part_m, part_n);
  return t;
}

}  // namespace tessera::cost
