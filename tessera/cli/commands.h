// The command line: one file per subcommand, listed in commands.cc.
#pragma once

#include <string>
#include <vector>

namespace tessera::cli {

// Exit codes: 0 fine, 1 the job's answer is bad, 2 usage or bad input, 3 not possible here, 70 our own fault.
int dispatch(const std::vector<std::string>& arguments);

}  // namespace tessera::cli
