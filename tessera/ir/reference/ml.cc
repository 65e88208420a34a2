// Classical machine learning.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

using Values = Result<std::vector<Value>>;

const Tensor& tensor_attr(const Call& call, std::string_view name) {
  return std::get<Tensor>(*call.attrs().find(name));
}

// An element as a key: equal numbers (and all NaNs) give equal keys.
std::string key(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kString) return t.text()[static_cast<size_t>(i)];
  if (!is_float(t.dtype())) return std::to_string(t.i64(i));
  const double v = t.f64(i);
  return std::isnan(v) ? "nan"
                       : fmt::format("{}", v + 0.0);  // shortest text that reads back; -0 + 0 = 0
}

Values lookup(const Call& call) {
  const Tensor &x = call.t(0), &keys = tensor_attr(call, "keys"),
               &values = tensor_attr(call, "values"), &otherwise = tensor_attr(call, "default");
  TRY_ASSIGN(Tensor y, call.make(0));
  std::unordered_map<std::string, int64_t> places;
  for (int64_t i = 0; i < keys.count(); ++i) places[key(keys, i)] = i;
  for (int64_t i = 0; i < x.count(); ++i) {
    const auto found = places.find(key(x, i));
    const bool hit = found != places.end();
    copy_element(hit ? values : otherwise, hit ? found->second : 0, y, i);
  }
  return one(std::move(y));
}

Values categories(const Call& call) {
  const Tensor &x = call.t(0), &list = tensor_attr(call, "categories");
  TRY_ASSIGN(Tensor y, call.make(0));
  std::unordered_map<std::string, int64_t> places;
  for (int64_t i = 0; i < list.count(); ++i) places.emplace(key(list, i), i);
  for (int64_t i = 0; i < x.count(); ++i) {
    // Numbers of any kind are compared as integers.
    const std::string name = x.dtype() == DType::kString ? key(x, i) : std::to_string(x.i64(i));
    const auto found = places.find(name);
    if (found != places.end())
      y.set_f64(i * list.count() + found->second, 1);
    else if (call.attrs().i("strict"))
      return call.fail("element {} ('{}') is in no category", i, name);
  }
  return one(std::move(y));
}

struct Trees {
  op::Ints roots, yes, no, feature, mode, missing, leaf_begin, vote_target;
  op::Floats split, vote_weight, base;
  std::vector<std::vector<double>> members;  // per node
  explicit Trees(const op::Attrs& a)
      : roots(a.ints("roots")),
        yes(a.ints("true")),
        no(a.ints("false")),
        feature(a.ints("feature")),
        mode(a.ints("mode")),
        missing(a.ints("missing")),
        leaf_begin(a.ints("leaf_begin")),
        vote_target(a.ints("vote_target")),
        split(a.floats("split")),
        vote_weight(a.floats("vote_weight")),
        base(a.floats("base")),
        members(feature.size()) {
    const op::Floats all = a.floats("members");
    size_t at = 0;
    for (size_t n = 0; n < mode.size(); ++n) {
      if (mode[n] != 6) continue;
      for (; at < all.size() && !std::isnan(all[at]); ++at) members[n].push_back(all[at]);
      ++at;
    }
  }

  bool holds(size_t node, double v) const {
    if (std::isnan(v) && !missing.empty() && missing[node]) return true;
    const double s = split[node];
    switch (mode[node]) {
      case 0:
        return v <= s;
      case 1:
        return v < s;
      case 2:
        return v >= s;
      case 3:
        return v > s;
      case 4:
        return v == s;
      case 5:
        return v != s;
      default:
        return std::find(members[node].begin(), members[node].end(), v) != members[node].end();
    }
  }
  // The leaf, or -1 when the way is longer than there are nodes: a cycle.
  int64_t leaf(int64_t at, const Tensor& x, int64_t row) const {
    for (size_t steps = 0; at >= 0; ++steps) {
      if (steps > feature.size()) return -1;
      const size_t node = static_cast<size_t>(at);
      at = holds(node, x.f64(row * x.dim(1) + feature[node])) ? yes[node] : no[node];
    }
    return ~at;
  }
};

