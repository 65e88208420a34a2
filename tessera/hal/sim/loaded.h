// An engine program made ready for a chip: verified, its names resolved, its rates in picoseconds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/chip/chip.h"
#include "tessera/tile/engine_chip.h"

namespace tessera::hal::sim {

namespace engine = tile::engine;

// One engine of a core, as fast as the chip says.
struct EngineRate {
  engine::Where where;
  double cycle_ps = 0;
};

struct Space {
  std::string name;
  int64_t bytes = 0;  // that the program uses of it
  int64_t alignment = 1;
};

class Loaded {
 public:
  // As engine::verify.
  static Result<Loaded> make(std::shared_ptr<const chip::Chip> chip, engine::Program program);

  const engine::Program& program() const { return program_; }
  const chip::Chip& chip() const { return *chip_; }
  const std::vector<EngineRate>& engines() const { return engines_; }
  const std::vector<Space>& spaces() const { return spaces_; }
  // By buffer: the space that it lies in, -1 for arguments; where its elements lie, for all others.
  int space_of(int buffer) const { return space_of_[static_cast<size_t>(buffer)]; }
  const engine::Places& places(int buffer) const { return places_[static_cast<size_t>(buffer)]; }
  int64_t cores() const { return cores_; }
  int64_t flags() const { return flags_; }
  // Whether any engine is a matrix unit.
  bool multiplies() const;

 private:
  std::shared_ptr<const chip::Chip> chip_;
  engine::Program program_;
  std::vector<EngineRate> engines_;
  std::vector<Space> spaces_;
  std::vector<int> space_of_;
  std::vector<engine::Places> places_;
  int64_t cores_ = 1;
  int64_t flags_ = 1;
};

}  // namespace tessera::hal::sim
