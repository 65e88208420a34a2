// The command line: one file per subcommand, listed in commands.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/cli/arguments.h"

namespace tessera::cli {

// 0 fine, 1 the job's answer is bad, 2 usage or bad input, 3 not possible here, 70 our own fault.
enum Exit { kFine = 0, kBadAnswer = 1, kUsage = 2, kImpossible = 3, kOurFault = 70 };
int exit_code(Code code);

// What a subcommand does once its options are parsed: kFine or kBadAnswer, or why it could not.
using Job = std::function<Result<int>()>;

// Each declares its subcommand and returns its job; the job's options live as long as it does.
Job devices_command(Parser& parser);
Job inspect_command(Parser& parser);
Job run_command(Parser& parser);
Job bench_command(Parser& parser);
Job plan_command(Parser& parser);
Job explain_command(Parser& parser);
Job calibrate_command(Parser& parser);
Job layout_command(Parser& parser);

// Parses the arguments (the program's name first), does the job and returns the exit code. Prints.
int dispatch(const std::vector<std::string>& arguments);

}  // namespace tessera::cli
