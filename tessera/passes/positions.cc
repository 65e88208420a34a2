#include "tessera/passes/positions.h"

#include <algorithm>
#include <cmath>

#include "tessera/op/index.h"
#include "tessera/passes/algebra.h"
#include "tessera/passes/shapes.h"

namespace tessera::passes {
namespace {

constexpr int64_t kLargest = 1 << 24;  // elements of a constant mask
constexpr int kDepth = 12;

std::optional<Affine> of_constant(const op::Tensor& t) {
  if (!is_int(t.dtype()) || t.count() == 0 || t.count() > kLargest) return std::nullopt;
  const op::Dims strides = op::strides_of(t.dims());
  Affine f{op::Expr(t.i64(0)), {}};
  for (int a = 0; a < t.rank(); ++a)
    if (t.dim(a) > 1)
      if (const int64_t step = t.i64(strides[static_cast<size_t>(a)]) - t.i64(0))
        f.steps[t.rank() - a] = step;
  for (op::Index at(t.dims()); !at.done(); at.next()) {
    int64_t expected = t.i64(0);
    for (const auto& [axis, step] : f.steps)
      expected += step * at[static_cast<size_t>(t.rank() - axis)];
    if (t.i64(at.linear()) != expected) return std::nullopt;
  }
  return f;
}

std::optional<Affine> read(const Site& at, ir::ValueId id, int depth);

std::optional<Affine> sum(const Site& at, const ir::Node& node, int64_t sign, int depth) {
  auto a = read(at, node.inputs[0], depth);
  const auto b = a ? read(at, node.inputs[1], depth) : std::nullopt;
  if (!b) return std::nullopt;
  a->offset = a->offset + op::Expr(sign) * b->offset;
  for (const auto& [axis, step] : b->steps)
    if ((a->steps[axis] += sign * step) == 0) a->steps.erase(axis);
  return a;
}

// The same elements with axes of 1 added or dropped.
std::optional<Affine> viewed(const Site& at, const ir::Node& node, int depth) {
  const op::Type &from = at.type(node.inputs[0]), &to = at.type(node.outputs[0]);
  auto f = from.ranked() && to.ranked() ? read(at, node.inputs[0], depth) : std::nullopt;
  const auto groups = f ? axis_groups(*from.shape, *to.shape) : std::nullopt;
  if (!groups) return std::nullopt;
  Affine result{f->offset, {}};
  for (const AxisGroup& g : *groups) {
    if (g.from.size() != 1 || g.to.size() != 1) return std::nullopt;
    if (const auto step = f->steps.find(from.rank() - g.from[0]); step != f->steps.end())
      result.steps[to.rank() - g.to[0]] = step->second;
  }
  return result;
}

std::optional<Affine> read(const Site& at, ir::ValueId id, int depth) {
  if (id == ir::kAbsent || depth <= 0) return std::nullopt;
  if (const op::Tensor* t = at.constant(id)) return of_constant(*t);
  const ir::ValueInfo& info = at.value(id);
  if (info.contents && info.contents->size() == 1) return Affine{(*info.contents)[0], {}};
  const ir::Node* node = at.producer(id);
  if (!node || !info.type.is_tensor() || !is_int(info.type.dtype)) return std::nullopt;
  const std::string_view op = node->op->name;
  if (op == "add") return sum(at, *node, 1, depth - 1);
  if (op == "sub") return sum(at, *node, -1, depth - 1);
  if (op == "reshape" || op == "unsqueeze" || op == "squeeze") return viewed(at, *node, depth - 1);
  if (op == "broadcast_to" || op == "identity" ||
      (op == "convert" && is_int(at.type(node->inputs[0]).dtype)))
    return read(at, node->inputs[0], depth - 1);
  if (op != "range") return std::nullopt;
  const auto start = read(at, node->inputs[0], depth - 1),
             step = read(at, node->inputs[2], depth - 1);
  if (!start || !step || !step->offset.is_constant()) return std::nullopt;
  Affine f{start->offset, {}};
  if (const int64_t s = *step->offset.constant()) f.steps[1] = s;
  return f;
}

// Of a matrix of conditions, the last two axes of a constant.
Visible of_matrix(const op::Tensor& t, const op::Expr& queries, const op::Expr& keys,
                  const std::function<std::optional<bool>(int64_t)>& visible) {
  const auto S = queries.constant(), T = keys.constant();
  if (!S || !T || t.count() > kLargest || t.rank() < 1) return Visible::kOther;
  const int64_t rows = t.rank() > 1 ? t.dim(t.rank() - 2) : 1;
  if (t.count() != rows * t.dim(t.rank() - 1) || t.dim(t.rank() - 1) != *T ||
      (rows != 1 && rows != *S))
    return Visible::kOther;
  bool all = true, causal = rows == *S;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < *T; ++j) {
      const auto seen = visible(i * *T + j);
      if (!seen) return Visible::kOther;
      all = all && *seen;
      causal = causal && *seen == (j <= i + *T - *S);
      if (!all && !causal) return Visible::kOther;
    }
  return all ? Visible::kAll : Visible::kCausal;
}

// key index <= bound, with bound - index affine
Visible of_difference(const Affine& low, const Affine& high, const op::Expr& queries,
                      const op::Expr& keys, int64_t slack) {
  // visible where d = high - low + slack >= 0
  op::Expr d = high.offset - low.offset + op::Expr(slack);
  std::map<int, int64_t> steps = high.steps;
  for (const auto& [axis, step] : low.steps)
    if ((steps[axis] -= step) == 0) steps.erase(axis);
  for (const auto& [axis, step] : steps)
    if (axis > 2) return Visible::kOther;
  const int64_t row = steps.contains(2) ? steps[2] : 0, column = steps.contains(1) ? steps[1] : 0;
  // The least that d can be, over all rows and columns.
  op::Expr least = d;
  if (row < 0) least = least + op::Expr(row) * (queries - op::Expr(1));
  if (column < 0) least = least + op::Expr(column) * (keys - op::Expr(1));
  if (op::non_negative(least)) return Visible::kAll;
  const bool one_row = queries.constant() == 1;
  if (column == -1 && (row == 1 || one_row) && d == keys - queries) return Visible::kCausal;
  return Visible::kOther;
}

}  // namespace

