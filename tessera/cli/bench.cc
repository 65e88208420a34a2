// tessera bench: how long one inference takes, and how much memory.
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tessera/cli/commands.h"
#include "tessera/cli/conversion.h"
#include "tessera/cli/inputs.h"
#include "tessera/cli/model_options.h"
#include "tessera/cli/problem_model.h"
#include "tessera/cli/process.h"
#include "tessera/cli/terminal.h"

namespace tessera::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUp = 0.3;  // seconds, at least
constexpr double kDefaultDuration =
    1;  // seconds that the timed inferences take about, without --iters
constexpr int kMostDefaultIters = 1000;

struct BenchArguments : ModelOptions, InputOptions {
  int iters = 0;
  std::string problem;
  ConvertArguments convert;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The value below which `share` of the sorted numbers lie, interpolated.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

struct Timing {
  std::vector<double> ms;  // sorted
  double first_ms = 0;
  Seconds bind;  // in the first inference
};

Result<Timing> measure(session::Model& model, const Inputs& inputs, const BenchArguments& a) {
  Progress progress(fmt::format("first inference of {}", a.model));
  session::RunOptions options;
  options.deadline = deadline(a);
  Timing timing;
  TRY(model.run(inputs.values, options));
  timing.first_ms = since_start().value * 1e3;
  timing.bind = model.counters().bind;
  progress.set("warming up");
  const auto warm_start = Clock::now();
  int warm = 0;
  do {
    TRY(model.run(inputs.values, options));
    ++warm;
  } while (seconds_since(warm_start) < kWarmUp);
  const double once = seconds_since(warm_start) / warm;
  const int iters =
      a.iters > 0
          ? a.iters
          : static_cast<int>(std::clamp(kDefaultDuration / once, 3.0, double{kMostDefaultIters}));
  progress.set(fmt::format("timing {} inferences of about {}", iters, to_string(Seconds(once))));
  timing.ms.reserve(static_cast<size_t>(std::min(iters, 1 << 20)));
  for (int i = 0; i < iters; ++i) {
    const auto start = Clock::now();
    auto outputs = model.run(inputs.values, options);
    timing.ms.push_back(seconds_since(start) * 1e3);
    if (!outputs) return error(std::move(outputs).error());
    if (options.deadline && Clock::now() > *options.deadline)
      return error(Code::kDeadlineExceeded,
                   "the time limit of {} s has passed after {} of {} inferences", a.timeout,
                   timing.ms.size(), iters);
  }
  std::sort(timing.ms.begin(), timing.ms.end());
  return timing;
}

std::string report_text(const Json& r, const std::map<std::string, int64_t>& assumed) {
  Table table({"figure", ">value"});
  for (const char* key : {"ms", "min_ms", "median_ms", "p90_ms", "load_ms", "first_ms", "bind_us"})
    table.add({key, fmt::format("{:.4g}", r[key].get<double>())});
  for (const char* key : {"peak_bytes", "live_bytes", "weight_bytes", "rss_peak_bytes"})
    table.add({key, to_string(Bytes(r[key].get<int64_t>()))});
  for (const char* key : {"iters", "threads"})
    table.add({key, std::to_string(r[key].get<int64_t>())});
  table.add({"device", r["device"]});
  return describe_assumed(assumed) + table.str();
}

Result<int> bench_convert(BenchArguments& a) {
  a.convert.threads = a.threads;
  TRY_ASSIGN(const Json r, bench_conversion(a.convert));
  if (a.json) {
    TRY(print_json(r));
    return kFine;
  }
  Table table({"figure", ">value"});
  for (const char* key : {"ms", "gbps", "memcpy_gbps"})
    table.add({key, fmt::format("{:.4g}", r[key].get<double>())});
  TRY(print_text(table.str()));
  return kFine;
}

Result<int> bench(BenchArguments& a) {
  if (!a.convert.type.empty()) return bench_convert(a);
  if (a.model.empty() == a.problem.empty())
    return error(Code::kInvalidArgument,
                 "give a MODEL, --op STRING, or --convert TYPE --from LAYOUT --to LAYOUT");
  if (!a.seed) a.seed = 0;
  TRY_ASSIGN(Bytes limit, memory_limit(a));
  const Seconds begun = since_start();
  if (!a.problem.empty()) a.model = a.problem;  // what reports and progress name
  TRY_ASSIGN(auto model, a.problem.empty() ? load_model(a) : model_of_problem(a.problem, a));
  const Seconds loaded = since_start();
  TRY_ASSIGN(Inputs inputs, read_inputs(*model, a, limit));
  TRY_ASSIGN(Timing timing, measure(*model, inputs, a));
  const session::MemoryUse memory = model->memory();
  const session::Counters counters = model->counters();
  Json report{{"schema", "tessera.bench/1"},
              {"model", a.model},
              {"device", a.device},
              {"threads", threads_of(a)},
              {"iters", timing.ms.size()},
              {"ms", std::accumulate(timing.ms.begin(), timing.ms.end(), 0.0) /
                         static_cast<double>(timing.ms.size())},
              {"min_ms", timing.ms.front()},
              {"median_ms", quantile(timing.ms, 0.5)},
              {"p90_ms", quantile(timing.ms, 0.9)},
              {"load_ms", (loaded - begun).value * 1e3},
              {"first_ms", timing.first_ms},
              {"bind_us", timing.bind.value * 1e6},
              {"peak_bytes", memory.peak.value},
              {"live_bytes", memory.live.value},
              {"weight_bytes", memory.weights.value},
              {"rss_peak_bytes", peak_resident().value},
              {"counters",
               {{"kernels", counters.kernel_launches},
                {"host", counters.host_operators},
                {"reference", counters.reference_launches},
                {"plans", counters.plans},
                {"compiled", counters.code.compiled},
                {"compiled_before", counters.code.loaded},
                {"compile_ms", counters.code.seconds * 1e3}}}};
  if (!inputs.assumed.empty()) report["assumed"] = inputs.assumed;
  if (a.json)
    TRY(print_json(report));
  else
    TRY(print_text(report_text(report, inputs.assumed)));
  return kFine;
}

constexpr const char* kFooter =
    "Times are of one inference at a time, in milliseconds, after 0.3 s of warm-up; load_ms is "
    "from the file to a model that is\n"
    "ready, first_ms from the start of the process to the first result. Inputs that are not given "
    "are random, sizes that nothing\n"
    "gives are 1.\n"
    "\n"
    "Examples:\n"
    "  tessera bench resnet50.onnx --threads 1 --iters 50 --json\n"
    "  tessera bench bert.onnx --dim batch=1 --dim sequence=128\n"
    "  tessera bench --op softmax_f32_m4096n4096\n"
    "  tessera bench --convert 'f32[4096,4096]' --from 'm n' --to 'n m' --threads 1";

}  // namespace

Job bench_command(Parser& parser) {
  Verb verb = parser.verb("bench", "Time a model");
  auto a = std::make_shared<BenchArguments>();
  add_model_options(verb, *a);
  add_input_options(verb, *a);
  verb.option("--test-set", a->test_set, "Inputs from input_N.pb of this folder").type_name("DIR");
  add_device_options(verb, *a);
  verb.option("--iters", a->iters, "Timed inferences; default: about a second's")
      .in_range(1, 100000000)
      .type_name("N");
  verb.find("model").required(false);
  verb.option("--op", a->problem,
              "Time one operator instead of a model, e.g. matmul_f32_m512n512k512 (docs/cli.md)")
      .type_name("STRING");
  verb.option("--convert", a->convert.type,
              "Time a change of layout of this type instead of a model, e.g. f32[4096,4096]")
      .type_name("TYPE");
  verb.option("--from", a->convert.from, "With --convert: the layout, e.g. 'm n'")
      .type_name("LAYOUT");
  verb.option("--to", a->convert.to, "With --convert: the other layout, e.g. 'n/16 m/16 m%16 n%16'")
      .type_name("LAYOUT");
  verb.footer(kFooter);
  return [a] { return bench(*a); };
}

}  // namespace tessera::cli
