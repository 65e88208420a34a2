// Tries programs for simulated chips on trials (tile/testing). For tests only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tessera/codegen/sim/source.h"
#include "tessera/hal/device.h"
#include "tessera/tile/testing/trial.h"

namespace tessera::codegen::sim::testing {

// A chip of the catalog with what makes programs for it.
class Machine {
 public:
  static Result<Machine> open(const std::string& chip, const hal::Options& options = {});

  const Source& source() const { return *source_; }
  hal::Device& device() { return *device_; }
  // What is wrong with what the program for the trial's problem computes; empty if nothing is.
  // Nothing if there is no program for it; `why` tells.
  std::optional<std::string> run(const tile::testing::Trial& trial, std::string* why = nullptr);
  // What the problem's launches take on the chip, by its own clock; nothing is computed where the
  // device was opened for timing.
  Result<Seconds> time(const op::Problem& problem);

 private:
  std::unique_ptr<hal::Backend> backend_;
  std::unique_ptr<hal::Device> device_;
  std::shared_ptr<const Source> source_;
};

}  // namespace tessera::codegen::sim::testing
