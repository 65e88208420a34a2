// A model of one operator, as a problem string poses it.
#pragma once

#include <memory>
#include <string>

#include "tessera/cli/model_options.h"

namespace tessera::cli {

// Inputs "in0", "in1", ... of the problem's types; operands whose elements it gives are constants.
// Changes of layout have no graph: kInvalidArgument.
Result<std::unique_ptr<session::Model>> model_of_problem(const std::string& problem,
                                                         const ModelOptions& options);

}  // namespace tessera::cli
