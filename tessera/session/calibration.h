// What this machine's processor reaches, measured once and kept: the rates behind the cost of CPU
// kernels.
//
//   {"schema": "tessera.calibration/1", "cpu": "...", "isa": "avx512", "flops_per_second": ...,
//    "narrow_flops_per_second": {"bf16": ..., "i8": ...}, "bytes_per_second": ...,
//    "launch_seconds": ..., "efficiency": {"cpu.conv": 0.7, ...}}
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/kernels/rates.h"

namespace tessera::session {

struct Calibration {
  std::string cpu;  // the processor's name
  std::string isa;
  kernels::Rates rates;
};

// As /proc/cpuinfo says; "" if nothing does.
std::string cpu_name();

// Measures the CPU backend on one thread, in less than a minute. `progress` hears what is going on.
// `provider`: whose kernels, see LoadOptions.
Result<Calibration> calibrate(const std::function<void(const std::string&)>& progress,
                              std::string_view provider = "own");

std::string to_json(const Calibration& calibration);
// kInvalidArgument, with the field, for anything else and for rates that are no positive numbers.
Result<Calibration> calibration_from_json(std::string_view text);

// $TESSERA_CALIBRATION, or calibration.json in $XDG_CACHE_HOME/tessera or ~/.cache/tessera. Empty:
// no calibration is wanted (the variable is "none") or there is no home.
std::string calibration_path();
// The stored one if it is for this processor and instruction set; nothing otherwise.
std::optional<Calibration> stored_calibration(std::string_view isa);

}  // namespace tessera::session
