#include "tessera/cli/commands.h"

#include <algorithm>
#include <new>

#include "tessera/cli/process.h"
#include "tessera/cli/terminal.h"

namespace tessera::cli {
namespace {

constexpr Job (*kCommands[])(Parser&) = {devices_command,   inspect_command, run_command,
                                         bench_command,     plan_command,    explain_command,
                                         calibrate_command, layout_command};

constexpr const char* kFooter =
    "Examples:\n"
    "  tessera inspect model.onnx\n"
    "  tessera run model.onnx --input data=image.npy --output-dir out\n"
    "  tessera bench model.onnx --threads 1 --iters 50 --json\n"
    "\n"
    "Exit codes: 0 fine, 1 the answer is bad (a mismatch), 2 usage or bad input,\n"
    "3 not possible here (unsupported, out of memory or time, disk full), 70 our own fault.";

int fail(const Error& e) {
  print_error(fmt::format("tessera: {}\n", e.message));
  return exit_code(e.code);
}

int do_job(const Job& job) {
  Result<int> result = job();
  return result ? *result : fail(result.error());
}

}  // namespace

int exit_code(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kOutOfRange:
    case Code::kFailedPrecondition:
    case Code::kDataLoss:
      return kUsage;
    case Code::kUnimplemented:
    case Code::kResourceExhausted:
    case Code::kDeadlineExceeded:
    case Code::kCancelled:
    case Code::kUnavailable:
    case Code::kDeviceLost:
      return kImpossible;
    case Code::kInternal:
      return kOurFault;
  }
  return kOurFault;
}

int dispatch(const std::vector<std::string>& arguments) {
  Parser parser("tessera", TESSERA_VERSION, "Tessera runs ONNX models.", kFooter);
  std::vector<Job> jobs;
  for (auto make : kCommands) jobs.push_back(make(parser));
  const std::string verb = arguments.size() > 1 ? arguments[1] : "-";
  if (!verb.starts_with('-') && !parser.has(verb)) {
    print_error(fmt::format(
        "tessera: there is no subcommand '{}'\nRun 'tessera --help' for help.\n", visible(verb)));
    return kUsage;
  }
  // Exceptions come from libraries only; they end here.
  try {
    const Parser::Parsed parsed =
        parser.parse({arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()});
    if (const auto* done = std::get_if<Parser::Done>(&parsed)) return done->exit_code;
    if (const auto* wrong = std::get_if<Parser::Wrong>(&parsed)) {
      print_error(fmt::format("tessera: {}\nRun '{} --help' for help.\n", wrong->message,
                              wrong->verb.empty() ? "tessera" : "tessera " + wrong->verb));
      return kUsage;
    }
    return do_job(jobs[std::get<Parser::Chosen>(parsed).verb]);
  } catch (const std::bad_alloc&) {
    return fail({Code::kResourceExhausted, "memory ran out"});
  } catch (const std::exception& e) {
    return fail({Code::kInternal, fmt::format("unexpected: {}", e.what())});
  }
}

}  // namespace tessera::cli
