#include "tessera/hal/sim/loaded.h"

#include <algorithm>

namespace tessera::hal::sim {

Result<Loaded> Loaded::make(std::shared_ptr<const chip::Chip> chip, engine::Program program) {
  TRY(engine::verify(program, *chip));
  Loaded l;
  l.chip_ = std::move(chip);
  l.program_ = std::move(program);
  const chip::Core& core = l.chip_->cores.find(l.program_.core)->second;
  l.cores_ = core.count.value;
  l.flags_ = engine::flags_of(*l.chip_, l.program_.core);
  for (const std::string& name : l.program_.engines) {
    const auto where = engine::find_engine(*l.chip_, l.program_.core, name);
    const double hertz =
        where->computes ? l.chip_->clock_of(*where->computes) : core.clock_hz.value;
    l.engines_.push_back({*where, 1e12 / hertz});
  }
  for (const engine::Buffer& b : l.program_.buffers) {
    if (b.argument()) {
      l.space_of_.push_back(-1);
      l.places_.emplace_back();
      continue;
    }
    auto space = std::ranges::find(l.spaces_, b.space, &Space::name);
    if (space == l.spaces_.end()) {
      l.spaces_.push_back(
          {b.space, 0, engine::alignment_of(l.chip_->memory.find(b.space)->second)});
      space = l.spaces_.end() - 1;
    }
    TRY_ASSIGN(engine::Places places, engine::places_of(b, {}));
    space->bytes = std::max(space->bytes, b.offset + places.span * (bits_of(b.dtype) / 8));
    l.space_of_.push_back(static_cast<int>(space - l.spaces_.begin()));
    l.places_.push_back(std::move(places));
  }
  return l;
}

bool Loaded::multiplies() const {
  return std::ranges::any_of(engines_, [](const EngineRate& e) {
    return e.where.computes && e.where.computes->kind == chip::UnitKind::kMatrix;
  });
}

}  // namespace tessera::hal::sim
