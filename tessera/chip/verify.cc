// What of a chip must fit together.
#include <array>

#include <fmt/format.h>

#include "tessera/chip/chip.h"
#include "tessera/layout/formats.h"
#include "tessera/layout/xla.h"

namespace tessera::chip {
namespace {

// Finds the first fault: each check does nothing once there is one.
struct Verifier {
  const Chip& chip;
  std::optional<Fault> fault = {};

  void refuse(std::string pointer, std::string message) {
    if (!fault) fault = Fault{std::move(pointer), std::move(message)};
  }

  void known_core(const std::string& at, const std::string& core) {
    if (!chip.cores.contains(core)) refuse(at + "/core", fmt::format("no core '{}'", core));
  }
  void known_memory(const std::string& at, const std::string& memory) {
    if (!chip.memory.contains(memory)) refuse(at, fmt::format("no memory '{}'", memory));
  }
  void known_type(const std::string& at, const std::string& type) {
    if (!storage_bits(type)) refuse(at, fmt::format("no element type or mode '{}'", type));
  }
  void known_layout(const std::string& at, const std::string& layout) {
    if (layout::find_format(layout) != nullptr || layout::Layout::parse(layout)) return;
    if (!layout::is_xla(layout) || !layout::parse_xla(layout))
      refuse(at, fmt::format("'{}' is neither a layout format nor an expression", layout));
  }
  void known_layouts(const std::string& at, const std::vector<std::string>& layouts) {
    for (size_t i = 0; i < layouts.size(); ++i)
      known_layout(fmt::format("{}/{}", at, i), layouts[i]);
  }

  void check_cores() {
    if (chip.cores.empty()) refuse("/cores", "has no core");
    for (const auto& [name, core] : chip.cores)
      if (core.sustained_clock_hz && core.sustained_clock_hz->value > core.clock_hz.value)
        refuse(fmt::format("/cores/{}/sustained_clock_hz", name),
               fmt::format("{}, need at most the clock, {}", core.sustained_clock_hz->value,
                           core.clock_hz.value));
  }

  void check_memory() {
    int device = 0;
    for (const auto& [name, memory] : chip.memory) {
      const std::string at = "/memory/" + name;
      if (!memory.core.empty()) known_core(at, memory.core);
      device += memory.kind == MemoryKind::kDevice;
      if (memory.kind == MemoryKind::kDevice && !memory.bytes_per_second)
        refuse(at + "/bytes_per_second", "is missing: it is the device's memory");
      if (memory.bytes_per_cycle && memory.core.empty())
        refuse(at + "/bytes_per_cycle", "needs a core, whose clock counts the cycles");
      const int64_t capacity = memory.capacity_bytes.value.value;
      const std::array<std::pair<const char*, const std::optional<Size>*>, 3> parts{
          {{"alignment_bytes", &memory.alignment_bytes},
           {"line_bytes", &memory.line_bytes},
           {"bank_bytes", &memory.bank_bytes}}};
      for (const auto& [key, part] : parts)
        if (*part && (*part)->value.value > capacity)
          refuse(fmt::format("{}/{}", at, key),
                 fmt::format("{}, need at most the capacity, {}", (*part)->value.value, capacity));
      if (memory.banks && memory.bank_bytes &&
          memory.banks->value > capacity / memory.bank_bytes->value.value)
        refuse(at + "/banks",
               fmt::format("{} banks of {} B, the capacity is {} B", memory.banks->value,
                           memory.bank_bytes->value.value, capacity));
    }
    if (device != 1) refuse("/memory", fmt::format("{} of kind device, need 1", device));
  }

  // Elements of a rate's step in operand a, b or c.
  static double elements(const Rate& rate, std::string_view operand) {
    const auto of = [](const std::optional<Count>& c) {
      return c ? static_cast<double>(c->value) : 1.0;
    };
    return operand == "a"   ? of(rate.m) * of(rate.k)
           : operand == "b" ? of(rate.k) * of(rate.n)
                            : of(rate.m) * of(rate.n);
  }

  void check_rate(const std::string& at, const Unit& unit, const std::string& type,
                  const Rate& rate) {
    known_type(at, type);
    if (!rate.accumulate.empty()) known_type(at + "/accumulate", rate.accumulate);
    if (fault) return;
    for (const auto& [operand, place] : unit.operands) {
      const auto memory = chip.memory.find(place.memory);
      if (memory == chip.memory.end()) continue;
      const std::string& stored =
          operand == "c" && !rate.accumulate.empty() ? rate.accumulate : type;
      const double bytes = elements(rate, operand) * *storage_bits(stored) / 8;
      const auto capacity = memory->second.capacity_bytes.value.value;
      if (bytes > static_cast<double>(capacity))
        refuse(at, fmt::format("a step's operand {} has {} B, memory '{}' {} B", operand, bytes,
                               place.memory, capacity));
    }
  }

