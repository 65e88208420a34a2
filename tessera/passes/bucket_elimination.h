// Minimises a sum of tables over discrete variables, exactly where the tables that arise fit.
//
//   min over x of  sum over f of  f.costs[x restricted to f.variables]
//
// Variables are eliminated one by one, the one with the smallest resulting table first (Bertele and
// Brioschi's non-serial dynamic programming; Dechter's bucket elimination). A bucket whose table
// would exceed the limit is split (mini-buckets): the sum of the parts' minima is then a lower
// bound, and the assignment found may cost more than it.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::passes {

// Costs saturate here: a combination that is not allowed.
inline constexpr int64_t kForbidden = INT64_MAX / 4;

// The table of `variables` in row-major order: the last one varies fastest.
struct Factor {
  std::vector<int> variables;  // ascending
  std::vector<int64_t> costs;
};

struct Assignment {
  std::vector<int> values;  // one per variable
  int64_t cost = 0;
  int64_t lower_bound = 0;  // @post lower_bound <= optimum <= cost
  int width = 0;            // most variables in one table that arose, less one
  bool optimal() const { return lower_bound == cost; }
};

// `domains` holds the number of values of each variable, at least 1. `most` bounds the entries of a
// table. The same input gives the same output.
Assignment minimise(const std::vector<int>& domains, std::vector<Factor> factors,
                    int64_t most = int64_t{1} << 22);

// The cost of given values.
int64_t cost_of(const std::vector<int>& domains, const std::vector<Factor>& factors,
                const std::vector<int>& values);

}  // namespace tessera::passes
