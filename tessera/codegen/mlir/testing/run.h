// Tries compiled tile programs on trials (tile/testing). For tests only.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tessera/codegen/mlir/target.h"
#include "tessera/hal/device.h"
#include "tessera/tile/schedule.h"
#include "tessera/tile/testing/trial.h"

namespace tessera::codegen::mlir::testing {

// What this machine has, each capped instruction set apart.
std::vector<Target> targets();

// As vectors_of() cuts the program, or with vectors along any axis or none; pieces at random.
tile::Schedule draw_schedule(std::mt19937_64& random, const tile::Program& program,
                             const Target& target);

// A CPU that runs compiled code.
class Machine {
 public:
  Machine();
  // What is wrong with what the compiled program of the trial's problem computes; empty if nothing
  // is. Nothing if there is no code for it. The vector axis and the pieces of the grid are drawn.
  std::optional<std::string> run(std::mt19937_64& random, const tile::testing::Trial& trial,
                                 const Target& target);
  // Compiles a program and runs it on its tensors' bytes.
  Status execute(const tile::Program& program, const tile::Schedule& schedule,
                 const op::Bindings& symbols, const Target& target,
                 const std::vector<std::span<std::byte>>& memory);

 private:
  hal::Registry registry_;
  std::unique_ptr<hal::Device> device_;
};

}  // namespace tessera::codegen::mlir::testing
