// ai.onnx.ml: tree ensembles, linear models, support vector machines.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

using op::Tensor;

std::string lower(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  return text;
}

// A list of floats that newer files may hold as a tensor.
Result<op::Floats> floats(NodeContext& c, const std::string& name) {
  const std::string_view as_tensor = c.has_attr(name + "_as_tensor") ? "_as_tensor" : "";
  const AttributeProto* a = c.node.find(name + std::string(as_tensor));
  if (!a || !a->t) return c.floats(name);
  TRY_ASSIGN(Tensor t, c.tensor(a->name));
  if (!is_float(t.dtype()))
    return error(Code::kInvalidArgument, "{}: '{}' holds {}, need floats", c.node.op_type, name,
                 name_of(t.dtype()));
  op::Floats values;
  for (int64_t i = 0; i < t.count(); ++i) values.push_back(t.f64(i));
  return values;
}

Result<Tensor> matrix(NodeContext& c, std::string_view name, int64_t rows) {
  const op::Floats values = c.floats(name);
  const int64_t n = static_cast<int64_t>(values.size());
  if (rows < 1 || n % rows != 0)
    return error(Code::kInvalidArgument, "{}: {} {} do not make {} rows", c.node.op_type, n, name,
                 rows);
  TRY_ASSIGN(Tensor t, Tensor::make(DType::kF32, {rows, n / rows}));
  for (int64_t i = 0; i < n; ++i) t.set_f64(i, values[static_cast<size_t>(i)]);
  return t;
}

Result<Tensor> vector(NodeContext& c, std::string_view name) {
  TRY_ASSIGN(Tensor t, matrix(c, name, 1));
  return t.reshaped({t.count()});
}

Result<Tensor> class_labels(NodeContext& c, const std::string& ints) {
  op::Strings names = c.strings("classlabels_strings");
  if (names.empty()) return Tensor::of_i64(c.ints(ints));
  const int64_t n = static_cast<int64_t>(names.size());
  return Tensor::strings({n}, std::move(names));
}

// A transformation that is the identity adds no node.
ValueId transformed(NodeContext& c, ValueId scores, const std::string& kind) {
  return kind == "none" ? scores : c.b.op("score_transform", {scores}, {{"kind", kind}});
}

ValueId pair(NodeContext& c, ValueId first, ValueId second) {
  return c.b.op("concat", {first, second}, {{"axis", int64_t{1}}});
}

// ---- trees ----

