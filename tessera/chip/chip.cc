#include "tessera/chip/chip.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/dtype.h"
#include "tessera/chip/fields.h"

namespace tessera::chip {

std::string_view name_of(Grade grade) { return name_in(kGrades, grade); }

std::string Cite::str() const { return fmt::format("{}: {}", name_of(grade), source); }

std::optional<int> storage_bits(std::string_view type) {
  for (const Mode& mode : kModes)
    if (mode.name == type) return mode.bits;
  const auto dtype = dtype_from_name(type);
  if (!dtype || name_of(*dtype) != type || bits_of(*dtype) == 0) return std::nullopt;
  return bits_of(*dtype);
}

const Memory& Chip::device_memory() const {
  return std::ranges::find_if(memory,
                              [](const auto& m) { return m.second.kind == MemoryKind::kDevice; })
      ->second;
}

double Chip::clock_of(const Unit& unit) const {
  return unit.clock_hz ? unit.clock_hz->value : cores.at(unit.core).clock_hz.value;
}

int64_t Chip::count_of(const Unit& unit) const {
  return cores.at(unit.core).count.value * unit.per_core.value;
}

double Chip::bandwidth_of(const Memory& m) const {
  if (m.bytes_per_second) return m.bytes_per_second->value;
  if (!m.bytes_per_cycle || m.core.empty()) return 0;
  const Core& core = cores.at(m.core);
  return m.bytes_per_cycle->value * core.clock_hz.value * static_cast<double>(core.count.value);
}

}  // namespace tessera::chip
