#include "tessera/ir/gradient.h"

#include <algorithm>
#include <numbers>

#include "tessera/ir/composites.h"

namespace tessera::ir {
namespace {

using Values = std::vector<ValueId>;

// What a rule sees: the node's inputs x and output y, and the gradient g of y. It returns the
// gradient of each input, kAbsent for one that has none.
struct Call {
  Builder& b;
  const op::Attrs& attrs;
  const Values& x;
  ValueId y, g;

  ValueId number(double v) const { return b.scalar_like(y, v); }
};
using Rule = Values (*)(const Call&);

// The gradient of something that was broadcast: summed over the axes that were added or stretched.
ValueId unbroadcast(Builder& b, ValueId g, ValueId like) {
  if (!b.ok() || b.type(g) == b.type(like)) return g;
  const op::Type from = b.type(like), to = b.type(g);
  if (!from.ranked() || !to.ranked()) {
    b.fail({Code::kUnimplemented, "the gradient of a broadcast needs known ranks"});
    return kAbsent;
  }
  const int added = to.rank() - from.rank();
  if (added > 0) g = b.reduce("sum", g, range(0, added), false);
  std::vector<int64_t> stretched;
  for (int i = 0; i < from.rank(); ++i) {
    if (from.dim(i) == to.dim(i + added)) continue;
    if (from.dim(i).constant() == 1) {
      stretched.push_back(i);
    } else if (!to.dim(i + added).is_constant() || !from.dim(i).is_constant()) {
      b.fail({Code::kUnimplemented,
              fmt::format("whether {} is broadcast to {} must be known", from.str(), to.str())});
      return kAbsent;
    }
  }
  return stretched.empty() ? g : b.reduce("sum", g, stretched, true);
}

ValueId masked(const Call& c, ValueId condition) {
  return c.b.select(condition, c.g, c.b.scalar_like(c.g, 0));
}

// Of a binary operator: each side's gradient, then undone broadcasting.
Values both(const Call& c, ValueId first, ValueId second) {
  return {unbroadcast(c.b, first, c.x[0]), unbroadcast(c.b, second, c.x[1])};
}

// Of max (gt) and min (lt): the second of equals takes it all, so that relu is flat at 0.
Values extremum(const Call& c, std::string_view compare) {
  const ValueId first = c.b.op(compare, {c.x[0], c.x[1]});
  return both(c, masked(c, first), c.b.select(first, c.b.scalar_like(c.g, 0), c.g));
}

Values pow_rule(const Call& c) {
  Builder& b = c.b;
  const ValueId e = b.convert(c.x[1], b.dtype(c.x[0])), one = c.number(1);
  const ValueId base = b.mul(b.mul(c.g, e), b.op("pow", {c.x[0], b.sub(e, one)}));
  if (!is_float(b.dtype(c.x[1]))) return {unbroadcast(b, base, c.x[0]), kAbsent};
  const ValueId exponent = b.mul(b.mul(c.g, c.y), b.unary("log", c.x[0]));
  return both(c, base, b.convert(exponent, b.dtype(c.x[1])));
}

// The last two axes exchanged.
ValueId flipped(Builder& b, ValueId x) {
  std::vector<int64_t> perm = range(0, b.rank(x));
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.transpose(x, perm);
}

Values dot_rule(const Call& c) {
  Builder& b = c.b;
  if (b.rank(c.x[0]) < 2 || b.rank(c.x[1]) < 2 || b.dtype(c.y) != b.dtype(c.x[0])) {
    b.fail({Code::kUnimplemented, "the gradient of dot needs ranks of 2 or more and one type"});
    return {kAbsent, kAbsent};
  }
  return both(c, b.op("dot", {c.g, flipped(b, c.x[1])}), b.op("dot", {flipped(b, c.x[0]), c.g}));
}

// g with the reduced axes as 1 again, stretched to the input.
ValueId stretched(const Call& c, ValueId v) {
  Builder& b = c.b;
  const ValueId shape = b.shape_of(c.x[0]);
  if (c.attrs.i("keepdims", 1) == 0) {
    if (c.x.size() > 1 && c.x[1] != kAbsent)
      v = b.unsqueeze(v, b.graph().value(c.x[1]).constant
                             ? b.graph().value(c.x[1]).constant->to_i64s()
                             : std::vector<int64_t>{});
    else
      v = b.reshape(v, std::vector<int64_t>(static_cast<size_t>(std::max(0, b.rank(c.x[0]))), 1));
  }
  return b.broadcast_to(v, shape);
}

Values reduce_rule(const Call& c) {
  Builder& b = c.b;
  const std::string kind = c.attrs.s("kind");
  ValueId g = kAbsent;
  if (kind == "sum") {
    g = stretched(c, c.g);
  } else if (kind == "max" || kind == "min") {  // shared by equals
    const ValueId hit = b.op("eq", {c.x[0], stretched(c, c.y)}), zero = c.number(0);
    const ValueId one = b.select(hit, c.number(1), zero);
    Values counted = c.x;
    counted[0] = one;
    const ValueId count = b.op(
        "reduce", counted, {{"kind", std::string("sum")}, {"keepdims", c.attrs.i("keepdims", 1)}});
    g = b.mul(one, stretched(c, b.div(c.g, count)));
  } else {
    b.fail({Code::kUnimplemented, fmt::format("reduce {} has no gradient rule", kind)});
  }
  Values result(c.x.size(), kAbsent);
  result[0] = g;
  return result;
}

Values same_shape(const Call& c) {
  Values result(c.x.size(), kAbsent);
  result[0] = c.b.op("reshape", {c.g, c.b.shape_of(c.x[0])}, {{"zero_is_zero", int64_t{1}}});
  return result;
}

Values transpose_rule(const Call& c) {
  const op::Ints perm = c.attrs.ints("perm");
  op::Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return {c.b.transpose(c.g, inverse)};
}

Values concat_rule(const Call& c) {
  Builder& b = c.b;
  const int64_t axis = axis_of(b, c.y, c.attrs.i("axis"));
  Values result;
  ValueId start = b.ints({0});
  for (ValueId x : c.x) {
    const ValueId end = b.add(start, b.dim(x, axis));
    result.push_back(b.op("slice", {c.g, start, end, b.ints({axis})}));
    start = end;
  }
  return result;
}

Values select_rule(const Call& c) {
  const ValueId zero = c.b.scalar_like(c.g, 0);
  return {kAbsent, unbroadcast(c.b, masked(c, c.x[0]), c.x[1]),
          unbroadcast(c.b, c.b.select(c.x[0], zero, c.g), c.x[2])};
}

// Into zeros, the gathered slices are added where they came from.
Values gather_rule(const Call& c) {
  Builder& b = c.b;
  const int64_t axis = axis_of(b, c.x[0], c.attrs.i("axis")), rank = b.rank(c.x[0]),
                indices = b.rank(c.x[1]);
  if (!b.ok() || indices < 0) {
    b.fail({Code::kUnimplemented, "the gradient of gather needs known ranks"});
    return {kAbsent, kAbsent};
  }
  std::vector<int64_t> front{axis}, moved = range(axis, axis + indices),
                                    back;  // the axis, and the indices' axes, come first
  for (int64_t a = 0; a < rank; ++a)
    if (a != axis) front.push_back(a);
  for (int64_t a = 0; a < rank - 1 + indices; ++a)
    if (a < axis || a >= axis + indices) moved.push_back(a);
  back.resize(front.size());
  for (size_t i = 0; i < front.size(); ++i)
    back[static_cast<size_t>(front[i])] = static_cast<int64_t>(i);
  const ValueId zeros =
      b.broadcast_to(b.scalar_like(c.g, 0), b.shape_of(b.transpose(c.x[0], front)));
  const ValueId sum =
      b.op("scatter_nd", {zeros, b.unsqueeze(c.x[1], {-1}), b.transpose(c.g, moved)},
           {{"reduction", std::string("add")}});
  return {b.transpose(sum, back), kAbsent};
}

// Zeros around what was cut out; steps of 1 between known bounds.
Values slice_rule(const Call& c) {
  Builder& b = c.b;
  Values result(c.x.size(), kAbsent);
  auto known = [&](size_t i) -> std::optional<op::Ints> {
    const bool there = i < c.x.size() && c.x[i] != kAbsent && b.graph().value(c.x[i]).constant;
    return there ? std::optional(b.graph().value(c.x[i]).constant->to_i64s()) : std::nullopt;
  };
  const auto starts = known(1), steps = known(4);
  const bool dense =
      c.x.size() < 5 || c.x[4] == kAbsent ||
      (steps && std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s == 1; }));
  const auto axes = c.x.size() > 3 && c.x[3] != kAbsent ? known(3)
                    : starts ? std::optional(range(0, static_cast<int64_t>(starts->size())))
                             : std::nullopt;
  if (!b.ok() || !starts || !axes || !dense || !b.type(c.x[0]).ranked() || !b.type(c.y).ranked()) {
    b.fail({Code::kUnimplemented, "the gradient of slice needs steps of 1 and known bounds"});
    return result;
  }
  Values before, after;
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t axis = axis_of(b, c.y, (*axes)[i]);
    const ValueId size = b.dim(c.x[0], axis), zero = b.ints({0});
    const ValueId start = b.ints({(*starts)[i]});
    const ValueId at = b.min(b.max((*starts)[i] < 0 ? b.add(start, size) : start, zero), size);
    before.push_back(at);
    after.push_back(b.sub(b.sub(size, at), b.dim(c.y, axis)));
  }
  before.insert(before.end(), after.begin(), after.end());
  result[0] = b.op("pad", {c.g, b.concat(before, 0), c.number(0), b.ints(*axes)},
                   {{"mode", std::string("constant")}});
  return result;
}