std::optional<Affine> affine_of(const Site& at, ir::ValueId id) { return read(at, id, kDepth); }

bool hides(DType dtype, double number) {
  const double lowest = dtype == DType::kF16    ? -65504.0
                        : dtype == DType::kBF16 ? -3.3895313892515355e38
                        : dtype == DType::kF64  ? -1.7976931348623157e308
                                                : -3.4028234663852886e38;
  return number <= lowest / 2;
}

Visible visible_by(const Site& at, ir::ValueId condition, const op::Expr& queries,
                   const op::Expr& keys) {
  if (const op::Tensor* t = at.constant(condition)) {
    if (t->dtype() != DType::kBool) return Visible::kOther;
    if (number(at, condition) == 1.0) return Visible::kAll;
    return of_matrix(*t, queries, keys, [t](int64_t i) { return std::optional(t->i64(i) != 0); });
  }
  const ir::Node* node = at.producer(condition);
  if (!node) return Visible::kOther;
  const std::string_view op = node->op->name;
  if (op == "reshape" || op == "unsqueeze" || op == "broadcast_to" || op == "identity")
    return visible_by(at, node->inputs[0], queries, keys);
  if (op == "and") {
    const Visible a = visible_by(at, node->inputs[0], queries, keys),
                  b = visible_by(at, node->inputs[1], queries, keys);
    return a == Visible::kAll ? b : b == Visible::kAll || a == b ? a : Visible::kOther;
  }
  if (op != "le" && op != "lt" && op != "ge" && op != "gt") return Visible::kOther;
  const auto a = affine_of(at, node->inputs[0]), b = affine_of(at, node->inputs[1]);
  if (!a || !b) return Visible::kOther;
  const bool rising = op == "le" || op == "lt", strict = op == "lt" || op == "gt";
  return of_difference(rising ? *a : *b, rising ? *b : *a, queries, keys, strict ? -1 : 0);
}

Visible visible_under(const Site& at, ir::ValueId term, const op::Expr& queries,
                      const op::Expr& keys) {
  const DType dtype = at.type(term).dtype;
  if (const op::Tensor* t = at.constant(term)) {
    if (number(at, term) == 0.0) return Visible::kAll;
    return of_matrix(*t, queries, keys, [&](int64_t i) {
      const double v = t->f64(i);
      return v == 0 ? std::optional(true) : hides(dtype, v) ? std::optional(false) : std::nullopt;
    });
  }
  const ir::Node* node = at.producer(term);
  if (!node) return Visible::kOther;
  const std::string_view op = node->op->name;
  if (op == "reshape" || op == "unsqueeze" || op == "broadcast_to" || op == "identity")
    return visible_under(at, node->inputs[0], queries, keys);
  if (op != "select" || number(at, node->inputs[1]) != 0.0) return Visible::kOther;
  const auto hidden = number(at, node->inputs[2]);
  return hidden && hides(dtype, *hidden) ? visible_by(at, node->inputs[0], queries, keys)
                                         : Visible::kOther;
}

}  // namespace tessera::passes