// Version 5: nodes and leaves in lists of their own.
Status tree_ensemble(NodeContext& c) {
  constexpr std::array<const char*, 4> kAggregates{"average", "sum", "min", "max"};
  constexpr std::array<const char*, 5> kTransforms{"none", "softmax", "logistic", "softmax_zero",
                                                   "probit"};
  const int64_t aggregate = c.i("aggregate_function", 1), transform = c.i("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    return c.fail("aggregate_function {}, post_transform {}", aggregate, transform);
  TRY_ASSIGN(Tensor modes, c.tensor("nodes_modes"));
  TRY_ASSIGN(op::Floats splits, floats(c, "nodes_splits"));
  TRY_ASSIGN(op::Floats weights, floats(c, "leaf_weights"));
  TRY_ASSIGN(op::Floats members, floats(c, "membership_values"));
  auto branches = [&](std::string_view ids, std::string_view leafs) {
    op::Ints list = c.ints(ids);
    const op::Ints is_leaf = c.ints(leafs);
    for (size_t i = 0; i < list.size() && i < is_leaf.size(); ++i)
      if (is_leaf[i]) list[i] = ~list[i];
    return list;
  };
  op::Ints begin;
  for (size_t i = 0; i <= weights.size(); ++i) begin.push_back(static_cast<int64_t>(i));
  if (!is_int(modes.dtype())) return c.fail("nodes_modes holds {}", name_of(modes.dtype()));
  const ValueId y = c.b.op("tree_ensemble", {c.in(0)},
                           {{"roots", c.ints("tree_roots")},
                            {"true", branches("nodes_truenodeids", "nodes_trueleafs")},
                            {"false", branches("nodes_falsenodeids", "nodes_falseleafs")},
                            {"feature", c.ints("nodes_featureids")},
                            {"mode", modes.to_i64s()},
                            {"split", splits},
                            {"missing", c.ints("nodes_missing_value_tracks_true")},
                            {"members", members},
                            {"leaf_begin", begin},
                            {"vote_target", c.ints("leaf_targetids")},
                            {"vote_weight", weights},
                            {"targets", c.i("n_targets", 0)},
                            {"aggregate", std::string(kAggregates[static_cast<size_t>(aggregate)])},
                            {"to", is_float(c.type(0).dtype) ? c.type(0).dtype : DType::kF32}});
  c.out(0, transformed(c, y, kTransforms[static_cast<size_t>(transform)]));
  return {};
}

// The older form: nodes of all trees in one list, leaves among them; votes in lists named PREFIX_*.
Result<op::Attrs> old_trees(NodeContext& c, const std::string& prefix, int64_t targets,
                            const std::string& aggregate) {
  constexpr std::array<std::string_view, 6> kModes{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                   "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  auto bad = [&](std::string_view what) {
    return error(Code::kInvalidArgument, "{}: {}", c.node.op_type, what);
  };
  const op::Ints tree = c.ints("nodes_treeids"), id = c.ints("nodes_nodeids"),
                 feature = c.ints("nodes_featureids");
  const op::Ints yes = c.ints("nodes_truenodeids"), no = c.ints("nodes_falsenodeids"),
                 missing = c.ints("nodes_missing_value_tracks_true");
  const op::Strings mode = c.strings("nodes_modes");
  const op::Ints vote_tree = c.ints(prefix + "_treeids"), vote_node = c.ints(prefix + "_nodeids"),
                 vote_id = c.ints(prefix + "_ids");
  TRY_ASSIGN(op::Floats split, floats(c, "nodes_values"));
  TRY_ASSIGN(op::Floats weight, floats(c, prefix + "_weights"));
  TRY_ASSIGN(op::Floats base, floats(c, "base_values"));
  const size_t n = tree.size();
  for (const op::Ints* list : {&id, &feature, &yes, &no})
    if (list->size() != n) return bad("the lists nodes_* differ in length");
  if (mode.size() != n || split.size() != n || (!missing.empty() && missing.size() != n))
    return bad("the lists nodes_* differ in length");
  if (vote_tree.size() != vote_id.size() || vote_node.size() != vote_id.size() ||
      weight.size() != vote_id.size())
    return bad("the lists of votes differ in length");

  // Places of nodes and of leaves.
  std::map<std::pair<int64_t, int64_t>, int64_t> place;
  std::vector<size_t> inner, leaves;
  for (size_t i = 0; i < n; ++i) {
    const bool leaf = mode[i] == "LEAF";
    const int64_t at =
        leaf ? ~static_cast<int64_t>(leaves.size()) : static_cast<int64_t>(inner.size());
    if (!place.emplace(std::pair(tree[i], id[i]), at).second)
      return bad(fmt::format("tree {} has two nodes {}", tree[i], id[i]));
    (leaf ? leaves : inner).push_back(i);
  }
  std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> votes;
  for (size_t v = 0; v < vote_id.size(); ++v) votes[{vote_tree[v], vote_node[v]}].push_back(v);
  op::Ints new_yes, new_no, new_feature, new_mode, new_missing, begin{0}, target, roots;
  op::Floats new_split, new_weight;
  std::set<std::pair<int64_t, int64_t>> children;
  for (size_t i : inner) {
    const auto known = std::find(kModes.begin(), kModes.end(), mode[i]);
    if (known == kModes.end()) return bad(fmt::format("unknown mode '{}'", mode[i]));
    for (auto [branch, list] : {std::pair(yes[i], &new_yes), std::pair(no[i], &new_no)}) {
      const auto to = place.find({tree[i], branch});
      if (to == place.end()) return bad(fmt::format("tree {} has no node {}", tree[i], branch));
      children.insert(to->first);
      list->push_back(to->second);
    }
    new_feature.push_back(feature[i]);
    new_mode.push_back(known - kModes.begin());
    new_split.push_back(split[i]);
    if (!missing.empty()) new_missing.push_back(missing[i]);
  }
  for (size_t i : leaves) {
    for (size_t v : votes[{tree[i], id[i]}]) {
      target.push_back(vote_id[v]);
      new_weight.push_back(weight[v]);
    }
    begin.push_back(static_cast<int64_t>(target.size()));
  }
  for (size_t i = 0; i < n; ++i)  // the node that is nobody's child
    if (!children.count({tree[i], id[i]})) roots.push_back(place[{tree[i], id[i]}]);
  if (base.size() != static_cast<size_t>(targets)) base.clear();
  return op::Attrs{{"roots", roots},         {"true", new_yes},
                   {"false", new_no},        {"feature", new_feature},
                   {"mode", new_mode},       {"split", new_split},
                   {"missing", new_missing}, {"leaf_begin", begin},
                   {"vote_target", target},  {"vote_weight", new_weight},
                   {"targets", targets},     {"base", base},
                   {"aggregate", aggregate}};
}

Status tree_regressor(NodeContext& c) {
  TRY_ASSIGN(op::Attrs attrs,
             old_trees(c, "target", c.i("n_targets", 1), lower(c.s("aggregate_function", "SUM"))));
  c.out(0, transformed(c, c.b.op("tree_ensemble", {c.in(0)}, std::move(attrs)),
                       lower(c.s("post_transform", "NONE"))));
  return {};
}

// Two classes whose votes all go to one of them are one score s. Weights that are never negative
// make it a probability (labels split at 0.5, scores 1-s and s), others a margin (split at 0,
// scores -s and s).
Status tree_classifier(NodeContext& c) {
  ir::Builder& b = c.b;
  TRY_ASSIGN(Tensor labels, class_labels(c, "classlabels_int64s"));
  const std::string kind = lower(c.s("post_transform", "NONE"));
  TRY_ASSIGN(op::Attrs attrs, old_trees(c, "class", labels.count(), "sum"));
  const op::Ints targets = attrs.ints("vote_target");
  const op::Floats weights = attrs.floats("vote_weight");
  const bool one =
      labels.count() == 2 && !targets.empty() &&
      std::all_of(targets.begin(), targets.end(), [&](int64_t t) { return t == targets[0]; });
  if (one) {
    TRY_ASSIGN(op::Floats base, floats(c, "base_values"));
    attrs.set("vote_target", op::Ints(targets.size(), 0));
    attrs.set("targets", int64_t{1});
    attrs.set("base", base.empty() ? base : op::Floats{base.back()});
  }
  ValueId scores = b.op("tree_ensemble", {c.in(0)}, std::move(attrs));
  const bool positive =
      std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
  c.out(0, b.op("pick_label", {scores},
                {{"labels", labels}, {"threshold", one && positive ? 0.5 : 0.0}}));
  if (one && positive && kind != "probit")
    scores = pair(c, b.sub(b.scalar(DType::kF32, 1), scores), scores);
  else
    scores = transformed(c, one ? pair(c, b.unary("neg", scores), scores) : scores, kind);
  c.out(1, scores);
  return {};
}

// ---- linear models ----

ValueId linear(NodeContext& c, const Tensor& coefficients,
               const std::optional<Tensor>& intercepts) {
  ir::Builder& b = c.b;
  const ValueId x = b.convert(c.in(0), DType::kF32);
  const ValueId y = b.op("dot", {x, b.transpose(b.constant(coefficients), {1, 0})});
  return intercepts ? b.add(y, b.constant(*intercepts)) : y;
}

Result<std::optional<Tensor>> intercepts(NodeContext& c) {
  if (c.floats("intercepts").empty()) return std::optional<Tensor>();
  TRY_ASSIGN(Tensor t, vector(c, "intercepts"));
  return std::optional(std::move(t));
}

Status linear_regressor(NodeContext& c) {
  TRY_ASSIGN(Tensor coefficients, matrix(c, "coefficients", c.i("targets", 1)));
  TRY_ASSIGN(auto shift, intercepts(c));
  c.out(0, transformed(c, linear(c, coefficients, shift), lower(c.s("post_transform", "NONE"))));
  return {};
}

Status linear_classifier(NodeContext& c) {
  ir::Builder& b = c.b;
  TRY_ASSIGN(Tensor labels, class_labels(c, "classlabels_ints"));
  TRY_ASSIGN(auto shift, intercepts(c));
  const op::Type& x = c.type(0);
  const int64_t given = static_cast<int64_t>(c.floats("coefficients").size());
  int64_t rows = shift ? shift->count() : labels.count();
  if (!shift && x.ranked() && x.rank() == 2 && x.dim(1).constant().value_or(0) > 0)
    rows = given / *x.dim(1).constant();
  TRY_ASSIGN(Tensor coefficients, matrix(c, "coefficients", rows));
  ValueId scores = linear(c, coefficients, shift);
  if (rows == 1 && labels.count() == 2) scores = pair(c, b.unary("neg", scores), scores);
  c.out(0, b.op("pick_label", {scores}, {{"labels", labels}}));
  c.out(1, transformed(c, scores, lower(c.s("post_transform", "NONE"))));
  return {};
}

// ---- support vector machines ----

Result<op::Attrs> kernel(NodeContext& c, bool with_vectors) {
  const op::Floats p = c.floats("kernel_params", {0, 0, 0});
  if (p.size() != 3)
    return error(Code::kInvalidArgument, "{}: {} kernel_params, need 3", c.node.op_type, p.size());
  const std::string kind = with_vectors ? lower(c.s("kernel_type", "LINEAR")) : "linear";
  return op::Attrs{{"kind", kind}, {"gamma", p[0]}, {"coef0", p[1]}, {"degree", p[2]}};
}

// sum of coefficient * kernel(x, vector), plus rho
Status svm_regressor(NodeContext& c) {
  ir::Builder& b = c.b;
  const int64_t supports = c.i("n_supports", 0);
  TRY_ASSIGN(op::Attrs attrs, kernel(c, supports > 0));
  TRY_ASSIGN(Tensor rho, vector(c, "rho"));
  if (rho.count() != 1) return c.fail("{} values rho, need 1", rho.count());
  TRY_ASSIGN(Tensor coefficients, matrix(c, "coefficients", 1));
  const ValueId x = b.convert(c.in(0), DType::kF32);
  ValueId y;
  if (supports > 0) {
    TRY_ASSIGN(Tensor vectors, matrix(c, "support_vectors", supports));
    y = b.op("dot", {b.op("svm_kernel", {x, b.constant(vectors)}, std::move(attrs)),
                     b.reshape(b.constant(coefficients), {-1, 1})});
  } else {
    y = b.op("svm_kernel", {x, b.constant(coefficients)}, std::move(attrs));
  }
  y = b.add(y, b.constant(rho));
  if (c.i("one_class", 0))
    y = b.select(b.op("gt", {y, b.scalar(DType::kF32, 0)}), b.scalar(DType::kF32, 1),
                 b.scalar(DType::kF32, -1));
  c.out(0, transformed(c, y, lower(c.s("post_transform", "NONE"))));
  return {};
}

constexpr Converter kRows[] = {
    {"ai.onnx.ml", "TreeEnsemble", tree_ensemble},
    {"ai.onnx.ml", "TreeEnsembleRegressor", tree_regressor},
    {"ai.onnx.ml", "TreeEnsembleClassifier", tree_classifier},
    {"ai.onnx.ml", "LinearRegressor", linear_regressor},
    {"ai.onnx.ml", "LinearClassifier", linear_classifier},
    {"ai.onnx.ml", "SVMRegressor", svm_regressor},
};

}  // namespace

std::span<const Converter> ml_model_converters() { return kRows; }

}  // namespace tessera::import::onnx
