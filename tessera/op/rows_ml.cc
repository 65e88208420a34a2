// Classical machine learning: label maps, tree ensembles, scores. Host operators.
#include <algorithm>

#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;
using Types = Result<std::vector<Type>>;

const Tensor& tensor_attr(const InferContext& c, std::string_view name) {
  return std::get<Tensor>(*c.attrs.find(name));
}

// lookup(x){keys, values, default}: the value beside the last key equal to the element (NaNs are
// equal), or the default.
Types lookup_rule(const InferContext& c) {
  const Tensor &keys = tensor_attr(c, "keys"), &values = tensor_attr(c, "values"),
               &otherwise = tensor_attr(c, "default");
  Type t = c.in(0);
  if (!t.is_tensor() || t.dtype != keys.dtype())
    return c.fail("the keys are {}, the input {}", name_of(keys.dtype()), t.str());
  if (keys.count() != values.count())
    return c.fail("{} keys, {} values", keys.count(), values.count());
  if (otherwise.count() != 1 || otherwise.dtype() != values.dtype())
    return c.fail("the values are {}, the default {}", name_of(values.dtype()),
                  otherwise.type().str());
  t.dtype = values.dtype();
  return std::vector<Type>{t};
}

// categories(x){categories, strict} -> f32 with a further axis: 1 at the place of the element among
// the categories. One that is not there is an error if strict, else all zeros.
Types categories_rule(const InferContext& c) {
  Type t = c.in(0);
  const Tensor& categories = tensor_attr(c, "categories");
  if (!t.is_tensor() || (t.dtype == DType::kString) != (categories.dtype() == DType::kString) ||
      is_complex(t.dtype))
    return c.fail("the categories are {}, the input {}", name_of(categories.dtype()), t.str());
  t.dtype = DType::kF32;
  if (t.ranked()) t.shape->push_back(Expr(categories.count()));
  return std::vector<Type>{t};
}

bool all_in(const Ints& list, int64_t low, int64_t high) {
  return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v >= low && v < high; });
}

// tree_ensemble(x){...}: x is [rows, features]; the result [rows, targets] aggregates the votes of
// the leaf that each tree leads to.
//   roots, true, false       a node, or ~leaf
//   feature, mode, split     per node: true if x[feature] <mode> split; modes as ONNX numbers them:
//   <=, <, >=, >, ==, !=, in missing                  per node or empty: whether a NaN goes the
//   true way members                  the sets of nodes of mode 6, in order of nodes, a NaN behind
//   each leaf_begin, vote_target, vote_weight   leaf i has votes leaf_begin[i] to leaf_begin[i+1]
//   targets, base, aggregate  "sum", "average" (over trees), "min", "max"; base (empty or per
//   target) is added at the end
Types tree_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor() || (!is_float(x.dtype) && !is_int(x.dtype)) || (x.ranked() && x.rank() != 2))
    return c.fail("needs numbers of rank 2, got {}", x.str());
  const Attrs& a = c.attrs;
  const Ints feature = a.ints("feature"), mode = a.ints("mode"), yes = a.ints("true"),
             no = a.ints("false"), missing = a.ints("missing");
  const Ints begin = a.ints("leaf_begin"), target = a.ints("vote_target"), roots = a.ints("roots");
  const size_t nodes = feature.size();
  if (mode.size() != nodes || yes.size() != nodes || no.size() != nodes ||
      a.floats("split").size() != nodes || (!missing.empty() && missing.size() != nodes))
    return c.fail("{} features, {} modes, {} splits, {} and {} branches, {} ways of NaN", nodes,
                  mode.size(), a.floats("split").size(), yes.size(), no.size(), missing.size());
  const int64_t n = static_cast<int64_t>(nodes), leaves = static_cast<int64_t>(begin.size()) - 1,
                targets = a.i("targets");
  if (leaves < 0 || !std::is_sorted(begin.begin(), begin.end()) || begin.front() != 0 ||
      begin.back() != static_cast<int64_t>(target.size()) ||
      target.size() != a.floats("vote_weight").size())
    return c.fail("{} votes for targets, {} weights, and leaves that do not share them out",
                  target.size(), a.floats("vote_weight").size());
  if (targets < 1 || targets > int64_t{1} << 32) return c.fail("{} targets", targets);
  if (!all_in(target, 0, targets)) return c.fail("a vote is for none of {} targets", targets);
  for (const Ints* list : {&roots, &yes, &no})
    if (!all_in(*list, -leaves, n))
      return c.fail("a branch leads to none of {} nodes and {} leaves", n, leaves);
  if (!all_in(mode, 0, 7)) return c.fail("an unknown mode");
  const int64_t width = x.ranked() && x.dim(1).is_constant() ? *x.dim(1).constant() : INT64_MAX;
  if (!all_in(feature, 0, width)) return c.fail("a feature is none of {}", width);
  const Floats members = a.floats("members");
  if (std::count(mode.begin(), mode.end(), 6) !=
      std::count_if(members.begin(), members.end(), [](double v) { return v != v; }))
    return c.fail("as many sets of members as nodes that ask for membership are needed");
  const size_t base = a.floats("base").size();
  if (base != 0 && base != static_cast<size_t>(targets))
    return c.fail("{} base values for {} targets", base, targets);
  const DType dtype = a.dtype("to", DType::kF32);
  return std::vector<Type>{Type::tensor(dtype, {x.ranked() ? x.dim(0) : c.fresh(), Expr(targets)})};
}

