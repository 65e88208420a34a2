#include "tessera/passes/bucket_elimination.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tessera::passes {
namespace {

struct Random {
  std::vector<int> domains;
  std::vector<Factor> factors;
};

Random random_problem(std::mt19937_64& random, int variables, int edges, int values) {
  Random r;
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int v = 0; v < variables; ++v) r.domains.push_back(1 + below(values));
  auto table = [&](std::vector<int> scope) {
    size_t entries = 1;
    for (int v : scope) entries *= static_cast<size_t>(r.domains[static_cast<size_t>(v)]);
    Factor f{std::move(scope), {}};
    for (size_t k = 0; k < entries; ++k)
      f.costs.push_back(below(10) == 0 ? kForbidden : below(1000));
    r.factors.push_back(std::move(f));
  };
  for (int v = 0; v < variables; ++v) table({v});
  for (int e = 0; e < edges && variables > 1; ++e) {
    const int a = below(variables - 1), b = a + 1 + below(variables - a - 1);
    table({a, b});
  }
  return r;
}

int64_t brute_force(const Random& r) {
  std::vector<int> values(r.domains.size(), 0);
  int64_t best = INT64_MAX;
  for (;;) {
    best = std::min(best, cost_of(r.domains, r.factors, values));
    size_t v = 0;
    while (v < values.size() && ++values[v] == r.domains[v]) values[v++] = 0;
    if (v == values.size()) return best;
  }
}

TEST(BucketElimination, FindsTheOptimumOfSmallProblems) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 3000; ++k) {
    const Random r = random_problem(random, 1 + static_cast<int>(random() % 8),
                                    static_cast<int>(random() % 14), 3);
    const Assignment a = minimise(r.domains, r.factors);
    const int64_t best = brute_force(r);
    ASSERT_EQ(a.cost, best) << "case " << k;
    ASSERT_EQ(a.cost, cost_of(r.domains, r.factors, a.values)) << "case " << k;
    ASSERT_TRUE(a.optimal()) << "case " << k;
  }
}

TEST(BucketElimination, BoundsTheOptimumWhereTablesAreTooLarge) {
  std::mt19937_64 random(2);
  int gaps = 0;
  for (int k = 0; k < 500; ++k) {
    const Random r = random_problem(random, 8, 20, 3);
    const Assignment a = minimise(r.domains, r.factors, 9);
    const int64_t best = brute_force(r);
    ASSERT_LE(a.lower_bound, best) << "case " << k;
    ASSERT_GE(a.cost, best) << "case " << k;
    ASSERT_EQ(a.cost, cost_of(r.domains, r.factors, a.values)) << "case " << k;
    gaps += !a.optimal();
  }
  EXPECT_GT(gaps, 0);
}

TEST(BucketElimination, TakesLongChainsAndNothing) {
  EXPECT_EQ(minimise({}, {}).cost, 0);
  std::mt19937_64 random(3);
  Random r;
  for (int v = 0; v < 5000; ++v) {
    r.domains.push_back(4);
    Factor f{{v}, {}};
    for (int k = 0; k < 4; ++k) f.costs.push_back(static_cast<int64_t>(random() % 100));
    r.factors.push_back(f);
    if (v == 0) continue;
    Factor edge{{v - 1, v}, {}};
    for (int k = 0; k < 16; ++k) edge.costs.push_back(static_cast<int64_t>(random() % 100));
    r.factors.push_back(edge);
  }
  // The oracle of a chain: shortest path.
  std::vector<int64_t> best = r.factors[0].costs;
  for (int v = 1; v < 5000; ++v) {
    const Factor &own = r.factors[static_cast<size_t>(2 * v - 1)],
                 &edge = r.factors[static_cast<size_t>(2 * v)];
    std::vector<int64_t> next(4, INT64_MAX);
    for (size_t a = 0; a < 4; ++a)
      for (size_t b = 0; b < 4; ++b)
        next[b] = std::min(next[b], best[a] + edge.costs[a * 4 + b] + own.costs[b]);
    best = next;
  }
  const Assignment a = minimise(r.domains, r.factors);
  EXPECT_EQ(a.cost, *std::min_element(best.begin(), best.end()));
  EXPECT_EQ(a.width, 1);
}

}  // namespace
}  // namespace tessera::passes
