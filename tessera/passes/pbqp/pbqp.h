// The problem of bucket_elimination.h, solved with LLVM's PBQP graph.
//
// Nodes of at most two neighbours are reduced, which loses nothing. Where none is left, one of the
// fewest neighbours is set aside, to choose when its neighbours have chosen.
#pragma once

#include <vector>

#include "tessera/passes/bucket_elimination.h"

namespace tessera::passes::pbqp {

struct Answer {
  std::vector<int> values;
  bool exact = true;  // no node was set aside: the values are optimal
};

// Factors of one or two variables. Costs are floats there: finite ones should add up to less than
// 2^24.
Answer solve(const std::vector<int>& domains, const std::vector<Factor>& factors);

}  // namespace tessera::passes::pbqp
