// The command line: one file per subcommand, listed in commands.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "tessera/base/result.h"

namespace tessera::cli {

// 0 fine, 1 the job's answer is bad, 2 usage or bad input, 3 not possible here, 70 our own fault.
enum Exit { kFine = 0, kBadAnswer = 1, kUsage = 2, kImpossible = 3, kOurFault = 70 };
int exit_code(Code code);

// What a subcommand does once its options are parsed: kFine or kBadAnswer, or why it could not.
using Job = std::function<Result<int>()>;

// Each declares its subcommand and returns its job; the job's options live as long as it does.
struct Command {
  CLI::App* app;
  Job job;
};
Command devices_command(CLI::App& app);
Command inspect_command(CLI::App& app);
Command run_command(CLI::App& app);
Command bench_command(CLI::App& app);
Command plan_command(CLI::App& app);
Command explain_command(CLI::App& app);
Command calibrate_command(CLI::App& app);

// Parses the arguments (the program's name first), does the job and returns the exit code. Prints.
int dispatch(const std::vector<std::string>& arguments);

}  // namespace tessera::cli
