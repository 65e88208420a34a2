#include "tessera/cli/model_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <set>

#include "tessera/base/file.h"
#include "tessera/base/limits.h"
#include "tessera/base/machine.h"
#include "tessera/base/thread_pool.h"
#include "tessera/cli/arguments.h"
#include "tessera/cli/process.h"
#include "tessera/cli/terminal.h"
#include "tessera/import/onnx/proto.h"

namespace tessera::cli {
namespace {

constexpr int64_t kMostSize = std::numeric_limits<int32_t>::max();

Result<int64_t> parse_size(std::string_view text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 0)
    return error(Code::kInvalidArgument, "'{}' is not a size (a whole number of at least 0)", text);
  return value;
}

// Symbols in the types of the model's inputs.
Result<std::set<std::string, std::less<>>> symbols_of(const std::string& path) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  auto model = import::onnx::parse_model(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  if (!model) return error(std::move(model).error().at(fmt::format("file '{}'", path)));
  std::set<std::string, std::less<>> symbols;
  for (const auto& input : model->graph.input)
    for (const auto& dim : input.type.shape)
      if (!dim.value && !dim.param.empty()) symbols.emplace(dim.param);
  return symbols;
}

Status check_dims(const ModelOptions& options, const session::LoadOptions& load) {
  if (load.dims.empty()) return {};
  TRY_ASSIGN(auto symbols, symbols_of(options.model));
  for (const auto& [name, size] : load.dims)
    if (!symbols.contains(name))
      return error(Code::kInvalidArgument,
                   "--dim {}={}: the model's inputs have no size '{}'; open sizes: {}", name, size,
                   name, symbols.empty() ? "none" : fmt::format("{}", fmt::join(symbols, ", ")));
  return {};
}

}  // namespace

void add_model_options(Verb& verb, ModelOptions& options) {
  verb.option("model", options.model, "The model, an ONNX file").required().type_name("MODEL");
  verb.option("--dim", options.dims, "Size of a symbol, e.g. batch=8")
      .type_name("NAME=SIZE")
      .one_value_each();
  verb.option("--shape", options.shapes, "Shape of an input, e.g. x=1x3x48x192")
      .type_name("INPUT=SHAPE")
      .one_value_each();
  verb.flag("--json", options.json, "Print one JSON object");
}

namespace {

void add_running_options(Verb& verb, ModelOptions& options, bool plans) {
  verb.option("--threads", options.threads, "Threads; 0: one for each core that may be used")
      .in_range(0, 4096)
      .shows_default()
      .type_name("N");
  verb.option(
          "--layout", options.layout,
          plans
              ? "How memory layouts are chosen: none (row-major where a kernel takes it), greedy, "
                "any, propagate, optimal, or all: a table of them; default: optimal, of a "
                "vendor's kernels none"
              : "How memory layouts are chosen: none (row-major), greedy, any, propagate, "
                "optimal; default: optimal")
      .one_of(plans
                  ? std::vector<std::string>{"none", "greedy", "any", "propagate", "optimal", "all"}
                  : std::vector<std::string>{"none", "greedy", "any", "propagate", "optimal"})
      .type_name("MODE");
  verb.option("--isa", options.isa,
              "Most of the CPU's instruction sets that kernels use: generic, avx2, avx512, "
              "avx512vnni, avx512bf16 or amx; on aarch64 generic or neon; default: the best here")
      .one_of({"generic", "neon", "avx2", "avx512", "avx512vnni", "avx512bf16", "amx"})
      .type_name("NAME");
  verb.option(
          "--provider", options.provider,
          "Whose kernels: own, all (oneDNN's, too, by cost), onednn (wherever it has one), auto "
          "(all once tessera calibrate has measured oneDNN)")
      .one_of({"auto", "own", "all", "onednn"})
      .shows_default()
      .type_name("NAME");
  verb.option("--codegen", options.codegen,
              "Kernels made for the model's own groups of operators: none, auto (those that have "
              "been compiled before) or mlir (compile what is missing)")
      .one_of({"none", "auto", "mlir"})
      .shows_default()
      .type_name("MODE");
  verb.option("--precision", options.precision,
              "What products may be taken in: f32, f16 or bf16 where that is faster; f16! or bf16! "
              "whatever it costs")
      .one_of(plans ? std::vector<std::string>{"f32", "f16", "bf16", "f16!", "bf16!", "fp16"}
                    : std::vector<std::string>{"f32", "f16", "bf16", "f16!", "bf16!"})
      .shows_default()
      .type_name("TYPE");
  verb.option("--memory-limit", options.memory_limit,
              "Most memory for values, e.g. 512M or 2G; default: 80 % of the memory")
      .type_name("BYTES");
  verb.option("--timeout", options.timeout, "Give up after so many seconds")
      .positive()
      .type_name("SECONDS");
}

}  // namespace

void add_device_options(Verb& verb, ModelOptions& options) {
  verb.option("--device", options.device,
              "Where to run; 'reference' is the interpreter alone (slow)")
      .shows_default()
      .type_name("NAME");
  add_running_options(verb, options, false);
}

