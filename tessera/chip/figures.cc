#include "tessera/chip/figures.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace tessera::chip {
namespace {

int64_t up_to(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

double flops_of(const Chip& chip, const Unit& unit, const Rate& rate) {
  return static_cast<double>(chip.count_of(unit)) * rate.macs_per_cycle.value * 2 *
         chip.clock_of(unit);
}

}  // namespace

std::vector<Peak> peaks(const Chip& chip) {
  std::vector<Peak> result;
  const double bandwidth = chip.bandwidth_of(chip.device_memory());
  for (const auto& [name, unit] : chip.units) {
    const size_t first = result.size();
    for (const auto& [type, rate] : unit.rates) {
      const double flops = flops_of(chip, unit, rate);
      result.push_back({.unit = name,
                        .type = type,
                        .flops_per_second = flops,
                        .arithmetic = fmt::format("{} {} x {} x {} x 2 x {} GHz",
                                                  chip.cores.at(unit.core).count.value, unit.core,
                                                  unit.per_core.value, rate.macs_per_cycle.value,
                                                  chip.clock_of(unit) / 1e9),
                        .ridge = flops / bandwidth});
    }
    std::stable_sort(
        result.begin() + static_cast<std::ptrdiff_t>(first), result.end(),
        [](const Peak& a, const Peak& b) { return a.flops_per_second > b.flops_per_second; });
  }
  return result;
}

double peak_flops(const Chip& chip, UnitKind kind, std::string_view type) {
  double most = 0;
  for (const auto& entry : chip.units) {
    const Unit& unit = entry.second;
    if (unit.kind != kind) continue;
    if (const auto rate = unit.rates.find(type); rate != unit.rates.end())
      most = std::max(most, flops_of(chip, unit, rate->second));
  }
  return most;
}

Result<Occupancy> occupancy(const Chip& chip, const Block& block) {
  if (!chip.threads)
    return error(Code::kFailedPrecondition, "chip '{}' says nothing of threads", chip.id);
  const Threads& t = *chip.threads;
  const int64_t shared_limit = t.shared_bytes_per_block.value.value;
  if (block.threads < 1 || block.threads > t.threads_per_block.value)
    return error(Code::kOutOfRange, "{} threads in a block, need 1 to {}", block.threads,
                 t.threads_per_block.value);
  if (block.registers_per_thread < 1 || block.registers_per_thread > t.registers_per_thread.value)
    return error(Code::kOutOfRange, "{} registers per thread, need 1 to {}",
                 block.registers_per_thread, t.registers_per_thread.value);
  if (block.shared.value < 0 || block.shared.value > shared_limit)
    return error(Code::kOutOfRange, "{} B of shared memory, need 0 to {}", block.shared.value,
                 shared_limit);
  const int64_t warps = up_to(block.threads, t.warp.value) / t.warp.value;
  const int64_t registers = up_to(block.registers_per_thread * t.warp.value, t.register_unit.value);
  const int64_t warps_by_registers =
      t.registers_per_core.value / registers / t.warp_unit.value * t.warp_unit.value;
  const int64_t reserved = t.shared_reserved_bytes ? t.shared_reserved_bytes->value.value : 0;
  const int64_t shared = up_to(block.shared.value + reserved, t.shared_unit_bytes.value.value);
  struct Bound {
    const char* name;
    int64_t blocks;
  };
  const std::array bounds{
      Bound{"warps", t.warps_per_core.value / warps}, Bound{"blocks", t.blocks_per_core.value},
      Bound{"registers", warps_by_registers / warps},
      Bound{"shared memory",
            shared == 0 ? INT64_MAX : t.shared_bytes_per_core.value.value / shared}};
  const Bound& least = *std::ranges::min_element(bounds, {}, &Bound::blocks);
  return Occupancy{.blocks = least.blocks,
                   .warps = least.blocks * warps,
                   .fraction = static_cast<double>(least.blocks * warps) /
                               static_cast<double>(t.warps_per_core.value),
                   .bound = least.name};
}

}  // namespace tessera::chip
