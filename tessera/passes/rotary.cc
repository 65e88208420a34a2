#include "tessera/passes/rotary.h"

#include <array>
#include <cmath>

#include "tessera/op/elementwise.h"
#include "tessera/op/rules.h"
#include "tessera/passes/slices.h"

namespace tessera::passes {
namespace {

constexpr int kRank = 4, kLast = 3;
constexpr int kDepth = 16;  // of the arithmetic that tables are made by

// The sizes of x where it can be turned: 4 axes, an even number of channels.
std::optional<int64_t> channels(const Site& at, ir::ValueId x) {
  const op::Type& type = at.type(x);
  if (!type.ranked() || type.rank() != kRank || !is_float(type.dtype)) return std::nullopt;
  const auto size = type.dim(kLast).constant();
  return size && *size > 0 && *size % 2 == 0 ? size : std::nullopt;
}

bool is_last(const ir::Node& node, int rank) {
  const auto axis = op::normalize_axis(node.attrs.i("axis"), rank);
  return axis && *axis == rank - 1;
}

// Of mul(a, b) with a == `one`, or the other way around: the other factor.
ir::ValueId other_factor(const ir::Node& mul, ir::ValueId one) {
  if (mul.inputs[0] == one) return mul.inputs[1];
  return mul.inputs[1] == one ? mul.inputs[0] : ir::kAbsent;
}

// x[first, first + half) of the last axis: x.
ir::ValueId half_of(const Site& at, ir::ValueId id, bool second) {
  const ir::Node* slice = at.producer(id, "slice");
  const auto s = slice ? slice_of(at, *slice) : std::nullopt;
  if (!s || s->axis != kLast || 2 * s->size != s->whole || s->first != (second ? s->size : 0))
    return ir::kAbsent;
  return slice->inputs[0];
}

bool repeats(const op::Tensor& t) {
  const int64_t size = t.dims().empty() ? 1 : t.dims().back();
  if (size % 2 != 0 || !is_float(t.dtype())) return false;
  for (int64_t row = 0; row < t.count(); row += size)
    for (int64_t i = row; i < row + size / 2; ++i) {
      const double a = t.f64(i), b = t.f64(i + size / 2);
      if (a != b && !(std::isnan(a) && std::isnan(b))) return false;
    }
  return true;
}

// Whether both halves of the last axis hold the same, as far as the graph shows.
bool repeats(const Site& at, ir::ValueId id, int depth = kDepth) {
  if (const op::Tensor* t = at.constant(id)) return repeats(*t);
  const ir::Node* node = at.producer(id);
  const op::Type& type = at.type(id);
  if (!node || depth == 0 || !type.ranked() || type.rank() == 0) return false;
  const op::Expr last = type.dim(type.rank() - 1);
  auto keeps_last = [&](ir::ValueId from) {
    const op::Type& t = at.type(from);
    return t.ranked() && t.rank() > 0 && t.dim(t.rank() - 1) == last;
  };
  const std::string_view op = node->op->name;
  if (op == "concat")
    return node->inputs.size() == 2 && node->inputs[0] == node->inputs[1] &&
           is_last(*node, type.rank());
  if (op == "unsqueeze" || op == "squeeze" || op == "reshape" || op == "convert")
    return keeps_last(node->inputs[0]) && repeats(at, node->inputs[0], depth - 1);
  if (op == "gather") {
    const op::Type& table = at.type(node->inputs[0]);
    return keeps_last(node->inputs[0]) && !is_last(*node, table.rank()) &&
           repeats(at, node->inputs[0], depth - 1);
  }
  if (!op::elementwise(*node->op)) return false;
  for (ir::ValueId from : node->inputs) {
    if (from == ir::kAbsent) continue;
    const op::Type& t = at.type(from);
    if (!t.ranked()) return false;
    const bool one = t.rank() == 0 || t.dim(t.rank() - 1) == op::Expr(1);
    if (!one && !(keeps_last(from) && repeats(at, from, depth - 1))) return false;
  }
  return true;
}

// A table that is broadcast to x (B,H,S,E), the same for all heads, as (B or 1, S, `size`), of
// whose last axis the first `size` are taken; kAbsent where it is another.
ir::ValueId table_of(Site& at, ir::Builder& b, ir::ValueId id, const op::Type& x, int64_t size) {
  const op::Type& type = at.type(id);
  if (!type.ranked() || type.rank() < 2 || type.rank() > kRank || type.dtype != x.dtype)
    return ir::kAbsent;
  const int lead = kRank - type.rank();
  auto own = [&](int axis) { return axis < lead ? op::Expr(1) : type.dim(axis - lead); };
  const auto whole = own(kLast).constant();
  if (!whole || *whole < size || !(own(2) == x.dim(2)) || !(own(1) == op::Expr(1)) ||
      !(own(0) == op::Expr(1) || own(0) == x.dim(0)))
    return ir::kAbsent;
  const ir::ValueId part = *whole == size ? id : b.slice(id, type.rank() - 1, 0, size);
  if (lead == 0) return b.squeeze(part, {1});
  return lead == 2 ? b.unsqueeze(part, {0}) : part;
}

// In place of this node and `others`: x turned by the angles of c and s.
bool replace(Site& at, std::span<const ir::Node* const> others, ir::ValueId x, ir::ValueId c,
             ir::ValueId s) {
  ir::Builder& b = at.build(others);
  const op::Type type = at.type(x);
  const int64_t half = *channels(at, x) / 2;
  const ir::ValueId cos = table_of(at, b, c, type, half), sin = table_of(at, b, s, type, half);
  if (cos == ir::kAbsent || sin == ir::kAbsent) return false;
  return at.replace(b.op("rotary", {x, cos, sin}), "rotary");
}

// x c + concat(-x2, x1) s
bool turned(Site& at) {
  for (size_t side : {0, 1}) {
    const ir::Node* straight = at.producer(at.in(side), "mul");
    const ir::Node* crossed = at.producer(at.in(1 - side), "mul");
    if (!straight || !crossed || at.uses(at.in(0)) != 1 || at.uses(at.in(1)) != 1) return false;
    for (size_t factor : {0, 1}) {
      const ir::ValueId swapped = crossed->inputs[factor], s = crossed->inputs[1 - factor];
      const ir::Node* joined = at.producer(swapped, "concat");
      if (!joined || joined->inputs.size() != 2 || at.uses(swapped) != 1 ||
          !is_last(*joined, at.type(swapped).rank()))
        continue;
      const ir::Node* negated = at.producer(joined->inputs[0], "neg");
      if (!negated || at.uses(joined->inputs[0]) != 1) continue;
      const ir::ValueId x = half_of(at, negated->inputs[0], true);
      if (x == ir::kAbsent || half_of(at, joined->inputs[1], false) != x) continue;
      const ir::ValueId c = other_factor(*straight, x);
      if (c == ir::kAbsent || !channels(at, x)) continue;
      if (!repeats(at, c) || !repeats(at, s))
        return at.miss("rotary: nothing shows that the halves of its tables are equal",
                       std::initializer_list<const ir::Node*>{straight, crossed});
      const std::array<const ir::Node*, 4> nodes{straight, crossed, joined, negated};
      return replace(at, nodes, x, c, s);
    }
  }
  return false;
}

// concat(x1 c - x2 s, x1 s + x2 c)
bool joined(Site& at) {
  const ir::Node *real = at.producer(at.in(0), "sub"), *imaginary = at.producer(at.in(1), "add");
  if (!real || !imaginary || at.uses(at.in(0)) != 1 || at.uses(at.in(1)) != 1) return false;
  std::array<const ir::Node*, 4> products{
      at.producer(real->inputs[0], "mul"), at.producer(real->inputs[1], "mul"),
      at.producer(imaginary->inputs[0], "mul"), at.producer(imaginary->inputs[1], "mul")};
  for (const ir::Node* p : products)
    if (!p || at.uses(p->outputs[0]) != 1) return false;
  for (size_t factor : {0, 1}) {
    const ir::ValueId x1 = products[0]->inputs[factor], c = products[0]->inputs[1 - factor];
    const ir::ValueId x = half_of(at, x1, false);
    if (x == ir::kAbsent || !channels(at, x)) continue;
    for (size_t other : {0, 1}) {
      const ir::ValueId x2 = products[1]->inputs[other], s = products[1]->inputs[1 - other];
      if (half_of(at, x2, true) != x) continue;
      const bool straight =
          other_factor(*products[2], x1) == s && other_factor(*products[3], x2) == c;
      const bool crossed =
          other_factor(*products[3], x1) == s && other_factor(*products[2], x2) == c;
      if (!straight && !crossed) continue;
      std::vector<const ir::Node*> nodes{real, imaginary};
      nodes.insert(nodes.end(), products.begin(), products.end());
      return replace(at, nodes, x, c, s);
    }
  }
  return false;
}

// concat(rotary(x[:d]), x[d:])
bool partial(Site& at) {
  const ir::Node* inner = at.producer(at.in(0), "rotary");
  const ir::Node *first = inner ? at.producer(inner->inputs[0], "slice") : nullptr,
                 *rest = at.producer(at.in(1), "slice");
  if (!first || !rest || at.uses(at.in(0)) != 1 || inner->attrs.i("dim") != 0 ||
      first->inputs[0] != rest->inputs[0])
    return false;
  const auto a = slice_of(at, *first), b = slice_of(at, *rest);
  if (!a || !b || a->axis != kLast || b->axis != kLast || a->first != 0 || b->first != a->size ||
      a->size + b->size != a->whole)
    return false;
  std::vector<ir::ValueId> inputs = inner->inputs;
  inputs[0] = first->inputs[0];
  op::Attrs attrs = inner->attrs;
  attrs.set("dim", a->size);
  ir::Builder& builder = at.build({inner, first, rest});
  return at.replace(builder.op("rotary", std::move(inputs), std::move(attrs)),
                    "rotary of some channels");
}

// rotary(x, c, s, positions)
bool placed(Site& at) {
  if (at.in(3) == ir::kAbsent) return false;
  ir::Builder& b = at.build();
  const ir::ValueId cos = b.gather(at.in(1), at.in(3), 0), sin = b.gather(at.in(2), at.in(3), 0);
  return at.replace(b.op("rotary", {at.in(0), cos, sin}, at.node.attrs), "positions of rotary");
}

bool rule(Site& at) {
  if (at.is("rotary")) return placed(at);
  if (at.is("add")) return turned(at);
  const bool two = at.is("concat") && at.node.inputs.size() == 2 && at.type(at.out()).ranked() &&
                   at.type(at.out()).rank() == kRank && is_last(at.node, kRank);
  return two && (joined(at) || partial(at));
}

}  // namespace

void rotary(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