void add_planning_options(Verb& verb, ModelOptions& options) {
  verb.option("--device", options.devices,
              "cpu, or a chip of the catalog (tessera devices --catalog) or its file; several "
              "chips are compared; default: cpu")
      .one_value_each()
      .type_name("NAME");
  options.layout.clear();
  add_running_options(verb, options, true);
}

Status settle_device(ModelOptions& options) {
  if (options.devices.size() > 1)
    return error(Code::kInvalidArgument, "{} devices: only chips of the catalog are compared",
                 options.devices.size());
  if (!options.devices.empty()) options.device = options.devices.front();
  if (options.layout == "all")
    return error(Code::kInvalidArgument, "--layout all needs a chip: --device CHIP");
  if (options.layout.empty()) options.layout = "optimal";
  if (options.precision == "fp16") options.precision = "f16";
  return {};
}

Result<std::pair<std::string, std::string>> split(const std::string& text,
                                                  std::string_view option) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    return error(Code::kInvalidArgument, "{} '{}' is not of the form NAME=VALUE", option, text);
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Result<op::Dims> parse_dims(std::string_view text) {
  op::Dims dims;
  if (text == "scalar") return dims;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of("x,", begin), text.size());
    auto size = parse_size(text.substr(begin, end - begin));
    if (!size) return error(std::move(size).error().at(fmt::format("shape '{}'", text)));
    dims.push_back(*size);
    begin = end + 1;
  }
  return dims;
}

Result<Bytes> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGTP";
  std::string_view number = text;
  int64_t scale = 1;
  if (number.ends_with("iB")) number.remove_suffix(2);
  if (!number.empty())
    if (const size_t unit =
            kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(number.back()))));
        unit != kUnits.npos) {
      scale = int64_t{1} << (10 * (unit + 1));
      number.remove_suffix(1);
    }
  auto value = parse_size(number);
  if (!value || *value == 0 || *value > std::numeric_limits<int64_t>::max() / scale)
    return error(Code::kInvalidArgument,
                 "'{}' is not an amount of memory, such as 1048576, 512M or 2GiB", text);
  return Bytes(*value * scale);
}

Result<session::LoadOptions> load_options(const ModelOptions& options) {
  session::LoadOptions load;
  for (const std::string& text : options.dims) {
    TRY_ASSIGN(auto pair, split(text, "--dim"));
    auto size = parse_size(pair.second);
    if (size && *size > kMostSize)
      size = error(Code::kOutOfRange, "{} is beyond the largest size, {}", *size, kMostSize);
    if (!size) return error(std::move(size).error().at(fmt::format("--dim {}", text)));
    load.dims[pair.first] = *size;
  }
  for (const std::string& text : options.shapes) {
    TRY_ASSIGN(auto pair, split(text, "--shape"));
    auto dims = parse_dims(pair.second);
    if (!dims) return error(std::move(dims).error().at(fmt::format("--shape {}", text)));
    if (auto count = op::element_count(*dims); !count)
      return error(std::move(count).error().at(fmt::format("--shape {}", text)));
    load.shapes[pair.first] = *dims;
  }
  TRY_ASSIGN(load.memory_limit, memory_limit(options));
  load.device = options.device;
  load.layout = passes::layout_mode_from_name(options.layout).value_or(load.layout);
  load.threads = options.threads;
  load.fuse = options.fuse;
  load.isa = options.isa;
  load.provider = options.provider;
  using codegen::mlir::Mode;
  load.codegen = options.codegen == "none"   ? Mode::kNone
                 : options.codegen == "mlir" ? Mode::kAlways
                                             : Mode::kCached;
  load.precision = options.precision;
  TRY(check_dims(options, load));
  return load;
}

Result<std::unique_ptr<session::Model>> load_model(const ModelOptions& options,
                                                   std::vector<std::string> extra_outputs) {
  const Progress progress(fmt::format("loading {}", options.model));
  TRY_ASSIGN(session::LoadOptions load, load_options(options));
  load.extra_outputs = std::move(extra_outputs);
  TRY_ASSIGN(auto model, session::Model::load(options.model, load));
  if (const auto end = deadline(options); end && std::chrono::steady_clock::now() > *end)
    return error(Code::kDeadlineExceeded, "loading took {}, the time limit is {} s",
                 to_string(since_start()), options.timeout);
  return model;
}

std::optional<std::chrono::steady_clock::time_point> deadline(const ModelOptions& options) {
  constexpr double kForever = 1e9;
  if (options.timeout <= 0 || options.timeout > kForever) return std::nullopt;
  const std::chrono::duration<double> left(options.timeout - since_start().value);
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
}

Result<Bytes> memory_limit(const ModelOptions& options) {
  return options.memory_limit.empty() ? default_memory_limit() : parse_bytes(options.memory_limit);
}

int threads_of(const ModelOptions& options) {
  if (options.device == "reference") return 1;
  return options.threads > 0 ? std::min(options.threads, usable_cpus()) : default_threads();
}

}  // namespace tessera::cli