struct Row {
  std::string_view op;
  Rule rule;
};
constexpr Row kRules[] = {
    {"abs", [](const Call& c) { return Values{c.b.mul(c.g, c.b.unary("sign", c.x[0]))}; }},
    {"add", [](const Call& c) { return both(c, c.g, c.g); }},
    {"broadcast_to",
     [](const Call& c) {
       return Values{unbroadcast(c.b, c.g, c.x[0]), kAbsent};
     }},
    {"concat", concat_rule},
    {"convert",
     [](const Call& c) {
       return Values{is_float(c.b.dtype(c.x[0])) ? c.b.convert(c.g, c.b.dtype(c.x[0])) : kAbsent};
     }},
    {"cos",
     [](const Call& c) {
       return Values{c.b.unary("neg", c.b.mul(c.g, c.b.unary("sin", c.x[0])))};
     }},
    {"div",
     [](const Call& c) {
       const ValueId first = c.b.div(c.g, c.x[1]);
       return both(c, first, c.b.unary("neg", c.b.mul(first, c.y)));
     }},
    {"dot", dot_rule},
    {"erf",
     [](const Call& c) {
       const ValueId bell = c.b.unary("exp", c.b.unary("neg", c.b.mul(c.x[0], c.x[0])));
       return Values{c.b.mul(c.g, c.b.mul(bell, c.number(2 * std::numbers::inv_sqrtpi)))};
     }},
    {"exp", [](const Call& c) { return Values{c.b.mul(c.g, c.y)}; }},
    {"gather", gather_rule},
    {"identity", [](const Call& c) { return Values{c.g}; }},
    {"log", [](const Call& c) { return Values{c.b.div(c.g, c.x[0])}; }},
    {"max", [](const Call& c) { return extremum(c, "gt"); }},
    {"min", [](const Call& c) { return extremum(c, "lt"); }},
    {"mul", [](const Call& c) { return both(c, c.b.mul(c.g, c.x[1]), c.b.mul(c.g, c.x[0])); }},
    {"neg", [](const Call& c) { return Values{c.b.unary("neg", c.g)}; }},
    {"pow", pow_rule},
    {"reduce", reduce_rule},
    {"reshape", same_shape},
    {"select", select_rule},
    {"sin", [](const Call& c) { return Values{c.b.mul(c.g, c.b.unary("cos", c.x[0]))}; }},
    {"slice", slice_rule},
    {"sqrt", [](const Call& c) { return Values{c.b.div(c.b.mul(c.g, c.number(0.5)), c.y)}; }},
    {"squeeze", same_shape},
    {"sub", [](const Call& c) { return both(c, c.g, c.b.unary("neg", c.g)); }},
    {"tanh",
     [](const Call& c) { return Values{c.b.mul(c.g, c.b.sub(c.number(1), c.b.mul(c.y, c.y)))}; }},
    {"transpose", transpose_rule},
    {"unsqueeze", same_shape},
};
// Piecewise constant, or of no real values: nothing flows back.
constexpr std::string_view kFlat[] = {
    "and", "argmax", "argmin", "bit_and", "bit_not",  "bit_or", "bit_xor", "ceil",
    "eq",  "floor",  "ge",     "gt",      "is_inf",   "is_nan", "le",      "lt",
    "not", "or",     "range",  "round",   "shape_of", "sign",   "trunc",   "xor"};