  void check_units() {
    if (chip.units.empty()) refuse("/units", "has no unit");
    for (const auto& [name, unit] : chip.units) {
      const std::string at = "/units/" + name;
      known_core(at, unit.core);
      if (unit.rates.empty()) refuse(at + "/rates", "has no rate");
      for (const auto& [operand, place] : unit.operands) {
        const std::string where = fmt::format("{}/operands/{}", at, operand);
        if (operand != "a" && operand != "b" && operand != "c")
          refuse(where, "operands are a, b and c");
        known_memory(where + "/memory", place.memory);
        known_layouts(where + "/layouts", place.layouts);
      }
      for (const auto& [type, rate] : unit.rates)
        check_rate(fmt::format("{}/rates/{}", at, type), unit, type, rate);
      for (const auto& [function, rates] : unit.functions)
        for (const auto& [type, rate] : rates)
          known_type(fmt::format("{}/functions/{}/{}", at, function, type), type);
      const bool array = unit.dataflow && *unit.dataflow != Dataflow::kStep;
      if (array && !(unit.rows && unit.columns))
        refuse(at + "/dataflow", "a systolic array needs rows and columns");
    }
  }

  void check_engines() {
    for (const auto& [name, engine] : chip.engines) {
      const std::string at = "/engines/" + name;
      known_core(at, engine.core);
      if (engine.routes.empty()) refuse(at + "/routes", "has no route");
      for (const auto& [route_name, route] : engine.routes) {
        const std::string where = fmt::format("{}/routes/{}", at, route_name);
        known_memory(where + "/from", route.from);
        known_memory(where + "/to", route.to);
        for (size_t i = 0; i < route.changes.size(); ++i)
          known_layouts(fmt::format("{}/changes/{}", where, i),
                        {route.changes[i].from, route.changes[i].to});
      }
    }
  }

  void check_numerics() {
    for (const auto& [type, numerics] : chip.numerics) {
      const std::string at = "/numerics/" + type;
      known_type(at, type);
      known_type(at + "/accumulate", numerics.accumulate);
      for (size_t i = 0; i < numerics.overflow.size(); ++i)
        if (numerics.overflow[i] != "infinity" && numerics.overflow[i] != "saturate")
          refuse(fmt::format("{}/overflow/{}", at, i), "must be 'infinity' or 'saturate'");
      for (size_t i = 0; i < numerics.saturated_results.size(); ++i)
        known_type(fmt::format("{}/saturated_results/{}", at, i), numerics.saturated_results[i]);
      if (numerics.operand_bits && !numerics.operand_rounding)
        refuse(at + "/operand_rounding", "is missing: operands lose bits");
      if (numerics.fraction_bits && !numerics.alignment)
        refuse(at + "/alignment", "is missing: addends lose bits");
      check_sums(at, numerics);
    }
  }

  void check_sums(const std::string& at, const Numerics& n) {
    const bool fused = n.order == SumOrder::kFused;
    if (!fused && n.fraction_bits) refuse(at + "/fraction_bits", "is for sums in order 'fused'");
    if (n.sum_bits && !(fused && n.fraction_bits))
      refuse(at + "/sum_bits", "needs order 'fused' and fraction_bits");
    for (const auto& [name, fact] :
         {std::pair("parts", &n.parts), {"total_bits", &n.total_bits}, {"reach", &n.reach}})
      if (*fact && !n.sum_bits) refuse(fmt::format("{}/{}", at, name), "needs sum_bits");
    for (const auto& [name, fact] : {std::pair("parts", &n.parts), {"exact", &n.exact}})
      if (*fact && n.group.value % (*fact)->value != 0)
        refuse(fmt::format("{}/{}", at, name),
               fmt::format("{}, need a divisor of group, {}", (*fact)->value, n.group.value));
  }

  void check_threads() {
    if (!chip.threads) return;
    const Threads& t = *chip.threads;
    if (t.shared_bytes_per_block.value > t.shared_bytes_per_core.value)
      refuse("/threads/shared_bytes_per_block", fmt::format("{}, need at most that of a core, {}",
                                                            t.shared_bytes_per_block.value.value,
                                                            t.shared_bytes_per_core.value.value));
    if (t.register_unit.value > t.registers_per_core.value)
      refuse("/threads/register_unit", "is more than a core has");
    if (t.threads_per_block.value > t.warp.value * t.warps_per_core.value)
      refuse("/threads/threads_per_block", "is more than a core holds");
  }

  void check_rest() {
    for (const auto& [name, kernel] : chip.vendor_kernels) {
      const std::string at = "/vendor_kernels/" + name;
      for (size_t i = 0; i < kernel.types.size(); ++i)
        known_type(fmt::format("{}/types/{}", at, i), kernel.types[i]);
      for (const auto& [operand, layouts] : kernel.layouts)
        known_layouts(fmt::format("{}/layouts/{}", at, operand), layouts);
    }
    for (const auto& [name, constant] : chip.constants)
      if (constant.cite.grade == Grade::kMeasured && constant.fitted_to.empty())
        refuse(fmt::format("/constants/{}/fitted_to", name), "is missing: to what was it fitted?");
  }
};

}  // namespace

std::optional<Fault> verify(const Chip& chip) {
  Verifier v{.chip = chip};
  v.check_cores();
  v.check_memory();
  v.check_units();
  v.check_engines();
  v.check_numerics();
  v.check_threads();
  v.check_rest();
  return v.fault;
}

}  // namespace tessera::chip
