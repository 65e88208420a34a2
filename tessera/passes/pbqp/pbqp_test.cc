#include "tessera/passes/pbqp/pbqp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tessera::passes::pbqp {
namespace {

struct Case {
  std::vector<int> domains;
  std::vector<Factor> factors;
};

// Every variable meets some of the `reach` before it, and some meet one of a few shared by all: the
// form of a network's graph, at sizes beyond brute force. One assignment at least is allowed.
Case random_case(std::mt19937_64& random, int variables, int reach, int shared) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  Case c;
  std::vector<int> allowed;
  for (int v = 0; v < variables; ++v) {
    c.domains.push_back(1 + below(5));
    allowed.push_back(below(c.domains.back()));
  }
  const auto table = [&](std::vector<int> scope) {
    int entries = 1, keep = 0;
    for (int v : scope) {
      entries *= c.domains[static_cast<size_t>(v)];
      keep = keep * c.domains[static_cast<size_t>(v)] + allowed[static_cast<size_t>(v)];
    }
    Factor f{std::move(scope), {}};
    for (int k = 0; k < entries; ++k)
      f.costs.push_back(k != keep && below(8) == 0 ? kForbidden : below(1000));
    c.factors.push_back(std::move(f));
  };
  for (int v = 0; v < variables; ++v) {
    table({v});
    for (int u = std::max(0, v - reach); u < v; ++u)
      if (below(4) != 0) table({u, v});
    if (shared > 0 && v >= shared && below(3) == 0) table({below(shared), v});
  }
  return c;
}

struct Tally {
  int exact = 0, heuristic = 0, worse = 0;
};

void compare(const Case& c, Tally& tally, int number) {
  const Assignment ours = minimise(c.domains, c.factors);
  const Answer theirs = solve(c.domains, c.factors);
  const int64_t cost = cost_of(c.domains, c.factors, theirs.values);
  ASSERT_TRUE(ours.optimal()) << "case " << number;
  ASSERT_LT(ours.cost, kForbidden) << "case " << number;
  ASSERT_EQ(ours.cost, cost_of(c.domains, c.factors, ours.values)) << "case " << number;
  ASSERT_LE(ours.cost, cost) << "case " << number;
  if (theirs.exact) {
    ASSERT_EQ(ours.cost, cost) << "case " << number;
  }
  ++(theirs.exact ? tally.exact : tally.heuristic);
  tally.worse += ours.cost < cost;
}

TEST(Pbqp, AgreesWhereItsReductionsAreExact) {
  std::mt19937_64 random(1);
  Tally tally;
  for (int k = 0; k < 100; ++k)
    compare(random_case(random, 100 + static_cast<int>(random() % 400), 2, 0), tally, k);
  EXPECT_EQ(tally.exact, 100);
  EXPECT_EQ(tally.worse, 0);
}

TEST(Pbqp, IsNeverBetter) {
  std::mt19937_64 random(2);
  Tally tally;
  for (int k = 0; k < 60; ++k) {
    const int variables = 100 + static_cast<int>(random() % 300);
    compare(random_case(random, variables, 3, 0), tally, k);
    compare(random_case(random, variables, 2, 2), tally, k);
  }
  EXPECT_GT(tally.heuristic, 60);
  EXPECT_GT(tally.worse, 30);
}

TEST(Pbqp, AddsTablesOfOnePair) {
  const std::vector<int> domains{2, 3};
  const std::vector<Factor> factors{
      {{0, 1}, {5, 1, 9, 9, 9, 9}}, {{0, 1}, {0, 9, 0, 0, 2, 0}}, {{1}, {0, 0, 1}}};
  const Answer answer = solve(domains, factors);
  EXPECT_EQ(answer.values, (std::vector<int>{0, 0}));
  EXPECT_TRUE(answer.exact);
  EXPECT_EQ(minimise(domains, factors).cost, 5);
}

}  // namespace
}  // namespace tessera::passes::pbqp
