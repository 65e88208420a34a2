#include "tessera/hal/sim/run.h"

#include <algorithm>

namespace tessera::hal::sim {
namespace {

Result<std::vector<CoreTime>> all_cores(const Bound& bound, Mode mode, const Shares& shares,
                                        ThreadPool& pool) {
  const auto cores = static_cast<uint32_t>(bound.loaded->cores());
  std::vector<Result<CoreTime>> results(cores, CoreTime());
  pool.parallel_for(cores, [&](uint32_t first, uint32_t count) {
    for (uint32_t c = first; c < first + count; ++c) {
      try {
        results[c] = Core(bound, c, mode, shares).run();
      } catch (const std::bad_alloc&) {
        results[c] = error(Code::kResourceExhausted, "out of host memory; core {}", c);
      }
    }
  });
  std::vector<CoreTime> times;
  for (Result<CoreTime>& r : results) {
    TRY_ASSIGN(CoreTime t, std::move(r));
    times.push_back(std::move(t));
  }
  return times;
}

// What each core gets of memory and cache, from what all of them move. What is read again comes
// from the cache, as far as that holds it.
Shares shares_of(const Bound& bound, const std::vector<CoreTime>& times) {
  const chip::Chip& chip = bound.loaded->chip();
  double active = 0, read = 0, unique = 0;
  std::vector<double> by_range(bound.arguments->ranges.size(), 0);
  for (const CoreTime& t : times) {
    bool moves = false;
    for (size_t r = 0; r < by_range.size(); ++r) {
      by_range[r] += static_cast<double>(t.read[r]);
      moves |= t.read[r] > 0 || t.written[r] > 0;
    }
    active += moves ? 1 : 0;
  }
  for (size_t r = 0; r < by_range.size(); ++r) {
    read += by_range[r];
    unique += std::min(by_range[r], static_cast<double>(bound.arguments->ranges[r].size_bytes));
  }
  Shares s;
  if (active == 0) return s;
  const chip::Memory& memory = chip.device_memory();
  s.device = chip.bandwidth_of(memory) * 1e-12 / active;
  double capacity = 0;
  for (const auto& [name, m] : chip.memory)
    if (m.kind == chip::MemoryKind::kCache && m.core.empty()) {
      capacity = std::max(capacity, static_cast<double>(m.capacity_bytes.value.value));
      s.cache = std::max(s.cache, chip.bandwidth_of(m) * 1e-12 / active);
    }
  if (read > 0 && capacity > 0) {
    const double held = std::min(1.0, capacity / std::max(unique, 1.0));
    s.missed = (unique + (read - unique) * (1 - held)) / read;
  }
  return s;
}

}  // namespace

Result<LaunchTime> run(const Loaded& loaded, const Arguments& arguments, Mode mode,
                       ThreadPool& pool) {
  TRY_ASSIGN(const Bound bound, bind(loaded, arguments));
  // What the cores move is the same, however long it takes.
  TRY_ASSIGN(const std::vector<CoreTime> moved,
             all_cores(bound, {.computes = false, .checks = false}, {}, pool));
  const Shares shares = shares_of(bound, moved);
  TRY_ASSIGN(const std::vector<CoreTime> times, all_cores(bound, mode, shares, pool));
  LaunchTime t;
  t.busy.resize(loaded.engines().size(), 0);
  double end = 0;
  for (const CoreTime& c : times) {
    end = std::max(end, c.end_ps);
    t.steps += c.steps;
    for (size_t e = 0; e < t.busy.size(); ++e) t.busy[e] += c.busy_ps[e];
    for (int64_t b : c.read) t.read_bytes += b;
    for (int64_t b : c.written) t.written_bytes += b;
  }
  for (double& b : t.busy) b = end > 0 ? b / (end * static_cast<double>(times.size())) : 0;
  const chip::Launch& launch = loaded.chip().launch;
  const auto& kind = loaded.multiplies() ? launch.matrix_seconds : launch.vector_seconds;
  t.start_ps = (kind ? kind->value : launch.seconds.value).value * 1e12;
  t.ps = t.start_ps + end;
  return t;
}

}  // namespace tessera::hal::sim
