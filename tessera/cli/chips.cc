#include "tessera/cli/chips.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "tessera/base/dtype.h"
#include "tessera/chip/catalog.h"
#include "tessera/chip/figures.h"
#include "tessera/cli/terminal.h"

namespace tessera::cli {
namespace {

using chip::Chip;

// "353.9 TFLOP/s"; the unit is behind the power of 1000.
std::string scaled(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPowers{"", "k", "M", "G", "T", "P"};
  size_t power = 0;
  for (; value >= (power == 4 ? 1e4 : 1e3) && power + 1 < kPowers.size(); ++power) value /= 1000;
  return fmt::format("{:.{}f} {}{}", value, value < 10 ? 2 : 1, kPowers[power], unit);
}

std::string work_rate(double flops, std::string_view type) {
  const auto dtype = dtype_from_name(type);
  return scaled(flops, dtype && is_int(*dtype) ? "OP/s" : "FLOP/s");
}

double best_of(const Chip& c, std::string_view type) {
  return std::max(chip::peak_flops(c, chip::UnitKind::kMatrix, type),
                  chip::peak_flops(c, chip::UnitKind::kVector, type));
}

// ---- the list

// The half precision that is faster, or what there is.
std::string_view leading_type(const Chip& c) {
  const auto rate = [&](std::string_view type) {
    return chip::peak_flops(c, chip::UnitKind::kMatrix, type);
  };
  if (rate("bf16") > rate("f16")) return "bf16";
  for (const std::string_view type : {"f16", "i8"})
    if (rate(type) > 0) return type;
  return "f32";
}

Json summary(const Chip& c) {
  const chip::Memory& memory = c.device_memory();
  Json best = Json::object();
  for (const chip::Peak& p : chip::peaks(c)) best[p.type] = best_of(c, p.type);
  return {{"id", c.id},
          {"name", c.name},
          {"vendor", c.vendor},
          {"architecture", c.architecture},
          {"capacity_bytes", memory.capacity_bytes.value.value},
          {"bytes_per_second", c.bandwidth_of(memory)},
          {"flops_per_second", std::move(best)}};
}

// ---- one chip

struct Sample {
  chip::Block block;
  chip::Occupancy occupancy;
};

constexpr std::array<int64_t, 5> kThreads{64, 128, 256, 512, 1024};
constexpr std::array<int64_t, 6> kRegisters{32, 64, 96, 128, 192, 255};
constexpr std::array<int64_t, 6> kSharedKib{16, 32, 48, 64, 96, 160};

// Blocks of each size by registers without shared memory, then by shared memory with 32 registers.
std::vector<Sample> occupancies(const Chip& c) {
  std::vector<Sample> samples;
  const auto add = [&](const chip::Block& block) {
    if (auto o = chip::occupancy(c, block)) samples.push_back({block, *std::move(o)});
  };
  for (const int64_t threads : kThreads) {
    for (const int64_t registers : kRegisters) add({threads, registers, Bytes(0)});
    for (const int64_t kib : kSharedKib) add({threads, 32, Bytes(kib << 10)});
  }
  return samples;
}

Json json_of(const Chip& c) {
  Json peaks = Json::array(), occupancy = Json::array();
  for (const chip::Peak& p : chip::peaks(c))
    peaks.push_back({{"unit", p.unit},
                     {"dtype", p.type},
                     {"flops_per_second", p.flops_per_second},
                     {"arithmetic", p.arithmetic},
                     {"ridge_flops_per_byte", p.ridge}});
  for (const Sample& s : occupancies(c))
    occupancy.push_back({{"threads", s.block.threads},
                         {"registers_per_thread", s.block.registers_per_thread},
                         {"shared_bytes", s.block.shared.value},
                         {"blocks", s.occupancy.blocks},
                         {"warps", s.occupancy.warps},
                         {"occupancy", s.occupancy.fraction},
                         {"bound_by", s.occupancy.bound}});
  Json j{{"schema", "tessera.devices/1"},
         {"id", c.id},
         {"files", c.files},
         {"hash", fmt::format("{:016x}", c.hash)},
         {"peaks", std::move(peaks)}};
  if (!occupancy.empty()) j["occupancy"] = std::move(occupancy);
  j["chip"] = Json::parse(chip::to_json(c));
  return j;
}

std::string peaks_of(const Chip& c) {
  Table table({"unit", "type", ">peak", "arithmetic", ">ridge, FLOP/B"});
  for (const chip::Peak& p : chip::peaks(c))
    table.add({p.unit, p.type, work_rate(p.flops_per_second, p.type), p.arithmetic,
               fmt::format("{:.1f}", p.ridge)});
  return table.str();
}

std::string memory_of(const Chip& c) {
  Table table({"memory", "of each", ">capacity", ">bandwidth of all", ">alignment",
               "source of the capacity"});
  for (const auto& [name, m] : c.memory) {
    const double bandwidth = c.bandwidth_of(m);
    table.add({name, m.core.empty() ? "chip" : m.core, to_string(m.capacity_bytes.value),
               bandwidth > 0 ? scaled(bandwidth, "B/s") : "",
               m.alignment_bytes ? to_string(m.alignment_bytes->value) : "",
               m.capacity_bytes.cite.str()});
  }
  return table.str();
}

std::string engines_of(const Chip& c) {
  Table table({"engine", "from", "to", ">B/cycle", "layouts", "source of the rate"});
  for (const auto& [name, engine] : c.engines)
    for (const auto& entry : engine.routes) {
      const chip::Route& r = entry.second;
      std::vector<std::string> changes;
      for (const chip::Change& change : r.changes)
        changes.push_back(change.from == change.to ? change.from
                                                   : change.from + " to " + change.to);
      table.add({name, r.from, r.to, fmt::format("{}", r.bytes_per_cycle.value),
                 fmt::format("{}", fmt::join(changes, ", ")), r.bytes_per_cycle.cite.str()});
    }
  return table.empty() ? "" : "\n" + table.str();
}

std::string links_of(const Chip& c) {
  Table table({"link", "to", ">count", ">each, one way", "topology", "source"});
  for (const auto& [name, link] : c.links) {
    constexpr std::array<std::string_view, 4> kEnds{"die", "device", "host", "network"};
    table.add({name, std::string(kEnds[static_cast<size_t>(link.kind)]),
               std::to_string(link.count.value), scaled(link.bytes_per_second.value, "B/s"),
               link.topology, link.bytes_per_second.cite.str()});
  }
  return table.empty() ? "" : "\n" + table.str();
}

std::string occupancy_of(const Chip& c) {
  if (!c.threads) return "";
  std::vector<std::string> headings{">threads"};
  for (const int64_t r : kRegisters) headings.push_back(fmt::format(">{} registers", r));
  for (const int64_t kib : kSharedKib) headings.push_back(fmt::format(">{} KiB shared", kib));
  Table table(headings);
  const auto cell = [&](const chip::Block& block) {
    const auto o = chip::occupancy(c, block);
    return o && o->blocks > 0 ? fmt::format("{:.3g} %", 100 * o->fraction) : std::string("-");
  };
  for (const int64_t threads : kThreads) {
    std::vector<std::string> cells{std::to_string(threads)};
    for (const int64_t r : kRegisters) cells.push_back(cell({threads, r, Bytes(0)}));
    for (const int64_t kib : kSharedKib) cells.push_back(cell({threads, 32, Bytes(kib << 10)}));
    table.add(std::move(cells));
  }
  return "\noccupancy by threads of a block; shared memory with 32 registers a thread\n" +
         table.str();
}

template <class T>
void add_conflicts(std::string& text, std::string_view what, const chip::Fact<T>& fact) {
  for (const chip::Conflict& other : fact.conflicts)
    text += visible(fmt::format("  {}: {:g} by {}; taken: {}, {}", what, other.value,
                                other.cite.source, fact.cite.source, fact.choice)) +
            "\n";
}

// Where sources differ on what peaks and bandwidths rest on; --json has all of it.
std::string conflicts_of(const Chip& c) {
  std::string text;
  for (const auto& [name, core] : c.cores) {
    add_conflicts(text, name + " count", core.count);
    add_conflicts(text, name + " clock", core.clock_hz);
  }
  for (const auto& [name, unit] : c.units) {
    if (unit.clock_hz) add_conflicts(text, name + " clock", *unit.clock_hz);
    add_conflicts(text, name + " per core", unit.per_core);
    for (const auto& [type, rate] : unit.rates)
      add_conflicts(text, fmt::format("{} {} rate", name, type), rate.macs_per_cycle);
  }
  for (const auto& [name, memory] : c.memory) {
    add_conflicts(text, name + " capacity", memory.capacity_bytes);
    if (memory.bytes_per_second) add_conflicts(text, name + " bandwidth", *memory.bytes_per_second);
  }
  for (const auto& entry : c.engines)
    for (const auto& [name, route] : entry.second.routes)
      add_conflicts(text, name + " rate", route.bytes_per_cycle);
  return text.empty() ? "" : "\nsources differ\n" + text;
}

std::string text_of(const Chip& c) {
  std::string text = fmt::format("{}: {}, {}, {}\n", c.id, visible(c.name), visible(c.vendor),
                                 visible(c.architecture));
  if (!c.note.empty()) text += visible(c.note) + "\n";
  text += fmt::format("launch {} ({})\n\n", to_string(c.launch.seconds.value),
                      visible(c.launch.seconds.cite.str()));
  return text + peaks_of(c) + "\n" + memory_of(c) + engines_of(c) + links_of(c) + occupancy_of(c) +
         conflicts_of(c);
}

}  // namespace

Status print_catalog(bool json) {
  const auto catalog = chip::Catalog::of_environment();
  TRY_ASSIGN(const auto ids, catalog.ids());
  Json chips = Json::array();
  Table table(
      {"chip", "name", "architecture", ">peak", "of", ">memory", ">bandwidth", ">ridge, FLOP/B"});
  for (const std::string& id : ids) {
    const auto c = catalog.load(id);
    if (!c) {
      chips.push_back({{"id", id}, {"error", c.error().message}});
      table.add({id, "not usable: " + c.error().message, "", "", "", "", "", ""});
      continue;
    }
    const std::string_view type = leading_type(*c);
    const double bandwidth = c->bandwidth_of(c->device_memory());
    chips.push_back(summary(*c));
    table.add({id, c->name, c->architecture, work_rate(best_of(*c, type), type), std::string(type),
               to_string(c->device_memory().capacity_bytes.value), scaled(bandwidth, "B/s"),
               fmt::format("{:.1f}", best_of(*c, type) / bandwidth)});
  }
  return json ? print_json({{"schema", "tessera.devices/1"}, {"chips", std::move(chips)}})
              : print_text(table.str());
}

Status print_chip(const std::string& name, bool json) {
  constexpr std::string_view kSimulated = "sim:";
  const std::string id = name.starts_with(kSimulated) ? name.substr(kSimulated.size()) : name;
  TRY_ASSIGN(const Chip c, chip::Catalog::of_environment().load(id));
  return json ? print_json(json_of(c)) : print_text(text_of(c));
}

Status print_chip_schema() { return print_text(chip::json_schema()); }

}  // namespace tessera::cli
