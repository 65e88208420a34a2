// Products on cores with threads: blocks of bm x bn results, taken by cores in waves, each block in
// steps along k through a ring of stages in shared memory.
#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/cost/product.h"

namespace tessera::cost {
namespace {

struct Sides {
  double m, n;
};
constexpr std::array<Sides, 21> kTiles{
    {{256, 256}, {256, 128}, {128, 256}, {128, 192}, {128, 128}, {256, 64}, {64, 256},
     {128, 64},  {64, 128},  {64, 64},   {32, 128},  {128, 32},  {64, 32},  {32, 64},
     {16, 128},  {128, 16},  {16, 64},   {64, 16},   {32, 16},   {16, 32},  {16, 16}}};
constexpr std::array<double, 9> kSplits{1, 2, 3, 4, 6, 8, 12, 16, 32};
constexpr double kStepBytes = 128;  // of k in one step: a line

// What does not depend on the tile.
struct Figures {
  double cores, macs, shared, registers;
  double core_clock;
  double feed;  // bytes per second from the cache into one core
  double cache_bandwidth, store_bandwidth, memory_bandwidth, cache;
  double latency, efficiency, order, split, tail, cluster, most_stages;
  double step_depth;  // elements of k
};

struct Timed {
  double seconds = -1;
  double matrix = 0, feeding = 0, memory = 0;  // busy
  double bytes = 0, tiles = 0;
  double bm = 0, bn = 0, stages = 0, split = 1, resident = 1;
};

struct Candidate {
  double bm, bn, stages, resident, split;
};

// One candidate at a clock of the matrix unit.
Timed time_of(const Figures& f, const Product& p, const Candidate& c, double clock) {
  const double rows = ceil_div(p.m, c.bm), columns = ceil_div(p.n, c.bn);
  const double tiles = p.batch * rows * columns * c.split;
  const double steps = ceil_div(ceil_div(p.deep(), f.step_depth), c.split);
  const double step_macs = c.bm * c.bn * f.step_depth;
  // Neighbours of a cluster load the longer side together.
  const double bm = c.bm >= c.bn ? c.bm / f.cluster : c.bm;
  const double bn = c.bm >= c.bn ? c.bn : c.bn / f.cluster;
  const double step_bytes = (bm * p.a_bytes * p.a_share() + bn * p.b_bytes) * f.step_depth;
  const double result_bytes = c.bm * c.bn * (c.split > 1 ? 4 : p.c_bytes);
  const double matrix_step = step_macs / (f.macs * clock * f.efficiency);

  // Blocks that stay on a core together share its units; each waits for its own loads.
  const auto wave = [&](double resident, double active, bool first) {
    const double feed = resident * step_bytes / std::min(f.feed, f.cache_bandwidth / active);
    const double step =
        std::max(overlapped(f.order, {resident * matrix_step, feed}), f.latency / c.stages);
    const double store = resident * result_bytes / std::min(f.feed, f.store_bandwidth / active);
    const double ends = f.latency + f.tail + store;
    return steps * step + (first ? ends : ends / resident);
  };
  const double slots = f.cores * c.resident;
  const double full = std::floor(tiles / slots), rest = tiles - full * slots;
  double work = 0;
  if (full > 0)
    work += wave(c.resident, f.cores, true) + (full - 1) * wave(c.resident, f.cores, false);
  if (rest > 0) work += wave(ceil_div(rest, f.cores), std::min(rest, f.cores), full == 0);

  Timed t;
  t.tiles = tiles;
  t.bytes = cached_reads(p, c.bm, c.bn, slots, f.cache) + p.c_memory;
  t.memory = t.bytes / f.memory_bandwidth;
  t.matrix = tiles * steps * matrix_step / f.cores;
  t.feeding = tiles * steps * step_bytes / std::min(f.feed * f.cores, f.cache_bandwidth);
  t.seconds = overlapped(f.order, {work, t.memory});
  if (c.split > 1) t.seconds += f.split + 2 * tiles * result_bytes / f.cache_bandwidth;
  t.bm = c.bm;
  t.bn = c.bn;
  t.stages = c.stages;
  t.split = c.split;
  t.resident = c.resident;
  return t;
}

Figures figures_of(const Machine& machine, const Engaged& unit, const Product& p) {
  const chip::Threads& threads = *machine.chip().threads;
  const chip::Core& core = machine.chip().cores.at(unit.unit->core);
  double per_cycle = 64;
  for (const Leg& leg : machine.way(machine.memory(), "registers"))
    if (leg.route->from == machine.memory()) per_cycle = leg.route->bytes_per_cycle.value;
  const double stream =
      machine.bandwidth() *
      machine.constant("product_stream_efficiency", machine.constant("stream_efficiency", 0.85));
  const double cached =
      (machine.cache_bandwidth() > 0 ? machine.cache_bandwidth() : machine.bandwidth()) *
      machine.constant("cache_efficiency", 0.7);
  const double cache = machine.cache_bytes() * 0.75;  // the rest holds results and what is next
  Figures f{.cores = unit.cores,
            .macs = unit.macs_per_cycle,
            .shared = static_cast<double>(threads.shared_bytes_per_core.value.value),
            .registers = 4.0 * static_cast<double>(threads.registers_per_core.value),
            .core_clock = core.clock_hz.value,
            .feed = per_cycle * core.clock_hz.value,
            .cache_bandwidth = cached,
            .store_bandwidth = p.c_memory <= cache ? cached : stream,
            .memory_bandwidth = stream,
            .cache = cache,
            .latency = machine.latency(),
            .efficiency = machine.matrix_efficiency(p.type, 0.9),
            .order = machine.constant("overlap_order", 8),
            .split = machine.constant("split_seconds", 2e-6),
            .tail = machine.constant("tile_seconds", 5e-7),
            .cluster = std::max(machine.constant("cluster_blocks", 1), 1.0),
            .most_stages = machine.constant("ring_stages", 6),
            .step_depth = std::max(kStepBytes / std::max(p.a_bytes, p.b_bytes), 16.0)};
  return f;
}

}  // namespace

Tally tiled_product(const Machine& machine, const Engaged& unit, const Product& p) {
  const Figures f = figures_of(machine, unit, p);
  Timed best;
  Candidate chosen{};
  for (const Sides& side : kTiles) {
    // Tiles that are mostly padding lose against a smaller one.
    if ((side.m >= 2 * p.m && side.m > 16) || (side.n >= 2 * p.n && side.n > 16)) continue;
    const double ring = (side.m * p.a_bytes + side.n * p.b_bytes) * f.step_depth;
    for (double resident = 1; resident <= 4; ++resident) {
      if (side.m * side.n * 4 * resident > f.registers / 2) break;
      // Another block on a core helps only where there are blocks for it.
      if (resident > 1 &&
          p.batch * ceil_div(p.m, side.m) * ceil_div(p.n, side.n) * kSplits.back() <=
              f.cores * (resident - 1))
        break;
      const double stages = std::min(std::floor(f.shared / resident / ring), f.most_stages);
      if (stages < 2) break;
      for (const double split : kSplits) {
        if (split > 1 &&
            (p.deep() < split * 4 * f.step_depth ||
             p.batch * ceil_div(p.m, side.m) * ceil_div(p.n, side.n) * (split - 1) > 2 * f.cores))
          break;
        if (resident > 1 && p.batch * ceil_div(p.m, side.m) * ceil_div(p.n, side.n) * split <=
                                f.cores * (resident - 1))
          continue;
        // No tile is faster than its multiply-adds.
        const double least = p.batch * round_up(p.m, side.m) * round_up(p.n, side.n) * p.deep() /
                             (f.macs * f.cores * unit.sustained * f.efficiency);
        if (best.seconds >= 0 && least >= best.seconds) break;
        const Candidate c{side.m, side.n, stages, resident, split};
        const Timed t = time_of(f, p, c, unit.sustained);
        if (best.seconds >= 0 && t.seconds >= best.seconds) continue;
        best = t;
        chosen = c;
      }
    }
  }
  // A core that has no room for two stages of any tile takes the smallest all the same.
  if (best.seconds < 0) {
    chosen = {kTiles.back().m, kTiles.back().n, 2, 1, 1};
    best = time_of(f, p, chosen, unit.sustained);
  }
  const double busy = best.seconds > 0 ? best.matrix / best.seconds : 0;
  const double clock = clock_at(unit, busy);
  best = time_of(f, p, chosen, clock);

  Tally t;
  t.seconds = best.seconds;
  t.flops = p.flops();
  t.padded_flops = 2 * p.batch * round_up(p.m, best.bm) * round_up(p.n, best.bn) *
                   round_up(p.deep(), f.step_depth);
  t.cycles = best.matrix * clock;
  t.bytes[std::string(machine.memory())] = best.bytes;
  t.busy[std::string(unit.name)] = best.matrix;
  t.busy[std::string(machine.memory())] = best.memory;
  if (machine.cache()) t.busy[std::string(machine.cache_name())] = best.feeding;
  t.tile = fmt::format("m{:.0f} n{:.0f} k{:.0f}, {:.0f} stages", best.bm, best.bn, f.step_depth,
                       best.stages);
  if (best.resident > 1) t.tile += fmt::format(", {:.0f} on a core", best.resident);
  if (best.split > 1) t.tile += fmt::format(", k in {:.0f} parts", best.split);
  return t;
}

}  // namespace tessera::cost
