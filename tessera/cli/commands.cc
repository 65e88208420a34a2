#include "tessera/cli/commands.h"

#include <algorithm>
#include <new>

#include <CLI/CLI.hpp>

#include "tessera/cli/process.h"
#include "tessera/cli/terminal.h"

namespace tessera::cli {
namespace {

constexpr Command (*kCommands[])(CLI::App&) = {devices_command,  inspect_command, run_command,
                                               bench_command,    plan_command,    explain_command,
                                               calibrate_command};

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
  CLI::App app("Tessera runs ONNX models.", "tessera");
  app.set_version_flag("--version", TESSERA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  std::vector<Command> commands;
  for (auto make : kCommands) commands.push_back(make(app));
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  if (!reversed.empty()) reversed.pop_back();
  const std::string verb = arguments.size() > 1 ? arguments[1] : "-";
  if (!verb.starts_with('-') &&
      std::none_of(commands.begin(), commands.end(),
                   [&](const Command& c) { return c.app->get_name() == verb; })) {
    print_error(fmt::format(
        "tessera: there is no subcommand '{}'\nRun 'tessera --help' for help.\n", visible(verb)));
    return kUsage;
  }
  // Exceptions come from CLI11 and the standard library only; they end here.
  try {
    try {
      app.parse(reversed);
    } catch (const CLI::Success& e) {
      return app.exit(e);
    } catch (const CLI::ParseError& e) {
      const auto used = app.get_subcommands();
      print_error(fmt::format("tessera: {}\nRun '{} --help' for help.\n", e.what(),
                              used.empty() ? "tessera" : "tessera " + used.front()->get_name()));
      return kUsage;
    }
    for (const Command& command : commands)
      if (command.app->parsed()) return do_job(command.job);
  } catch (const std::bad_alloc&) {
    return fail({Code::kResourceExhausted, "memory ran out"});
  } catch (const std::exception& e) {
    return fail({Code::kInternal, fmt::format("unexpected: {}", e.what())});
  }
  return kOurFault;
}

}  // namespace tessera::cli
