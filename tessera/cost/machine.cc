#include "tessera/cost/machine.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera::cost {
namespace {

// Formats of one width that hardware multiplies alike.
std::string_view twin(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kTwins{
      {{"f8e4m3fn", "f8e4m3fnuz"},
       {"f8e4m3fnuz", "f8e4m3fn"},
       {"f8e5m2", "f8e5m2fnuz"},
       {"f8e5m2fnuz", "f8e5m2"},
       {"u8", "i8"}}};
  for (const auto& [type_a, type_b] : kTwins)
    if (type_a == type) return type_b;
  return {};
}

// Bits of x = sums of bf16 parts: three parts, of whose nine products three are below the last bit.
constexpr int kPassesOfF32 = 6;

double clock_under_power(const chip::Chip& chip, const chip::Unit& unit) {
  const chip::Core& core = chip.cores.at(unit.core);
  const double clock = chip.clock_of(unit);
  return core.sustained_clock_hz ? std::min(core.sustained_clock_hz->value, clock) : clock;
}

Engaged engage(const chip::Chip& chip, std::string_view name, const chip::Unit& unit,
               const chip::Rate& rate) {
  return {.name = name,
          .unit = &unit,
          .rate = &rate,
          .clock = chip.clock_of(unit),
          .sustained = clock_under_power(chip, unit),
          .cores = static_cast<double>(chip.cores.at(unit.core).count.value),
          .macs_per_cycle = rate.macs_per_cycle.value * static_cast<double>(unit.per_core.value)};
}

std::optional<Engaged> fastest(const chip::Chip& chip, chip::UnitKind kind, std::string_view type) {
  std::optional<Engaged> best;
  for (const auto& [name, unit] : chip.units) {
    if (unit.kind != kind) continue;
    const auto rate = unit.rates.find(type);
    if (rate == unit.rates.end()) continue;
    const Engaged found = engage(chip, name, unit, rate->second);
    if (!best || found.per_second() > best->per_second()) best = found;
  }
  return best;
}

bool has_float_name(std::string_view type) {
  return type.starts_with("f") || type.starts_with("bf") || type.starts_with("hif") ||
         type.starts_with("c") || type == "tf32" || type == "hf32" || type == "xf32";
}

}  // namespace

Machine::Machine(const chip::Chip& chip) : chip_(chip) {
  for (const auto& [name, memory] : chip.memory) {
    if (memory.kind == chip::MemoryKind::kDevice) {
      memory_ = name;
      bandwidth_ = chip.bandwidth_of(memory);
    }
    if (memory.kind != chip::MemoryKind::kCache || !memory.core.empty()) continue;
    cache_bandwidth_ = std::max(cache_bandwidth_, chip.bandwidth_of(memory));
    if (cache_ && cache_->capacity_bytes.value.value >= memory.capacity_bytes.value.value) continue;
    cache_ = &memory;
    cache_name_ = name;
  }
}

double Machine::constant(std::string_view name, double otherwise) const {
  const auto found = chip_.constants.find(name);
  return found == chip_.constants.end() ? otherwise : found->second.value;
}

double Machine::matrix_efficiency(std::string_view type, double otherwise) const {
  const std::string name(type.starts_with("f8") ? "f8" : type);
  return constant(name + "_matrix_efficiency", constant("matrix_efficiency", otherwise));
}

std::optional<Engaged> Machine::matrix(std::string_view type) const {
  if (auto unit = fastest(chip_, chip::UnitKind::kMatrix, type)) return unit;
  if (const std::string_view other = twin(type); !other.empty())
    if (auto unit = fastest(chip_, chip::UnitKind::kMatrix, other)) return unit;
  if (type != "f32") return std::nullopt;
  auto narrow = fastest(chip_, chip::UnitKind::kMatrix, "bf16");
  if (!narrow || narrow->unit->dataflow == chip::Dataflow::kStep) return std::nullopt;
  narrow->passes = kPassesOfF32;
  return narrow;
}

std::optional<Engaged> Machine::vector(std::string_view type) const {
  using enum chip::UnitKind;
  const std::string_view wide = has_float_name(type) ? "f32" : "i32";
  for (const chip::UnitKind kind : {kVector, kScalar})
    for (const std::string_view name : {type, wide, std::string_view("f32")}) {
      if (type == "f64" && name != type) break;  // nothing narrower will do
      if (auto unit = fastest(chip_, kind, name)) return unit;
    }
  return std::nullopt;
}

