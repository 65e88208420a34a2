// tessera run: one inference, its answers, and where the time went.
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "tessera/cli/commands.h"
#include "tessera/cli/inputs.h"
#include "tessera/cli/model_options.h"
#include "tessera/cli/process.h"
#include "tessera/cli/terminal.h"
#include "tessera/cli/values.h"

namespace tessera::cli {
namespace {

struct RunArguments : ModelOptions, InputOptions {
  std::vector<std::string> extra;
  std::string output_dir, check, dump;
  bool no_check = false;
  Tolerance tolerance;
};

double ms_between(Seconds from, Seconds to) { return (to - from).value * 1e3; }

// Collects named values as they are computed.
class Dump {
 public:
  static Result<Dump> make(const std::string& folder) {
    TRY_ASSIGN(ValueWriter writer, ValueWriter::make(folder));
    return Dump(std::move(writer));
  }
  void take(const std::string& name, const op::Value& value) {
    if (!status_) return;
    auto entry = writer_.write(value, name);
    if (entry)
      list_.push_back(std::move(*entry));
    else
      status_ = tl::unexpected(std::move(entry).error());
  }
  const Status& status() const { return status_; }
  const Json& list() const { return list_; }

 private:
  explicit Dump(ValueWriter writer) : writer_(std::move(writer)) {}
  ValueWriter writer_;
  Status status_;
  Json list_ = Json::array();
};

// One entry per output: {"name", "ok", "count", "mismatched", "max_abs", "max_rel", "first"}.
Result<Json> check_outputs(const std::vector<session::Port>& ports,
                           const std::vector<op::Value>& outputs, size_t count,
                           const std::string& folder, const Tolerance& tolerance) {
  Json list = Json::array();
  for (size_t i = 0; i < count; ++i) {
    TRY_ASSIGN(op::Value expected, read_expected(folder, ports[i].name, i, ports[i].type));
    const Difference d = compare(outputs[i], expected, tolerance);
    Json entry{{"name", ports[i].name},     {"ok", d.equal()},
               {"count", d.count},          {"mismatched", d.mismatched},
               {"max_abs", d.max_absolute}, {"max_rel", d.max_relative}};
    if (!d.equal()) entry["first"] = d.first;
    list.push_back(std::move(entry));
  }
  return list;
}

bool all_ok(const Json& checks) {
  return std::all_of(checks.begin(), checks.end(),
                     [](const Json& c) { return c["ok"].get<bool>(); });
}

std::string check_text(const Json& checks) {
  std::string out;
  for (const Json& c : checks) {
    const std::string name = visible(c["name"].get<std::string>());
    if (c["ok"])
      out += fmt::format("{} '{}': {} elements, largest error {:.3g} (relative {:.3g})\n",
                         green("as expected"), name, c["count"].get<int64_t>(),
                         c["max_abs"].get<double>(), c["max_rel"].get<double>());
    else
      out += fmt::format("{} '{}': {} of {} elements; {}\n", red("mismatch"), name,
                         c["mismatched"].get<int64_t>(), c["count"].get<int64_t>(),
                         visible(c["first"].get<std::string>()));
  }
  return out;
}

std::string report_text(const Json& report, const std::map<std::string, int64_t>& assumed) {
  const Json& times = report["times_ms"];
  const Json& counters = report["counters"];
  std::string out = describe_assumed(assumed) + table_of(report["outputs"]).str();
  if (report.contains("check")) out += "\n" + check_text(report["check"]);
  out += fmt::format("\n{} thread{} of {}: load {}, inputs {}, run {}, outputs {}\n",
                     report["threads"].get<int>(), report["threads"] == 1 ? "" : "s",
                     report["device"].get<std::string>(),
                     to_string(Seconds(times["load"].get<double>() / 1e3)),
                     to_string(Seconds(times["inputs"].get<double>() / 1e3)),
                     to_string(Seconds(report["ms"].get<double>() / 1e3)),
                     to_string(Seconds(times["outputs"].get<double>() / 1e3)));
  if (report.contains("simulated_ms"))
    out += fmt::format("simulated time {}\n",
                       to_string(Seconds(report["simulated_ms"].get<double>() / 1e3)));
  return out + fmt::format("{} kernels, {} host operators, {} by the reference interpreter\n",
                           counters["kernels"].get<int64_t>(), counters["host"].get<int64_t>(),
                           counters["reference"].get<int64_t>());
}

Result<int> run(const RunArguments& a) {
  if (!a.check.empty() && a.no_check)
    return error(Code::kInvalidArgument, "--check and --no-check contradict each other");
  TRY_ASSIGN(Bytes limit, memory_limit(a));
  const Seconds begun = since_start();
  ModelOptions wanted = a;
  wanted.fuse = a.dump.empty();
  TRY_ASSIGN(auto model, load_model(wanted, a.extra));
  const Seconds loaded = since_start();
  TRY_ASSIGN(Inputs inputs, read_inputs(*model, a, limit));
  TRY_ASSIGN(ValueWriter writer, ValueWriter::make(a.output_dir));
  TRY_ASSIGN(Dump dump, Dump::make(a.dump));
  const Seconds read = since_start();

  session::RunOptions options;
  options.deadline = deadline(a);
  if (!a.dump.empty())
    options.observe = [&](const std::string& name, const op::Value& value) {
      dump.take(name, value);
    };
  auto progress = std::make_unique<Progress>(fmt::format("running {}", a.model));
  TRY_ASSIGN(std::vector<op::Value> outputs, model->run(inputs.values, options));
  progress.reset();
  TRY(dump.status());
  const Seconds ran = since_start();

  Json list = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    TRY_ASSIGN(Json entry, writer.write(outputs[i], model->outputs()[i].name));
    list.push_back(std::move(entry));
  }
  const Seconds written = since_start();
  const session::Counters counters = model->counters();
  Json report{{"schema", "tessera.run/1"},   {"model", a.model},
              {"device", a.device},          {"threads", threads_of(a)},
              {"ms", ms_between(read, ran)}, {"outputs", std::move(list)}};
  if (counters.simulated) report["simulated_ms"] = counters.simulated->value * 1e3;
  if (!a.dump.empty()) report["dump"] = dump.list();
  if (!inputs.assumed.empty()) report["assumed"] = inputs.assumed;
  bool fine = true;
  const std::string& expected = a.check.empty() && !a.no_check ? a.test_set : a.check;
  if (!expected.empty()) {
    TRY_ASSIGN(Json checks, check_outputs(model->outputs(), outputs,
                                          outputs.size() - a.extra.size(), expected, a.tolerance));
    fine = all_ok(checks);
    report["check"] = std::move(checks);
  }
  report["counters"] = {
      {"kernels", counters.kernel_launches},      {"host", counters.host_operators},
      {"reference", counters.reference_launches}, {"plans", counters.plans},
      {"compiled", counters.code.compiled},       {"compiled_before", counters.code.loaded},
      {"compile_ms", counters.code.seconds * 1e3}};
  report["times_ms"] = {{"load", ms_between(begun, loaded)},
                        {"inputs", ms_between(loaded, read)},
                        {"run", ms_between(read, ran)},
                        {"outputs", ms_between(ran, written)}};
  if (a.json)
    TRY(print_json(report));
  else
    TRY(print_text(report_text(report, inputs.assumed)));
  return fine ? kFine : kBadAnswer;
}

constexpr const char* kFooter =
    "Output files are named after the outputs; bytes other than letters, digits and _ - + . are "
    "written as %xx.\n"
    "\n"
    "Examples:\n"
    "  tessera run resnet50.onnx --input data=image.npy --output-dir out\n"
    "  tessera run det.onnx --random 7 --shape x=1x3x640x640\n"
    "  tessera run model.onnx --input raw.npz --check expected --rtol 1e-4\n"
    "  tessera run case/model.onnx --test-set case/test_data_set_0\n"
    "  tessera run model.onnx --random 1 --output /layer1/Relu_output_0 --output-dir out";

}  // namespace

