// Products on cores whose engines feed a matrix unit through memories: a tile of c stays in the
// unit's memory while parts of a and b come by, all engines at once, each in order.
//
//   device -> (L1) -> a, b -> unit -> c -> (vector memory) -> device
#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/cost/cycles.h"
#include "tessera/cost/product.h"
#include "tessera/cost/stream.h"

namespace tessera::cost {
namespace {

constexpr std::array<double, 13> kSides{16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512};

struct Place {
  std::string name;
  double bytes = 0;
  bool shared = false;  // with another operand
  double copies = 2;    // of an operand: one is loaded while the other is used
};

// Engines by number, so that trying a tile allocates nothing.
constexpr size_t kMostEngines = 8;
using Cycles = std::array<double, kMostEngines>;

struct Copy {
  size_t engine = 0;
  const chip::Route* route = nullptr;
};

struct Ways {
  std::vector<Copy> a, b, c;
  std::vector<std::string_view> engines;
};

// The chip's part that does not depend on the tile.
struct Figures {
  Place a, b, c;
  Ways ways;
  double clock, unit_clock, cores;
  double start;        // cycles of a copy besides its bytes
  double accumulator;  // bytes of a sum
  double step_m, step_n, step_k;
};

double step_of(const std::optional<chip::Count>& step) {
  return step ? static_cast<double>(step->value) : 1;
}

Place place_of(const chip::Chip& chip, const chip::Unit& unit, const char* operand) {
  const auto found = unit.operands.find(operand);
  if (found == unit.operands.end()) return {};
  const auto memory = chip.memory.find(found->second.memory);
  if (memory == chip.memory.end()) return {found->second.memory};
  Place place{found->second.memory, static_cast<double>(memory->second.capacity_bytes.value.value)};
  // Registers are renamed or loaded just in time.
  if (memory->second.kind == chip::MemoryKind::kRegisters) place.copies = 1;
  return place;
}

Figures figures_of(const Machine& machine, const Engaged& unit) {
  const chip::Chip& chip = machine.chip();
  const chip::Unit& u = *unit.unit;
  Figures f{.a = place_of(chip, u, "a"),
            .b = place_of(chip, u, "b"),
            .c = place_of(chip, u, "c"),
            .ways = {},
            .clock = chip.cores.at(u.core).clock_hz.value,
            .unit_clock = unit.clock,
            .cores = unit.cores,
            .start = machine.constant("copy_start_cycles", 0),
            .accumulator = 4,
            .step_m = step_of(unit.rate->m),
            .step_n = step_of(unit.rate->n),
            .step_k = step_of(unit.rate->k)};
  f.a.shared = f.a.name == f.b.name || f.a.name == f.c.name;
  const auto numbered = [&](const std::vector<Leg>& legs) {
    std::vector<Copy> result;
    for (const Leg& leg : legs) {
      auto& names = f.ways.engines;
      const auto at = std::find(names.begin(), names.end(), leg.engine);
      result.push_back({static_cast<size_t>(at - names.begin()), leg.route});
      if (at == names.end() && names.size() < kMostEngines) names.push_back(leg.engine);
      result.back().engine = std::min(result.back().engine, kMostEngines - 1);
    }
    return result;
  };
  f.ways.a = numbered(machine.way(machine.memory(), f.a.name));
  f.ways.b = numbered(machine.way(machine.memory(), f.b.name));
  f.ways.c = numbered(machine.way(f.c.name, machine.memory()));
  return f;
}

struct Sides {
  double m, n, k;
  bool two_results;  // one leaves while the next is computed
};

// Whether a tile fits, with two of each operand so that copies run beside the unit.
bool fits(const Figures& f, const Product& p, Sides& s) {
  const double result = s.m * s.n * f.accumulator;
  if (f.a.bytes <= 0) return true;
  if (f.a.shared) {
    s.two_results = false;
    return f.a.copies * s.k * (s.m * p.a_bytes + s.n * p.b_bytes) + result <= f.a.bytes;
  }
  s.two_results = 2 * result <= f.c.bytes;
  return 2 * s.m * s.k * p.a_bytes <= f.a.bytes && 2 * s.n * s.k * p.b_bytes <= f.b.bytes &&
         result <= f.c.bytes;
}

struct Timed {
  double seconds = -1, first = 0;
  double unit = 0;  // cycles of one core
  double bytes = 0, memory = 0;
  Cycles engines{};  // of one core
  Sides sides{};
  double split = 1;
};

// Adds the cycles of copying `bytes` in `count` parts.
void add_copies(const Copy& copy, double bytes, double count, double start, Cycles& engines) {
  engines[copy.engine] += route_cycles(*copy.route, bytes) +
                          std::max(count - 1, 0.0) * route_cycles(*copy.route, 0) + count * start;
}

struct Shared {
  double memory, cache, cache_bytes, latency, order, efficiency, tail;
  double a_share, b_share;  // of the first copies' rate that their runs reach
  double block;             // side of what a core's own cache holds, in elements; 0: it has none
};

Timed time_of(const Figures& f, const Shared& shared, const Engaged& unit, const Product& p,
              const Sides& s, double split) {
  Timed t;
  t.sides = s;
  t.split = split;
  const double rows = ceil_div(p.m, s.m), columns = ceil_div(p.n, s.n);
  const double tiles = p.batch * rows * columns * split;
  const double depth = round_up(ceil_div(p.deep(), split), f.step_k);
  const double steps = ceil_div(depth, s.k);
  const double turns = ceil_div(tiles, f.cores);
  // The edge is computed as far as the unit's steps reach.
  const double m = std::min(s.m, round_up(p.m, f.step_m)),
               n = std::min(s.n, round_up(p.n, f.step_n));
  const double unit_cycles = step_cycles(*unit.rate, m, n, depth);

  Cycles& engines = t.engines;
  const double loads = ceil_div(depth, 4 * s.k);  // four parts of k at a time
  const double a_bytes = m * depth * p.a_bytes, b_bytes = n * depth * p.b_bytes;
  for (size_t i = 0; i < f.ways.a.size(); ++i)
    add_copies(f.ways.a[i], i == 0 ? a_bytes * p.a_share() / shared.a_share : a_bytes,
               i + 1 < f.ways.a.size() ? loads : steps, f.start, engines);
  for (size_t i = 0; i < f.ways.b.size(); ++i)
    add_copies(f.ways.b[i], i == 0 ? b_bytes / shared.b_share : b_bytes,
               i + 1 < f.ways.b.size() ? loads : steps, f.start, engines);
  // What leaves is limited by elements, as if they had 16 bits.
  Cycles out{};
  for (const Copy& copy : f.ways.c) add_copies(copy, m * n * 2, 1, f.start, out);
  double leaving = 0;
  for (size_t i = 0; i < kMostEngines; ++i) {
    leaving += out[i];
    engines[i] += out[i];
  }
  const double computing =
      unit_cycles / f.unit_clock / shared.efficiency + (s.two_results ? 0 : leaving / f.clock);
  std::array<double, kMostEngines + 1> stages{};
  for (size_t i = 0; i < kMostEngines; ++i) stages[i] = engines[i] / f.clock;
  stages[kMostEngines] = computing;
  const double tile = overlapped(shared.order, stages);

  // Until the first parts are there, and from the last product on, nothing overlaps.
  double first = 0;
  for (const auto* way : {&f.ways.a, &f.ways.b})
    for (const Copy& copy : *way)
      first += route_cycles(*copy.route, s.k * (way == &f.ways.a ? m * p.a_bytes : n * p.b_bytes));
  t.first = (first + leaving) / f.clock + shared.latency + shared.tail;

  // All cores read through the cache they share.
  double traffic = tiles * (a_bytes * p.a_share() + b_bytes);
  if (shared.block > 0)  // cores with caches of their own read blocks, of which they take tiles
    traffic = p.a_memory * ceil_div(p.n, shared.block) + p.b_memory * ceil_div(p.m, shared.block);
  const double at_once = std::min(tiles, f.cores);
  t.bytes = cached_reads(p, s.m, s.n, at_once, shared.cache_bytes) + p.c_memory * split;
  t.memory = t.bytes / shared.memory;
  const double cached = shared.cache > 0 ? traffic / shared.cache : 0;
  t.seconds = overlapped(shared.order, {turns * tile, t.memory, cached}) + t.first;
  t.unit = turns * unit_cycles;
  for (double& cycles : engines) cycles *= turns;
  return t;
}

}  // namespace

namespace {

// The side of square blocks of both operands and the result, in f32, that the largest cache of a
// core holds.
double core_block(const Machine& machine, const Engaged& unit) {
  double largest = 0;
  for (const auto& entry : machine.chip().memory)
    if (entry.second.kind == chip::MemoryKind::kCache && entry.second.core == unit.unit->core)
      largest = std::max(largest, static_cast<double>(entry.second.capacity_bytes.value.value));
  return std::sqrt(largest / 12);
}

}  // namespace

Tally staged_product(const Machine& machine, const Engaged& unit, const Product& p) {
  const Figures f = figures_of(machine, unit);
  const Shared shared{
      .memory = machine.bandwidth() * machine.constant("product_stream_efficiency",
                                                       machine.constant("stream_efficiency", 0.85)),
      .cache = machine.cache_bandwidth() * machine.constant("cache_efficiency", 1),
      .cache_bytes = machine.cache_bytes() > 0 ? machine.cache_bytes() : 1e6,
      .latency = machine.latency(),
      .order = machine.constant("overlap_order", 8),
      .efficiency = machine.matrix_efficiency(p.type, 1),
      .tail = machine.constant("product_seconds", 0),
      .a_share = run_efficiency(machine, p.a_run),
      .b_share = run_efficiency(machine, p.b_run),
      .block = core_block(machine, unit)};
  Timed best;
  const auto try_one = [&](double bm, double bn, double split) {
    // No tile is faster than its multiply-adds, nor than its first copies.
    const double turns = ceil_div(p.batch * ceil_div(p.m, bm) * ceil_div(p.n, bn) * split, f.cores);
    const double m = std::min(bm, p.m), n = std::min(bn, p.n), depth = p.deep() / split;
    double least =
        turns * step_cycles(*unit.rate, m, n, depth) / (f.unit_clock * shared.efficiency);
    if (!f.ways.a.empty() && !f.ways.b.empty()) {
      const bool together = f.ways.a[0].engine == f.ways.b[0].engine;
      const double bytes = m * p.a_bytes * p.a_share() + (together ? n * p.b_bytes : 0);
      least = std::max(
          least, turns * depth * bytes / (f.ways.a[0].route->bytes_per_cycle.value * f.clock));
    }
    if (best.seconds >= 0 && least >= best.seconds) return;
    Sides s{bm, bn, 0, false};
    // The deepest part of k that fits, up to 256 bytes of it.
    for (const double bytes : {512.0, 256.0, 128.0, 64.0, 32.0}) {
      s.k = std::max(std::floor(bytes / std::max(p.a_bytes, p.b_bytes) / f.step_k), 1.0) * f.step_k;
      if (fits(f, p, s)) break;
      s.k = 0;
    }
    if (s.k <= 0) return;
    const Timed t = time_of(f, shared, unit, p, s, split);
    if (best.seconds < 0 || t.seconds < best.seconds) best = t;
  };
  const double most_m = round_up(p.m, f.step_m), most_n = round_up(p.n, f.step_n);
  // The largest first: what is found early spares most of the others.
  for (size_t i = kSides.size(); i-- > 0;) {
    const double bm = kSides[i];
    if (i > 0 && bm >= 2 * most_m) continue;
    for (size_t j = kSides.size(); j-- > 0;) {
      const double bn = kSides[j];
      if (j > 0 && bn >= 2 * most_n) continue;
      // More than four times as long as wide only where there is not more of it.
      if ((bm > 4 * bn && bn < most_n) || (bn > 4 * bm && bm < most_m)) continue;
      try_one(bm, bn, 1);
      const double tiles = p.batch * ceil_div(p.m, bm) * ceil_div(p.n, bn);
      for (double split = 2;
           split <= 16 && tiles * split <= 2 * f.cores && p.deep() >= split * 16 * f.step_k;
           split *= 2)
        try_one(bm, bn, split);
    }
  }
  if (best.seconds < 0) return vector_product(machine, unit, p);

  Tally t;
  t.seconds = best.seconds;
  t.flops = p.flops();
  t.padded_flops = 2 * p.batch * round_up(p.m, f.step_m) * round_up(p.n, f.step_n) *
                   round_up(p.deep(), f.step_k);
  t.cycles = best.unit;
  t.bytes[std::string(machine.memory())] = best.bytes;
  t.busy[std::string(unit.name)] = best.unit / f.unit_clock;
  t.busy[std::string(machine.memory())] = best.memory;
  for (size_t i = 0; i < f.ways.engines.size(); ++i)
    t.busy[std::string(f.ways.engines[i])] += best.engines[i] / f.clock;
  t.tile =
      fmt::format("m{:.0f} n{:.0f} k{:.0f}, 2 stages", best.sides.m, best.sides.n, best.sides.k);
  if (best.split > 1) t.tile += fmt::format(", k in {:.0f} parts", best.split);
  return t;
}

}  // namespace tessera::cost
