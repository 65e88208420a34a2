// Where a run's inputs come from: files, a test set, or random numbers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/cli/arguments.h"
#include "tessera/session/model.h"

namespace tessera::cli {

struct InputOptions {
  std::vector<std::string> inputs;  // NAME=FILE, or an .npz whose members are inputs
  std::vector<std::string> types;   // TYPE, or NAME=TYPE: of raw files
  std::optional<uint64_t> seed;     // random numbers for what is not given
  std::string test_set;             // folder with input_N.pb
};

// --input, --input-type and --random.
void add_input_options(Verb& verb, InputOptions& options);

struct Inputs {
  std::map<std::string, op::Value> values;
  std::map<std::string, int64_t> assumed;  // sizes that nothing gave, and what they were taken as
};

// Everything the model needs. kInvalidArgument, naming both sides, for inputs that are missing,
// superfluous, given twice or of another type than the model's; kResourceExhausted if random ones
// would take more than `memory_limit`.
Result<Inputs> read_inputs(const session::Model& model, const InputOptions& options,
                           Bytes memory_limit);

// A line for people, or nothing.
std::string describe_assumed(const std::map<std::string, int64_t>& assumed);

// The inputs' open sizes that are not in `known`, as 1; and a readable name for each that has none.
std::map<std::string, int64_t> assume_sizes(const std::vector<session::Port>& inputs,
                                            op::Bindings& known);

}  // namespace tessera::cli