Job run_command(Parser& parser) {
  Verb verb = parser.verb("run", "Run a model once and show or write what it yields");
  auto a = std::make_shared<RunArguments>();
  add_model_options(verb, *a);
  add_input_options(verb, *a);
  verb.option("--test-set", a->test_set,
              "Inputs from input_N.pb of this folder; outputs are compared with its output_N.pb")
      .type_name("DIR");
  add_device_options(verb, *a);
  verb.option("--output-dir", a->output_dir,
              "Write the outputs here: .npy, or .pb for types that numpy lacks")
      .type_name("DIR");
  verb.option("--output", a->extra, "Yield this value of the graph as well")
      .type_name("VALUE")
      .one_value_each();
  verb.option("--dump", a->dump, "Write every named value here as it is computed (slow)")
      .type_name("DIR");
  verb.option("--check", a->check,
              "Compare with files named as --output-dir names them, or output_N.pb")
      .type_name("DIR");
  verb.flag("--no-check", a->no_check, "Do not compare with the test set's outputs");
  verb.option("--rtol", a->tolerance.relative, "Relative tolerance of the comparison")
      .non_negative()
      .shows_default()
      .type_name("X");
  verb.option("--atol", a->tolerance.absolute, "Absolute tolerance of the comparison")
      .non_negative()
      .shows_default()
      .type_name("X");
  verb.footer(kFooter);
  return [a] { return run(*a); };
}

}  // namespace tessera::cli
