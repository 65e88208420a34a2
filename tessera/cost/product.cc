#include "tessera/cost/product.h"

#include <algorithm>
#include <cmath>

namespace tessera::cost {

double Product::a_share() const {
  const double multiplied = batch * m * k * a_bytes;
  return multiplied > 0 && a_memory > 0 ? std::min(a_memory / multiplied, 1.0) : 1;
}

double clock_at(const Engaged& unit, double busy) {
  return unit.clock - (unit.clock - unit.sustained) * std::clamp(busy, 0.0, 1.0);
}

double cached_reads(const Product& p, double bm, double bn, double at_once, double cache) {
  const double once = p.a_memory + p.b_memory;
  if (once <= cache || at_once <= 0) return once;
  const double k = p.deep();
  const double rows = ceil_div(p.m, bm), columns = ceil_div(p.n, bn);
  const double tiles = p.batch * rows * columns;
  // Tiles at once form a block that is as square as it goes, in elements.
  const double down =
      std::clamp(std::round(std::sqrt(at_once * bn / bm)), 1.0, std::max(rows, 1.0));
  const double across = std::clamp(ceil_div(at_once, down), 1.0, std::max(columns, 1.0));
  const double a_rounds = ceil_div(columns, across), b_rounds = ceil_div(rows, down);
  // An operand that stays in half of the cache while the other streams is read once.
  const double a = p.a_memory <= cache / 2 ? p.a_memory : p.a_memory * a_rounds;
  const double b = p.b_memory <= cache / 2 ? p.b_memory : p.b_memory * b_rounds;
  const double all = tiles * k * (bm * p.a_bytes * p.a_share() + bn * p.b_bytes);
  return std::max(once, std::min(a + b, all));
}

Tally vector_product(const Machine& machine, const Engaged& unit, const Product& p) {
  Tally t;
  t.flops = t.padded_flops = p.flops();
  const double cores = unit.cores * static_cast<double>(unit.unit->per_core.value);
  // Rows of results are dealt out; lanes are filled along n.
  const double lanes = unit.rate->macs_per_cycle.value;
  const double rows = std::max(p.batch * p.m, 1.0);
  const double columns = p.n < lanes ? lanes : p.n;
  const double busiest = ceil_div(rows * ceil_div(columns, lanes), cores) * lanes * p.deep();
  const double work = busiest / (lanes * unit.clock) / machine.constant("vector_efficiency", 0.8);
  const double reads = cached_reads(p, 64, 64, cores, std::max(machine.cache_bytes(), 1.0));
  const double moved = reads + p.c_memory;
  const double efficiency =
      machine.constant("product_stream_efficiency", machine.constant("stream_efficiency", 0.85));
  const double memory = moved / (machine.bandwidth() * efficiency);
  // First loads and last stores, as of products on matrix units.
  const double ends = 2 * machine.latency() +
                      machine.constant("product_seconds", machine.constant("tile_seconds", 0));
  t.seconds = overlapped(machine.constant("overlap_order", 8), {work, memory}) + ends;
  t.bytes[std::string(machine.memory())] = moved;
  t.busy[std::string(unit.name)] = work;
  t.busy[std::string(machine.memory())] = memory;
  return t;
}

Result<Tally> product(const Machine& machine, const Product& p) {
  const auto matrix = machine.matrix(p.type);
  const auto vector = machine.vector(p.type == "tf32" || p.type == "hf32" ? "f32" : p.type);
  const bool vector_computes =
      vector && (vector->unit->rates.contains(p.type) || p.type == "tf32" || p.type == "hf32");
  if (!matrix && !vector_computes)
    return error(Code::kUnimplemented, "chip '{}' has no unit that multiplies {}",
                 machine.chip().id, p.type);
  std::optional<Tally> best;
  if (p.flops() <= 0) {
    // Nothing to multiply: zeros, if there is a result.
    best.emplace();
    best->seconds = p.c_memory / machine.bandwidth();
    best->bytes[std::string(machine.memory())] = p.c_memory;
  } else if (matrix) {
    const bool steps = !matrix->unit->dataflow || *matrix->unit->dataflow == chip::Dataflow::kStep;
    best = !steps                   ? systolic_product(machine, *matrix, p)
           : machine.chip().threads ? tiled_product(machine, *matrix, p)
                                    : staged_product(machine, *matrix, p);
  }
  if (vector_computes && p.flops() > 0) {
    Tally other = vector_product(machine, *vector, p);
    if (!best || other.seconds < best->seconds) best = std::move(other);
  }
  Tally t = *std::move(best);
  if (const auto lanes = machine.vector("f32");
      lanes && (p.epilogue.plain > 0 || p.epilogue_bytes > 0 || p.epilogue.exp > 0)) {
    const double work =
        p.batch * p.m * p.n * seconds_per_element(machine, *lanes, "f32", p.epilogue);
    const double memory =
        p.epilogue_bytes / (machine.bandwidth() * machine.constant("stream_efficiency", 0.85));
    t.busy[std::string(lanes->name)] += work;
    t.bytes[std::string(machine.memory())] += p.epilogue_bytes;
    t.busy[std::string(machine.memory())] += memory;
    t.seconds = overlapped(machine.constant("epilogue_order", 2), {t.seconds, work}) + memory;
  }
  t.kernel = "matmul";
  t.family = p.family;
  t.launch = launch_seconds(machine, Work::kMatrix);
  return t;
}

}  // namespace tessera::cost
