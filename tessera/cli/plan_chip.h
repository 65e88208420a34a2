// Planning for chips that need not be here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/chip/catalog.h"
#include "tessera/cli/arguments.h"
#include "tessera/cli/model_options.h"
#include "tessera/forecast/forecast.h"

namespace tessera::cli {

struct ChipOptions {
  std::string kernels = "own";
  std::string host = "cpu_avx512";
  std::string html;
};
// --kernels, --host and --html.
void add_chip_options(Verb& verb, ChipOptions& options);

// Whether a device is a chip of the catalog, or a chip's file, and not one that is here to run on.
bool names_chip(std::string_view device);

// The model and the options, as forecast() takes them; `device` names the chip.
struct ChipPlanning {
  forecast::Subject subject;
  forecast::Options options;
  std::map<std::string, int64_t> assumed;  // sizes that nothing gave
};
Result<ChipPlanning> chip_planning(const ModelOptions& model, const ChipOptions& chip,
                                   const std::string& device);

// Prints the plan for one chip, or for several a table that compares them.
Result<int> plan_for_chips(const ModelOptions& model, const ChipOptions& chip);

// Says why; of one operator, if `node` names one.
Result<int> explain_for_chip(const ModelOptions& model, const ChipOptions& chip,
                             const std::string& node);

}  // namespace tessera::cli