Values tree_ensemble(const Call& call) {
  const Tensor& x = call.t(0);
  const Trees trees(call.attrs());
  const std::string aggregate = call.attrs().s("aggregate");
  const bool average = aggregate == "average", least = aggregate == "min",
             most = aggregate == "max";
  if (!average && !least && !most && aggregate != "sum")
    return call.fail("unknown aggregation '{}'", aggregate);
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t targets = y.dim(1);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    std::vector<double> sums(static_cast<size_t>(targets));
    std::vector<bool> voted(static_cast<size_t>(targets));
    for (int64_t root : trees.roots) {
      const int64_t leaf = trees.leaf(root, x, row);
      if (leaf < 0) return call.fail("the tree at node {} has a cycle", root);
      for (int64_t v = trees.leaf_begin[static_cast<size_t>(leaf)];
           v < trees.leaf_begin[static_cast<size_t>(leaf) + 1]; ++v) {
        const size_t target = static_cast<size_t>(trees.vote_target[static_cast<size_t>(v)]);
        const double weight = trees.vote_weight[static_cast<size_t>(v)];
        double& sum = sums[target];
        sum = !voted[target] ? weight
              : least        ? std::min(sum, weight)
              : most         ? std::max(sum, weight)
                             : sum + weight;
        voted[target] = true;
      }
    }
    for (int64_t t = 0; t < targets; ++t) {
      const double sum =
          sums[static_cast<size_t>(t)] / (average ? static_cast<double>(trees.roots.size()) : 1);
      y.set_f64(row * targets + t,
                sum + (trees.base.empty() ? 0 : trees.base[static_cast<size_t>(t)]));
    }
  }
  return one(std::move(y));
}

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

// Winitzki's approximation of erf's inverse, as the scores of ai.onnx.ml define it.
double probit(double p) {
  const double x = 2 * p - 1, log = std::log((1 - x) * (1 + x)),
               half = 2 / (M_PI * 0.147) + log / 2;
  return std::copysign(std::sqrt(2.0) * std::sqrt(std::sqrt(half * half - log / 0.147) - half), x);
}

Values score_transform(const Call& call) {
  const Tensor& x = call.t(0);
  const std::string kind = call.attrs().s("kind");
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t width = x.dims().back();
  for (int64_t row = 0; row < x.count(); row += std::max<int64_t>(width, 1)) {
    double highest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < width; ++k) highest = std::max(highest, x.f64(row + k));
    std::vector<double> values;
    for (int64_t k = 0; k < width; ++k) {
      const double v = x.f64(row + k);
      const bool zero = kind == "softmax_zero" && std::fabs(v) <= 1e-7;
      values.push_back(kind == "logistic" ? logistic(v)
                       : kind == "probit" ? probit(v)
                       : kind == "none"   ? v
                       : zero             ? v * std::exp(-highest)
                                          : std::exp(v - highest));
      sum += values.back();
    }
    const bool share = kind == "softmax" || kind == "softmax_zero";
    for (int64_t k = 0; k < width; ++k)
      y.set_f64(row + k,
                share && sum == 0 ? 0.5 : values[static_cast<size_t>(k)] / (share ? sum : 1));
  }
  return one(std::move(y));
}

Values pick_label(const Call& call) {
  const Tensor &x = call.t(0), &labels = tensor_attr(call, "labels");
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t width = x.dim(1);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    int64_t best = width == 1 && x.f64(row) > call.attrs().f("threshold");
    for (int64_t k = 1; k < width; ++k)
      if (x.f64(row * width + k) > x.f64(row * width + best)) best = k;
    copy_element(labels, best, y, row);
  }
  return one(std::move(y));
}

Values svm_kernel(const Call& call) {
  const Tensor &x = call.t(0), &v = call.t(1);
  const std::string kind = call.attrs().s("kind");
  const double gamma = call.attrs().f("gamma"), coef0 = call.attrs().f("coef0"),
               degree = call.attrs().f("degree");
  TRY_ASSIGN(Tensor y, call.make(0));
  const int64_t width = x.dim(1), vectors = v.dim(0);
  for (int64_t row = 0; row < x.dim(0); ++row)
    for (int64_t k = 0; k < vectors; ++k) {
      double product = 0, distance = 0;
      for (int64_t i = 0; i < width; ++i) {
        const double a = x.f64(row * width + i), b = v.f64(k * width + i);
        product += a * b;
        distance += (a - b) * (a - b);
      }
      const double scaled = gamma * product + coef0;
      y.set_f64(row * vectors + k, kind == "linear"    ? product
                                   : kind == "poly"    ? std::pow(scaled, degree)
                                   : kind == "sigmoid" ? std::tanh(scaled)
                                                       : std::exp(-gamma * distance));
    }
  return one(std::move(y));
}

constexpr Row kRows[] = {
    {"lookup", lookup},
    {"categories", categories},
    {"tree_ensemble", tree_ensemble},
    {"score_transform", score_transform},
    {"pick_label", pick_label},
    {"svm_kernel", svm_kernel},
};

}  // namespace

std::span<const Row> ml_rows() { return kRows; }

}  // namespace tessera::ir::reference