const Rule* rule_of(std::string_view op) {
  for (const Row& row : kRules)
    if (row.op == op) return &row.rule;
  return nullptr;
}

bool flat(std::string_view op) {
  return std::find(std::begin(kFlat), std::end(kFlat), op) != std::end(kFlat);
}

struct Flow {
  Builder& b;
  const Values& ends;
  std::map<ValueId, ValueId> gradient;  // of the values of b.graph()

  bool is_end(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return std::find(ends.begin(), ends.end(), id) != ends.end();
    });
  }

  void add(ValueId id, ValueId more) {
    const auto [at, fresh] = gradient.try_emplace(id, more);
    if (!fresh) at->second = b.add(at->second, more);
  }

  // Carries the gradients of the outputs of nodes [first, last) back to their inputs, up to the
  // ends. `needed`: what depends on an end; values beyond it do.
  void back(size_t first, size_t last, const std::vector<bool>& needed) {
    for (size_t at = last; at-- > first && b.ok();) {
      const Node node = b.graph().nodes[at];
      std::vector<ValueId> given(node.outputs.size(), kAbsent);
      bool any = false;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        auto found = node.outputs[i] == kAbsent ? gradient.end() : gradient.find(node.outputs[i]);
        if (found == gradient.end()) continue;
        given[i] = found->second;
        any = true;
      }
      if (!any || flat(node.op->name) || is_end(node)) continue;
      const bool wanted = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
        return id != kAbsent &&
               (static_cast<size_t>(id) >= needed.size() || needed[static_cast<size_t>(id)]);
      });
      if (!wanted) continue;
      if (const Rule* rule = rule_of(node.op->name)) {
        const Values x = (*rule)(Call{b, node.attrs, node.inputs, node.outputs[0], given[0]});
        for (size_t i = 0; i < x.size(); ++i)
          if (node.inputs[i] != kAbsent && x[i] != kAbsent) add(node.inputs[i], x[i]);
        continue;
      }
      through(node, given);
    }
  }

  // A composite: its decomposition, computed beside it, carries the gradient.
  void through(const Node& node, const std::vector<ValueId>& given) {
    std::vector<op::Type> types;
    for (ValueId id : node.inputs) types.push_back(id == kAbsent ? op::Type() : b.type(id));
    auto body = find_composite(node.op->name)
                    ? decompose(node, types)
                    : Result<Graph>(error(Code::kUnimplemented, "no decomposition"));
    if (!body)
      return b.fail({Code::kUnimplemented, fmt::format("{} has no gradient rule", node.op->name)});
    Values present;
    for (ValueId id : node.inputs)
      if (id != kAbsent) present.push_back(id);
    const size_t first = b.graph().nodes.size();
    const Values y = inlined(b, *body, present);
    const size_t last = b.graph().nodes.size();
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i] != kAbsent && y[i] != kAbsent) gradient[y[i]] = given[i];
    back(first, last, {});
  }
};

}  // namespace

