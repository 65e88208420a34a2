#include "tessera/passes/bucket_elimination.h"

#include <algorithm>
#include <set>

namespace tessera::passes {
namespace {

int64_t plus(int64_t a, int64_t b) { return std::min(a + b, kForbidden); }

// Entries of a table over these variables; saturates.
int64_t entries(const std::vector<int>& domains, const std::vector<int>& variables) {
  int64_t n = 1;
  for (int v : variables)
    if (n < kForbidden / 1024) n *= domains[static_cast<size_t>(v)];
  return n;
}

int64_t look_up(const std::vector<int>& domains, const Factor& f, const std::vector<int>& values) {
  int64_t at = 0;
  for (int v : f.variables)
    at = at * domains[static_cast<size_t>(v)] + values[static_cast<size_t>(v)];
  return f.costs[static_cast<size_t>(at)];
}

std::vector<int> join(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

class Solver {
 public:
  Solver(const std::vector<int>& domains, std::vector<Factor> factors, int64_t most)
      : domains_(domains), factors_(std::move(factors)), most_(most) {
    touching_.resize(domains.size());
    for (size_t f = 0; f < factors_.size(); ++f) attach(f);
    for (size_t v = 0; v < domains.size(); ++v)
      sizes_.push_back(entries(domains_, scope(static_cast<int>(v))));
  }

  Assignment run() {
    const std::vector<Factor> original = factors_;
    std::vector<bool> done(domains_.size());
    std::vector<std::pair<int, std::vector<size_t>>> order;  // variable, the factors of its bucket
    for (size_t step = 0; step < domains_.size(); ++step) {
      const int v = cheapest(done);
      done[static_cast<size_t>(v)] = true;
      order.emplace_back(v, bucket(v));
      eliminate(v, order.back().second);
    }
    Assignment result;
    result.values.assign(domains_.size(), 0);
    for (size_t k = order.size(); k-- > 0;) choose(order[k].first, order[k].second, result.values);
    if (split_) improve(original, result.values);
    result.cost = cost_of(domains_, original, result.values);
    result.lower_bound = split_ ? std::min(bound_, result.cost) : result.cost;
    result.width = width_;
    return result;
  }

 private:
  void attach(size_t f) {
    if (factors_[f].variables.empty()) bound_ = plus(bound_, factors_[f].costs[0]);
    for (int v : factors_[f].variables) touching_[static_cast<size_t>(v)].insert(f);
  }

  std::vector<int> scope(int v) const {
    std::vector<int> all{v};
    for (size_t f : touching_[static_cast<size_t>(v)]) all = join(all, factors_[f].variables);
    return all;
  }

  int cheapest(const std::vector<bool>& done) const {
    int best = -1;
    int64_t size = 0;
    for (size_t v = 0; v < domains_.size(); ++v) {
      if (done[v] || (best >= 0 && sizes_[v] >= size)) continue;
      best = static_cast<int>(v);
      size = sizes_[v];
    }
    return best;
  }

  std::vector<size_t> bucket(int v) const {
    const std::set<size_t>& set = touching_[static_cast<size_t>(v)];
    return {set.begin(), set.end()};
  }

  // Groups of the bucket's factors whose joint tables fit.
  std::vector<std::vector<size_t>> parts(int v, const std::vector<size_t>& bucket) {
    if (entries(domains_, scope(v)) <= most_) return {bucket};
    split_ = true;
    std::vector<std::vector<size_t>> parts;
    std::vector<std::vector<int>> scopes;
    for (size_t f : bucket) {
      size_t p = 0;
      while (p < parts.size() && entries(domains_, join(scopes[p], factors_[f].variables)) > most_)
        ++p;
      if (p == parts.size()) {
        parts.emplace_back();
        scopes.emplace_back();
      }
      parts[p].push_back(f);
      scopes[p] = join(scopes[p], factors_[f].variables);
    }
    return parts;
  }

  void eliminate(int v, const std::vector<size_t>& bucket) {
    for (const std::vector<size_t>& part : parts(v, bucket)) {
      std::vector<int> scope;
      for (size_t f : part) scope = join(scope, factors_[f].variables);
      width_ = std::max(width_, static_cast<int>(scope.size()) - 1);
      Factor message;
      for (int u : scope)
        if (u != v) message.variables.push_back(u);
      message.costs = minima(v, part, message.variables);
      for (size_t f : part)
        for (int u : factors_[f].variables) touching_[static_cast<size_t>(u)].erase(f);
      factors_.push_back(std::move(message));
      attach(factors_.size() - 1);
    }
    std::vector<int> neighbours;
    for (size_t f : bucket) neighbours = join(neighbours, factors_[f].variables);
    for (int u : neighbours) sizes_[static_cast<size_t>(u)] = entries(domains_, scope(u));
  }

  // For each combination of `variables`: the least sum of the factors over the values of v.
  std::vector<int64_t> minima(int v, const std::vector<size_t>& part,
                              const std::vector<int>& variables) const {
    std::vector<int64_t> costs(static_cast<size_t>(entries(domains_, variables)));
    std::vector<int> values(domains_.size(), 0);
    for (int64_t& cost : costs) {
      cost = kForbidden;
      for (int x = 0; x < domains_[static_cast<size_t>(v)]; ++x) {
        values[static_cast<size_t>(v)] = x;
        cost = std::min(cost, sum(part, values));
      }
      for (size_t k = variables.size(); k-- > 0;) {
        const size_t u = static_cast<size_t>(variables[k]);
        if (++values[u] < domains_[u]) break;
        values[u] = 0;
      }
    }
    return costs;
  }

  int64_t sum(const std::vector<size_t>& factors, const std::vector<int>& values) const {
    int64_t total = 0;
    for (size_t f : factors) total = plus(total, look_up(domains_, factors_[f], values));
    return total;
  }

  void choose(int v, const std::vector<size_t>& bucket, std::vector<int>& values) const {
    int best = 0;
    int64_t least = INT64_MAX;
    for (int x = 0; x < domains_[static_cast<size_t>(v)]; ++x) {
      values[static_cast<size_t>(v)] = x;
      const int64_t cost = sum(bucket, values);
      if (cost < least) {
        least = cost;
        best = x;
      }
    }
    values[static_cast<size_t>(v)] = best;
  }

  // One variable at a time, until nothing changes or enough was tried.
  void improve(const std::vector<Factor>& original, std::vector<int>& values) const {
    std::vector<std::vector<size_t>> of(domains_.size());
    for (size_t f = 0; f < original.size(); ++f)
      for (int v : original[f].variables) of[static_cast<size_t>(v)].push_back(f);
    bool changed = true;
    for (int round = 0; round < 64 && changed; ++round) {
      changed = false;
      for (size_t v = 0; v < domains_.size(); ++v) {
        const int before = values[v];
        choose(static_cast<int>(v), of[v], values);
        changed |= values[v] != before;
      }
    }
  }

  const std::vector<int>& domains_;
  std::vector<Factor> factors_;  // the given ones, then messages
  int64_t most_;
  std::vector<std::set<size_t>> touching_;  // by variable: factors still to be eliminated
  std::vector<int64_t> sizes_;              // by variable: entries of its bucket's joint table
  int64_t bound_ = 0;
  int width_ = 0;
  bool split_ = false;
};

}  // namespace

Assignment minimise(const std::vector<int>& domains, std::vector<Factor> factors, int64_t most) {
  return Solver(domains, std::move(factors), most).run();
}

int64_t cost_of(const std::vector<int>& domains, const std::vector<Factor>& factors,
                const std::vector<int>& values) {
  int64_t total = 0;
  for (const Factor& f : factors) total = plus(total, look_up(domains, f, values));
  return total;
}

}  // namespace tessera::passes
