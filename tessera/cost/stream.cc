#include "tessera/cost/stream.h"

#include <algorithm>
#include <cmath>

namespace tessera::cost {
namespace {

constexpr double kRowsUnderWay = 6;  // of a core at a time
constexpr double kMissSpeed = 0.7;   // of bytes that fell out of the cache between two passes

// Bytes per second that one core of the unit reads or writes at most, and its engine.
struct Port {
  double rate = 0;
  std::string_view engine;
};

Port port_of(const Machine& machine, const chip::Unit& unit, bool reads) {
  const double clock = machine.chip().cores.at(unit.core).clock_hz.value;
  Port best;
  for (const auto& [name, engine] : machine.chip().engines) {
    if (engine.core != unit.core) continue;
    for (const auto& entry : engine.routes) {
      const chip::Route& r = entry.second;
      if ((reads ? r.from : r.to) != machine.memory()) continue;
      if (const double rate = r.bytes_per_cycle.value * clock; rate > best.rate)
        best = {rate, name};
    }
  }
  return best;
}

}  // namespace

double run_efficiency(const Machine& machine, double run) {
  const double line = machine.line();
  if (run <= 0 || line <= 1) return 1;
  // A run that does not begin and end with a line shares lines with its neighbours.
  const double lines = std::ceil(run / line);
  const double whole = run / (lines * line);
  if (std::fmod(run, line) == 0) return 1;
  return std::max(
      run < line ? whole : std::max(whole, machine.constant("unaligned_bandwidth", 0.7)),
      1.0 / line);
}

Result<Tally> stream(const Machine& machine, const Pass& pass) {
  const auto unit = machine.vector(pass.type);
  if (!unit && pass.elements > 0)
    return error(Code::kUnimplemented, "chip '{}' has no unit for element-wise work on {}",
                 machine.chip().id, pass.type);
  Tally t;
  t.kernel = pass.kernel;
  t.family = pass.family;
  t.launch = launch_seconds(machine, Work::kVector);
  const double efficiency = machine.constant(pass.family + "_stream_efficiency",
                                             machine.constant("stream_efficiency", 0.85)) *
                            run_efficiency(machine, pass.run);
  const double rate = machine.bandwidth() * efficiency;
  const double moved = pass.read + pass.written;
  double memory = moved / rate;
  const auto of_family = [&](const char* name, double otherwise) {
    return machine.constant(pass.family + "_" + name, machine.constant(name, otherwise));
  };
  if (pass.again > 0) {
    // What is read again comes from the cache as far as that holds the rows that are under way.
    const double cores = unit ? unit->cores : 1;
    const double under_way =
        pass.rows > 0 ? kRowsUnderWay * std::min(cores, pass.rows) * pass.read / pass.rows : 0;
    const double held =
        under_way > 0 && machine.cache() ? std::min(machine.cache_bytes() / under_way, 1.0) : 1;
    memory += pass.again / rate * (held / of_family("reread_speed", 1.4) + (1 - held) / kMissSpeed);
  }
  double computing = 0, one_core = 0, ports = 0;
  if (unit) {
    computing = pass.elements * seconds_per_element(machine, *unit, pass.type, pass.work);
    const Port in = port_of(machine, *unit->unit, true), out = port_of(machine, *unit->unit, false);
    const double cores = std::max(unit->cores, 1.0);
    const double busy = pass.rows > 0 ? std::min(pass.rows, cores) : cores;
    // The core that has most rows to do.
    const double share = pass.rows > 0 ? ceil_div(pass.rows, cores) / pass.rows * busy : 1;
    if (in.rate > 0) {
      const double reading = (pass.read + pass.again) / (in.rate * busy) * share;
      ports = reading;
      t.busy[std::string(in.engine)] = reading;
    }
    if (out.rate > 0) {
      const double writing = pass.written / (out.rate * busy) * share;
      ports = in.engine == out.engine ? ports + writing : std::max(ports, writing);
      t.busy[std::string(out.engine)] += writing;
    }
    if (pass.rows > 0) computing *= share * cores / busy;
    t.busy[std::string(unit->name)] += computing;
  }
  // Rows that no core keeps are blocks of their own, which have to be started.
  if (pass.again > 0) one_core = pass.rows * of_family("row_seconds", 0);
  const double work =
      overlapped(machine.constant("stream_order", 4), {memory, computing, ports, one_core});
  t.seconds = work;
  if (moved > 0) t.seconds += of_family("kernel_seconds", machine.latency() * 2);
  if (pass.again > 0)
    t.seconds += 4 * machine.latency();  // two more passes wait for their first bytes
  t.bytes[std::string(machine.memory())] = moved;
  t.busy[std::string(machine.memory())] = memory;
  return t;
}

}  // namespace tessera::cost