// score_transform(x){kind}: per row "softmax", "softmax_zero" (zeros stay), per element "logistic",
// "probit", "none"
Types transform_rule(const InferContext& c) {
  const std::string kind = c.attrs.s("kind");
  constexpr std::string_view kKinds[] = {"none", "softmax", "softmax_zero", "logistic", "probit"};
  if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds))
    return c.fail("unknown transformation '{}'", kind);
  if (!c.in(0).is_tensor() || !is_float(c.in(0).dtype))
    return c.fail("needs floats, got {}", c.in(0).str());
  if (c.in(0).ranked() && c.in(0).rank() == 0) return c.fail("needs an axis of scores");
  return same_as_input(c);
}

// pick_label(scores){labels, threshold} -> labels: that of the largest score in each row, the first
// of equals. A row of one score picks the second label if it is above the threshold.
Types label_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const Tensor& labels = tensor_attr(c, "labels");
  if (!x.is_tensor() || !is_float(x.dtype) || (x.ranked() && x.rank() != 2))
    return c.fail("needs floats of rank 2, got {}", x.str());
  if (x.ranked() && x.dim(1).is_constant()) {
    const int64_t scores = *x.dim(1).constant();
    if (scores == 0 || (scores == 1 ? labels.count() != 2 : labels.count() < scores))
      return c.fail("{} scores for {} labels", scores, labels.count());
  }
  return std::vector<Type>{Type::tensor(labels.dtype(), {x.ranked() ? x.dim(0) : c.fresh()})};
}

// svm_kernel(x, vectors){kind, gamma, coef0, degree}: [rows, vectors] of "linear" x.v, "poly"
// (gamma x.v + coef0)^degree, "sigmoid" tanh(gamma x.v + coef0), "rbf" exp(-gamma |x-v|^2)
Types kernel_rule(const InferContext& c) {
  const Type &x = c.in(0), &v = c.in(1);
  for (const Type* t : {&x, &v})
    if (!t->is_tensor() || t->dtype != DType::kF32 || (t->ranked() && t->rank() != 2))
      return c.fail("needs f32 of rank 2, got {}", t->str());
  if (x.ranked() && v.ranked() && x.dim(1).is_constant() && v.dim(1).is_constant() &&
      !(x.dim(1) == v.dim(1)))
    return c.fail("rows of {} against vectors of {}", x.dim(1).str(), v.dim(1).str());
  const std::string kind = c.attrs.s("kind");
  if (kind != "linear" && kind != "poly" && kind != "sigmoid" && kind != "rbf")
    return c.fail("unknown kernel '{}'", kind);
  return std::vector<Type>{Type::tensor(
      DType::kF32, {x.ranked() ? x.dim(0) : c.fresh(), v.ranked() ? v.dim(0) : c.fresh()})};
}

}  // namespace

std::span<const OpDef> ml_rows() {
  using enum AttrKind;
  static const std::vector<OpDef> rows{
      {"lookup",
       kHost,
       1,
       1,
       1,
       1,
       {{"keys", kTensor, true}, {"values", kTensor, true}, {"default", kTensor, true}},
       lookup_rule},
      {"categories",
       kHost,
       1,
       1,
       1,
       1,
       {{"categories", kTensor, true}, {"strict", kInt}},
       categories_rule},
      {"tree_ensemble",
       kHost,
       1,
       1,
       1,
       1,
       {{"roots", kInts, true},
        {"true", kInts, true},
        {"false", kInts, true},
        {"feature", kInts, true},
        {"mode", kInts, true},
        {"split", kFloats, true},
        {"missing", kInts},
        {"members", kFloats},
        {"leaf_begin", kInts, true},
        {"vote_target", kInts, true},
        {"vote_weight", kFloats, true},
        {"targets", kInt, true},
        {"base", kFloats},
        {"aggregate", kString, true},
        {"to", kDType}},
       tree_rule},
      {"score_transform", kHost, 1, 1, 1, 1, {{"kind", kString, true}}, transform_rule},
      {"pick_label",
       kHost,
       1,
       1,
       1,
       1,
       {{"labels", kTensor, true}, {"threshold", kFloat}},
       label_rule},
      {"svm_kernel",
       kHost,
       2,
       2,
       1,
       1,
       {{"kind", kString, true}, {"gamma", kFloat}, {"coef0", kFloat}, {"degree", kFloat}},
       kernel_rule},
  };
  return rows;
}

}  // namespace tessera::op