double Machine::function_rate(const Engaged& vector, std::string_view function,
                              std::string_view type) const {
  const auto entry = vector.unit->functions.find(function);
  if (entry == vector.unit->functions.end()) return 0;
  auto rate = entry->second.find(type);
  if (rate == entry->second.end()) rate = entry->second.find("f32");
  if (rate == entry->second.end()) rate = entry->second.begin();
  if (rate == entry->second.end()) return 0;
  return rate->second.value * static_cast<double>(vector.unit->per_core.value) * vector.cores *
         vector.clock;
}

double Machine::latency() const {
  const chip::Memory& memory = chip_.memory.find(memory_)->second;
  return memory.latency_seconds ? memory.latency_seconds->value.value : 6e-7;
}

double Machine::line() const {
  const chip::Memory& memory = chip_.memory.find(memory_)->second;
  if (memory.line_bytes) return static_cast<double>(memory.line_bytes->value.value);
  return memory.alignment_bytes ? static_cast<double>(memory.alignment_bytes->value.value) : 64;
}

double Machine::cache_bytes() const {
  return cache_ ? static_cast<double>(cache_->capacity_bytes.value.value) : 0;
}

double Machine::cache_bandwidth() const { return cache_bandwidth_; }

std::vector<Leg> Machine::way(std::string_view from, std::string_view to) const {
  // By number of legs; chips have a dozen routes.
  struct Reached {
    std::string_view memory;
    std::vector<Leg> legs;
  };
  std::vector<Reached> front{{from, {}}};
  for (size_t at = 0; at < front.size() && front.size() < 64; ++at) {
    if (front[at].memory == to) return front[at].legs;
    if (front[at].legs.size() == 4) continue;
    for (const auto& [name, engine] : chip_.engines)
      for (const auto& entry : engine.routes) {
        const chip::Route& route = entry.second;
        if (route.from != front[at].memory) continue;
        if (std::any_of(front.begin(), front.end(),
                        [&](const Reached& r) { return r.memory == route.to; }))
          continue;
        Reached next{route.to, front[at].legs};
        next.legs.push_back({name, &route, engine.core});
        front.push_back(std::move(next));
      }
  }
  return {};
}

double launch_seconds(const Machine& machine, Work work) {
  const chip::Launch& launch = machine.chip().launch;
  const auto& own = work == Work::kMatrix ? launch.matrix_seconds : launch.vector_seconds;
  return (own ? *own : launch.seconds).value.value;
}

namespace {

// x^p and x^(1/p); whole p by multiplications and roots, for tiles are tried by the hundred.
double power(double x, double p) {
  if (p != std::floor(p) || p < 1 || p > 16) return std::pow(x, p);
  double result = 1;
  for (int i = static_cast<int>(p); i > 0; --i) result *= x;
  return result;
}
double root(double x, double p) {
  if (p == 2) return std::sqrt(x);
  if (p == 4) return std::sqrt(std::sqrt(x));
  if (p == 8) return std::sqrt(std::sqrt(std::sqrt(x)));
  if (p == 3) return std::cbrt(x);
  if (p == 6) return std::sqrt(std::cbrt(x));
  return std::pow(x, 1 / p);
}

}  // namespace

double overlapped(double p, std::span<const double> stages) {
  double longest = 0;
  for (const double s : stages) longest = std::max(longest, s);
  if (longest <= 0) return 0;
  double sum = 0;
  for (const double s : stages)
    if (s > 0) sum += power(s / longest, p);
  // What is far shorter than the longest does not count.
  return sum > 1.0001 ? longest * root(sum, p) : longest;
}

double overlapped(double p, std::initializer_list<double> stages) {
  return overlapped(p, std::span(stages.begin(), stages.size()));
}

Estimate finish(const Machine& machine, Tally tally) {
  const double spread = machine.constant("exact", 0) > 0 ? 1 : 1 + machine.constant("spread", 0.2);
  const double seconds = tally.launch + tally.seconds;
  Estimate e;
  e.time = {Seconds(seconds / spread), Seconds(seconds), Seconds(seconds * spread)};
  e.launch = Seconds(tally.launch);
  e.flops = tally.flops;
  e.padded_flops = std::max(tally.padded_flops, tally.flops);
  e.bytes = std::move(tally.bytes);
  e.kernel = std::move(tally.kernel);
  e.tile = std::move(tally.tile);
  e.cycles = tally.cycles;
  e.family = std::move(tally.family);
  e.bound_by = "launch";
  double most = tally.launch;
  for (const auto& [name, busy] : tally.busy) {
    if (seconds > 0 &&
        (machine.chip().units.contains(name) || machine.chip().engines.contains(name)))
      e.occupancy[name] = std::min(busy / seconds, 1.0);
    if (busy > most) {
      most = busy;
      e.bound_by = name;
    }
  }
  return e;
}

}  // namespace tessera::cost
