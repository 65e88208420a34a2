#include "tessera/passes/layer_norm.h"

#include <algorithm>

#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

struct Found {
  ir::ValueId x = ir::kAbsent;
  double epsilon = 0;
  int axis = 0;
  std::vector<const ir::Node*> nodes;
};

// sqrt(v + epsilon) or pow(v + epsilon, 1/2): v in x.
std::optional<Found> root_of(const Site& at, ir::ValueId id, double exponent = 0.5) {
  const ir::Node* root = at.producer(id);
  if (!root || at.uses(id) != 1) return std::nullopt;
  const bool power = root->op->name == "pow" && number(at, root->inputs[1]) == exponent;
  if (!power && (root->op->name != "sqrt" || exponent != 0.5)) return std::nullopt;
  const ir::Node* sum = at.producer(root->inputs[0], "add");
  if (!sum || at.uses(root->inputs[0]) != 1) return std::nullopt;
  for (size_t side : {1, 0})
    if (const auto epsilon = number(at, sum->inputs[side]))
      return Found{sum->inputs[1 - side], *epsilon, 0, {sum, root}};
  return std::nullopt;
}

// 1 / sqrt(v + epsilon)
std::optional<Found> inverse_root_of(const Site& at, ir::ValueId id) {
  if (auto root = root_of(at, id, -0.5)) return root;
  const ir::Node* quotient = at.producer(id, "div");
  if (!quotient || at.uses(id) != 1 || number(at, quotient->inputs[0]) != 1.0) return std::nullopt;
  auto root = root_of(at, quotient->inputs[1]);
  if (root) root->nodes.push_back(quotient);
  return root;
}

// The mean of the squares of `d` over the last axes: the first of them. `reads`: how often the mean
// reads d.
std::optional<int> mean_square(const Site& at, ir::ValueId id, ir::ValueId d, int& reads,
                               std::vector<const ir::Node*>& nodes) {
  const ir::Node* quotient = at.producer(id);
  const auto mean = quotient && at.uses(id) == 1 ? mean_of(at, *quotient) : std::nullopt;
  const int rank = at.type(d).ranked() ? at.type(d).rank() : -1;
  if (!mean || !mean->keepdims || mean->axes.empty() || at.uses(mean->of) != 1) return std::nullopt;
  const ir::Node* square = at.producer(mean->of);
  if (!square || square->inputs[0] != d) return std::nullopt;
  const bool product = square->op->name == "mul" && square->inputs[1] == d;
  if (!product && (square->op->name != "pow" || number(at, square->inputs[1]) != 2.0))
    return std::nullopt;
  const int axis = mean->axes.front();
  if (axis + static_cast<int>(mean->axes.size()) != rank) return std::nullopt;
  reads = product ? 2 : 1;
  nodes.insert(nodes.end(), mean->nodes.begin(), mean->nodes.end());
  nodes.insert(nodes.end(), {square, quotient});
  return axis;
}

// d = x - mean(x) over the same axes: x.
ir::ValueId centred(const Site& at, ir::ValueId d, int axis, std::vector<const ir::Node*>& nodes) {
  const ir::Node* difference = at.producer(d, "sub");
  const ir::Node* quotient = difference ? at.producer(difference->inputs[1]) : nullptr;
  const auto mean = quotient ? mean_of(at, *quotient) : std::nullopt;
  if (!mean || mean->of != difference->inputs[0] || !mean->keepdims || mean->axes.empty() ||
      mean->axes.front() != axis ||
      axis + static_cast<int>(mean->axes.size()) != at.type(d).rank() ||
      at.uses(difference->inputs[1]) != 1)
    return ir::kAbsent;
  nodes.insert(nodes.end(), mean->nodes.begin(), mean->nodes.end());
  nodes.insert(nodes.end(), {quotient, difference});
  return mean->of;
}

