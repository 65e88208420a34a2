// Options that every subcommand with a model takes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/cli/arguments.h"
#include "tessera/session/model.h"

namespace tessera::cli {

struct ModelOptions {
  std::string model;
  std::vector<std::string> dims, shapes;
  std::string device = "cpu";
  std::vector<std::string> devices = {};  // where several may be given, or a chip: as they came
  std::string layout = "optimal";
  std::string isa;
  std::string provider = "auto";
  std::string codegen = "auto";
  std::string precision = "f32";
  int threads = 0;
  std::string memory_limit;
  double timeout = 0;
  bool json = false;
  bool fuse = true;  // no option: false where all values of the graph are wanted
};

// MODEL, --dim, --shape and --json.
void add_model_options(Verb& verb, ModelOptions& options);
// --device, --threads, --memory-limit and --timeout.
void add_device_options(Verb& verb, ModelOptions& options);
// The same for verbs that also plan for chips that are not here: --device may come several times.
void add_planning_options(Verb& verb, ModelOptions& options);

// Of a verb with add_planning_options(), where no chip was named: the one device, and what only
// chips take refused.
Status settle_device(ModelOptions& options);

// kInvalidArgument for what cannot be read, and for a --dim that the model has no size of that name
// for.
Result<session::LoadOptions> load_options(const ModelOptions& options);

// Loads with progress; `extra_outputs` are values of the graph to be yielded beside the outputs.
Result<std::unique_ptr<session::Model>> load_model(const ModelOptions& options,
                                                   std::vector<std::string> extra_outputs = {});

// When the time given with --timeout, counted from the start of the process, is over.
std::optional<std::chrono::steady_clock::time_point> deadline(const ModelOptions& options);

// --memory-limit, or its default.
Result<Bytes> memory_limit(const ModelOptions& options);

// As many as will compute.
int threads_of(const ModelOptions& options);

// "name=value" at the last '='. kInvalidArgument if there is none, naming the option.
Result<std::pair<std::string, std::string>> split(const std::string& text, std::string_view option);
// "1x3x224x224", "1,3,224,224"; "scalar" for rank 0.
Result<op::Dims> parse_dims(std::string_view text);
// "1048576", "512M", "2GiB": powers of 1024.
Result<Bytes> parse_bytes(std::string_view text);

}  // namespace tessera::cli