Result<std::vector<ValueId>> gradients(Builder& b, ValueId y, const std::vector<ValueId>& xs) {
  TRY(b.status());
  const Graph& graph = b.graph();
  if (!is_float(b.dtype(y)))
    return error(Code::kInvalidArgument, "the gradient of {} is not defined", b.type(y).str());
  // What depends on the xs.
  std::vector<bool> needed(graph.values.size());
  for (ValueId x : xs) needed[static_cast<size_t>(x)] = true;
  for (const Node& node : graph.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id != kAbsent && needed[static_cast<size_t>(id)];
    });
    for (ValueId id : node.outputs)
      if (any && id != kAbsent) needed[static_cast<size_t>(id)] = true;
  }
  Flow flow{b, xs, {}};
  flow.gradient[y] = b.broadcast_to(b.scalar_like(y, 1), b.shape_of(y));
  flow.back(0, graph.nodes.size(), needed);
  std::vector<ValueId> results;
  for (ValueId x : xs) {
    auto found = flow.gradient.find(x);
    results.push_back(found == flow.gradient.end()
                          ? b.broadcast_to(b.scalar_like(x, 0), b.shape_of(x))
                          : found->second);
  }
  TRY(b.status());
  return results;
}

ValueId substituted(Builder& b, ValueId y, const std::vector<ValueId>& from,
                    const std::vector<ValueId>& to) {
  std::map<ValueId, ValueId> renamed;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != to[i]) renamed[from[i]] = to[i];
  if (renamed.empty()) return y;
  auto now = [&](ValueId id) {
    auto found = renamed.find(id);
    return found == renamed.end() ? id : found->second;
  };
  const size_t count = b.graph().nodes.size();
  for (size_t at = 0; at < count && b.ok(); ++at) {
    const Node node = b.graph().nodes[at];
    if (std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return renamed.count(id) > 0; }))
      continue;
    Values inputs;
    for (ValueId id : node.inputs) inputs.push_back(id == kAbsent ? kAbsent : now(id));
    const Values results = b.ops(node.op->name, std::move(inputs), node.attrs,
                                 static_cast<int>(node.outputs.size()), node.bodies);
    for (size_t i = 0; i < results.size(); ++i)
      if (node.outputs[i] != kAbsent &&
          std::find(from.begin(), from.end(), node.outputs[i]) == from.end())
        renamed.emplace(node.outputs[i], results[i]);
  }
  return now(y);
}

}  // namespace tessera::ir