bool normalised(Site& at, ir::ValueId d, Found root) {
  int reads = 0;
  const auto axis = mean_square(at, root.x, d, reads, root.nodes);
  if (!axis || !is_float(at.type(d).dtype)) return false;
  const ir::ValueId x = centred(at, d, *axis, root.nodes);
  const op::Type type = at.type(d);
  op::Attrs attrs{{"axis", int64_t{*axis}}, {"epsilon", root.epsilon}, {"stash", type.dtype}};
  if (x != ir::kAbsent && at.uses(d) == reads + 1)
    return at.replace(at.build(root.nodes).op("layer_norm", {x}, std::move(attrs)), "layer_norm");
  op::Dims dims;
  for (int a = *axis; a < type.rank(); ++a) {
    const auto size = type.dim(a).constant();
    if (!size) return at.miss("rms_norm over an axis of unknown size", root.nodes);
    dims.push_back(*size);
  }
  auto ones = op::Tensor::make(type.dtype, dims);
  if (!ones) return false;
  for (int64_t i = 0; i < ones->count(); ++i) ones->set_f64(i, 1);
  ir::Builder& b = at.build(root.nodes);
  return at.replace(b.op("rms_norm", {d, b.constant(*std::move(ones))}, std::move(attrs)),
                    "rms_norm");
}

bool norm(Site& at) {
  if (at.is("div")) {
    if (auto root = root_of(at, at.in(1))) return normalised(at, at.in(0), *std::move(root));
    return false;
  }
  if (!at.is("mul")) return false;
  for (size_t side : {1, 0})
    if (auto root = inverse_root_of(at, at.in(side)))
      return normalised(at, at.in(1 - side), *std::move(root));
  return false;
}

// `c` with the sizes of the axes that are normalised; kAbsent where it has others.
ir::ValueId shaped(Site& at, ir::Builder& b, ir::ValueId c, const ir::Node& norm) {
  const op::Type &x = at.type(norm.inputs[0]), &type = at.type(c);
  if (!x.ranked() || !type.ranked() || x.dtype != type.dtype) return ir::kAbsent;
  const auto given = static_cast<int>(norm.attrs.i("axis", -1));
  const int axis = given < 0 ? given + x.rank() : given, count = x.rank() - axis;
  if (type.rank() < count) return ir::kAbsent;
  std::vector<int64_t> dims;
  for (int a = 0; a < type.rank(); ++a) {
    const int own = a - (type.rank() - count);
    if (own < 0 ? !(type.dim(a) == op::Expr(1)) : !(type.dim(a) == x.dim(axis + own)))
      return ir::kAbsent;
    if (own >= 0) dims.push_back(type.dim(a).constant().value_or(-1));
  }
  if (type.rank() == count) return c;
  return std::count(dims.begin(), dims.end(), -1) > 1 ? ir::kAbsent : b.reshape(c, dims);
}

// layer_norm(x) * c, rms_norm(x, 1) * c
bool scaled(Site& at) {
  for (size_t side : {0, 1}) {
    const ir::Node* norm = at.producer(at.in(side));
    if (!norm || norm->outputs.size() != 1 || at.uses(at.in(side)) != 1) continue;
    const bool layer = norm->op->name == "layer_norm", rms = norm->op->name == "rms_norm";
    if (layer ? norm->inputs.size() > 1 : !rms || number(at, norm->inputs[1]) != 1.0) continue;
    ir::Builder& b = at.build({norm});
    const ir::ValueId c = shaped(at, b, at.in(1 - side), *norm);
    if (c == ir::kAbsent) continue;
    return at.replace(b.op(norm->op->name, {norm->inputs[0], c}, norm->attrs),
                      fmt::format("scale of {}", norm->op->name));
  }
  return false;
}

// layer_norm(x, c) + b
bool shifted(Site& at) {
  for (size_t side : {0, 1}) {
    const ir::Node* norm = at.producer(at.in(side), "layer_norm");
    if (!norm || norm->inputs.size() > 2 || norm->outputs.size() != 1 ||
        at.uses(at.in(side)) != 1 || !at.constant(at.in(1 - side)))
      continue;
    ir::Builder& b = at.build({norm});
    const ir::ValueId offset = shaped(at, b, at.in(1 - side), *norm);
    if (offset == ir::kAbsent) continue;
    const ir::ValueId scale = norm->inputs.size() > 1 ? norm->inputs[1] : ir::kAbsent;
    return at.replace(b.op("layer_norm", {norm->inputs[0], scale, offset}, norm->attrs),
                      "bias of layer_norm");
  }
  return false;
}

bool rule(Site& at) {
  if (at.is("add")) return shifted(at);
  return norm(at) || (at.is("mul") && scaled(at));
}

}  // namespace

void layer_norm(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
