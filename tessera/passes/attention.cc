#include "tessera/passes/attention.h"

#include <algorithm>

#include "tessera/op/rules.h"
#include "tessera/passes/algebra.h"
#include "tessera/passes/constants.h"
#include "tessera/passes/past.h"
#include "tessera/passes/positions.h"
#include "tessera/passes/shapes.h"

namespace tessera::passes {
namespace {

// Masks of constants that are added up while compiling, in bytes.
constexpr int64_t kLargestMask = 1 << 24;

// q or k behind views, without the numbers that it is multiplied by.
struct Operand {
  ir::ValueId id = ir::kAbsent;
  double scale = 1;
  std::vector<const ir::Node*> views;  // from the outside in; to be done again on `id`
};

// What the scores are made of.
struct Scores {
  const ir::Node* product = nullptr;  // dot(q, k)
  double scale = 1, cap = 0;
  bool causal = false;
  std::vector<ir::ValueId> terms;     // added
  ir::ValueId visible = ir::kAbsent;  // a condition
  bool negated = false;               // ... which is true where nothing is visible
  ir::ValueId behind = ir::kAbsent;   // one of these, where it is causal behind a past
  std::vector<const ir::Node*> nodes;
  std::string refusal;
};

bool is_view(std::string_view op) {
  return op == "reshape" || op == "transpose" || op == "unsqueeze" || op == "squeeze";
}

// Views may stand above the product with a number; more views are followed than are there usually.
Operand unscaled(const Site& at, ir::ValueId id) {
  Operand result{id, 1, {}};
  std::vector<const ir::Node*> views;
  for (int steps = 0; steps < 8; ++steps) {
    const ir::Node* node = at.producer(id);
    if (!node || at.uses(id) != 1) break;
    const std::string_view op = node->op->name;
    if (is_view(op)) {
      views.push_back(node);
      id = node->inputs[0];
      continue;
    }
    if (op != "mul" && op != "div") break;
    const bool right = number(at, node->inputs[1]).has_value();
    if (!right && op == "div") break;
    const auto factor = number(at, node->inputs[right ? 1 : 0]);
    const ir::ValueId inner = node->inputs[right ? 0 : 1];
    if (!factor || *factor == 0 || !(at.type(inner) == at.type(id))) break;
    result.scale *= op == "mul" ? *factor : 1 / *factor;
    id = inner;
    result.id = inner;
    result.views = views;
  }
  return result;
}

bool swaps_last_two(const op::Ints& perm) {
  for (size_t a = 0; a < perm.size(); ++a) {
    const size_t to = a + 2 < perm.size() ? a : 2 * perm.size() - 3 - a;
    if (perm[a] != static_cast<int64_t>(to)) return false;
  }
  return perm.size() >= 2;
}

// Takes a swap of the last two axes off the operand, if it ends with one.
bool unswap(const Site& at, Operand& operand) {
  const ir::Node* last =
      operand.views.empty() ? at.producer(operand.id, "transpose") : operand.views.front();
  if (!last || last->op->name != "transpose" || !swaps_last_two(last->attrs.ints("perm")))
    return false;
  if (operand.views.empty())
    operand.id = last->inputs[0];
  else
    operand.views.erase(operand.views.begin());
  return true;
}

ir::ValueId viewed(ir::Builder& b, const Operand& operand) {
  ir::ValueId id = operand.id;
  for (size_t k = operand.views.size(); k-- > 0;) {
    std::vector<ir::ValueId> inputs = operand.views[k]->inputs;
    inputs[0] = id;
    id = b.op(operand.views[k]->op->name, std::move(inputs), operand.views[k]->attrs);
  }
  return id;
}

// reshape(broadcast_to(x as (B, Hk, 1, T, E), (B, Hk, G, T, E)), (B, Hk G, T, E)): x (B, Hk, T, E).
ir::ValueId before_groups(const Site& at, ir::ValueId id) {
  const ir::Node* merge = at.producer(id, "reshape");
  const ir::Node* repeat = merge ? at.producer(merge->inputs[0], "broadcast_to") : nullptr;
  if (!repeat) return ir::kAbsent;
  const op::Type &from = at.type(repeat->inputs[0]), &to = at.type(merge->inputs[0]),
                 &merged = at.type(id);
  if (!from.ranked() || from.rank() != 5 || to.rank() != 5 || !merged.ranked() ||
      merged.rank() != 4 || from.dim(2).constant() != 1)
    return ir::kAbsent;
  for (int a : {0, 1, 3, 4})
    if (!(from.dim(a) == to.dim(a))) return ir::kAbsent;
  if (!(merged.dim(0) == to.dim(0)) || !(merged.dim(1) == to.dim(1) * to.dim(2)) ||
      !(merged.dim(2) == to.dim(3)) || !(merged.dim(3) == to.dim(4)))
    return ir::kAbsent;
  const ir::Node* split = at.producer(repeat->inputs[0]);
  if (!split || (split->op->name != "reshape" && split->op->name != "unsqueeze"))
    return repeat->inputs[0];
  const op::Type& x = at.type(split->inputs[0]);
  const op::Shape wanted{from.dim(0), from.dim(1), from.dim(3), from.dim(4)};
  return x.ranked() && *x.shape == wanted ? split->inputs[0] : repeat->inputs[0];
}

// A term of the sum, or a scale, cap or condition in front of the product.
class Reader {
 public:
  Reader(const Site& at, const op::Expr& S, const op::Expr& T) : at_(at), S_(S), T_(T) {}

  std::optional<Scores> read(ir::ValueId id) {
    bool capped = false;
    for (int steps = 0; steps < 12; ++steps) {
      const ir::Node* node = at_.producer(id);
      if (!node) return std::nullopt;
      if (at_.uses(id) != 1) return refuse("the scores are read elsewhere, too");
      found_.nodes.push_back(node);
      const std::string_view op = node->op->name;
      if (op == "dot") {
        found_.product = node;
        return found_;
      }
      ir::ValueId next = ir::kAbsent;
      if (op == "add" && scale_so_far() && !capped)
        next = term(*node);
      else if (op == "select" && scale_so_far() && !capped)
        next = condition(*node);
      else if (op == "mul" && !capped && (next = cap(*node)) != ir::kAbsent)
        capped = true;
      else if (op == "mul" || op == "div")
        next = factor(*node);
      if (next == ir::kAbsent) return found_.refusal.empty() ? std::nullopt : std::optional(found_);
      id = next;
    }
    return std::nullopt;
  }

 private:
  std::optional<Scores> refuse(std::string why) {
    found_.refusal = std::move(why);
    return found_;
  }
  bool scale_so_far() const { return found_.scale == 1; }
  bool leads_on(ir::ValueId id) const {
    for (int steps = 0; steps < 8; ++steps) {
      const ir::Node* node = at_.producer(id);
      if (!node || at_.uses(id) != 1) return false;
      if (node->op->name == "dot") return at_.type(id).ranked() && at_.type(id).rank() >= 3;
      if (node->op->name != "add" && node->op->name != "mul" && node->op->name != "div" &&
          node->op->name != "select" && node->op->name != "tanh")
        return false;
      const bool select = node->op->name == "select";
      ir::ValueId next = ir::kAbsent;
      for (size_t i = select ? 1 : 0; i < node->inputs.size(); ++i)
        if (!at_.constant(node->inputs[i]) && at_.type(node->inputs[i]) == at_.type(id) &&
            (next == ir::kAbsent || at_.uses(node->inputs[i]) == 1))
          next = node->inputs[i];
      if (next == ir::kAbsent) return false;
      id = next;
    }
    return false;
  }

  ir::ValueId term(const ir::Node& sum) {
    for (size_t side : {0, 1}) {
      const ir::ValueId scores = sum.inputs[side], mask = sum.inputs[1 - side];
      if (!(at_.type(scores) == at_.type(sum.outputs[0])) || !leads_on(scores)) continue;
      const Visible seen = visible_under(at_, mask, S_, T_);
      if (seen == Visible::kAll) return scores;
      if (seen == Visible::kCausal && S_ == T_) {
        found_.causal = true;
        return scores;
      }
      if (!fits(mask)) return ir::kAbsent;
      if (seen == Visible::kCausal) found_.behind = mask;
      found_.terms.push_back(mask);
      return scores;
    }
    return ir::kAbsent;
  }

  ir::ValueId condition(const ir::Node& select) {
    for (bool negated : {false, true}) {
      const ir::ValueId scores = select.inputs[negated ? 2 : 1];
      const auto hidden = number(at_, select.inputs[negated ? 1 : 2]);
      if (!hidden || !(at_.type(scores) == at_.type(select.outputs[0])) || !leads_on(scores))
        continue;
      const Visible seen = negated ? Visible::kOther : visible_by(at_, select.inputs[0], S_, T_);
      if (seen == Visible::kAll) return scores;
      if (seen == Visible::kCausal && S_ == T_ && hides(at_.type(scores).dtype, *hidden)) {
        found_.causal = true;
        return scores;
      }
      // A row that hides everything is NaN by -inf, and the mean by any other number.
      if (!std::isinf(*hidden) || *hidden > 0) {
        found_.refusal = fmt::format("hides by {}, need -inf", *hidden);
        return ir::kAbsent;
      }
      if (found_.visible != ir::kAbsent || !fits(select.inputs[0])) return ir::kAbsent;
      if (seen == Visible::kCausal) found_.behind = select.inputs[0];
      found_.visible = select.inputs[0];
      found_.negated = negated;
      return scores;
    }
    return ir::kAbsent;
  }

  // A mask of the operator: as many columns as keys.
  bool fits(ir::ValueId mask) {
    const op::Type& type = at_.type(mask);
    const bool fine =
        type.ranked() && type.rank() >= 1 && type.rank() <= 4 && type.dim(type.rank() - 1) == T_;
    if (!fine)
      found_.refusal = fmt::format("the mask is {}, need {} columns", type.str(), T_.str());
    return fine;
  }

  // c tanh(x / c): x / c
  ir::ValueId cap(const ir::Node& product) {
    for (size_t side : {0, 1}) {
      const ir::Node* tanh = at_.producer(product.inputs[side], "tanh");
      const auto c = number(at_, product.inputs[1 - side]);
      if (!tanh || !c || *c <= 0 || at_.uses(product.inputs[side]) != 1 || !scale_so_far())
        continue;
      found_.nodes.push_back(tanh);
      found_.cap = *c;
      found_.scale = *c;  // what follows holds x / c
      return tanh->inputs[0];
    }
    return ir::kAbsent;
  }

  ir::ValueId factor(const ir::Node& node) {
    const bool division = node.op->name == "div";
    for (size_t side : {1, 0}) {
      if (side == 0 && division) break;
      const auto c = number(at_, node.inputs[side]);
      if (!c || *c == 0 || !(at_.type(node.inputs[1 - side]) == at_.type(node.outputs[0])))
        continue;
      found_.scale *= division ? 1 / *c : *c;
      return node.inputs[1 - side];
    }
    return ir::kAbsent;
  }

  const Site& at_;
  const op::Expr S_, T_;
  Scores found_;
};

// The sum of the terms as one mask; kAbsent if there is none.
ir::ValueId joined_mask(const Site& at, ir::Builder& b, const Scores& scores) {
  ir::ValueId mask = ir::kAbsent;
  std::optional<op::Tensor> fixed;
  for (ir::ValueId term : scores.terms) {
    const op::Tensor* t = at.constant(term);
    if (t && !fixed) {
      fixed = *t;
      continue;
    }
    const auto sum = t ? broadcast_sum(*fixed, *t, kLargestMask) : std::nullopt;
    if (sum)
      fixed = *sum;
    else
      mask = mask == ir::kAbsent ? term : b.add(mask, term);
  }
  if (!fixed) return mask;
  const ir::ValueId c = b.constant(*std::move(fixed));
  return mask == ir::kAbsent ? c : b.add(mask, c);
}

struct Found {
  Scores scores;
  Operand q, k;
  ir::ValueId v = ir::kAbsent;
};

std::optional<Found> find(Site& at) {
  if (!at.is("dot") || at.node.attrs.has("accumulate") || at.node.attrs.i("transpose_a") != 0 ||
      at.node.attrs.i("transpose_b") != 0)
    return std::nullopt;
  const ir::Node* softmax = at.producer(at.in(0), "softmax");
  const op::Type &p = at.type(at.in(0)), &v = at.type(at.in(1)), &y = at.type(at.out());
  if (!softmax || !p.ranked() || (p.rank() != 4 && p.rank() != 3) || !v.ranked() ||
      v.rank() != p.rank() || !y.ranked() || !is_float(p.dtype))
    return std::nullopt;
  const auto axis = softmax->attrs.i("axis", -1);
  if (axis != -1 && axis != p.rank() - 1) return std::nullopt;
  if (at.uses(at.in(0)) != 1) {
    at.miss("the probabilities are read elsewhere, too");
    return std::nullopt;
  }
  auto scores = Reader(at, p.dim(p.rank() - 2), p.dim(p.rank() - 1)).read(softmax->inputs[0]);
  if (!scores) return std::nullopt;
  if (scores->refusal.empty() && scores->visible != ir::kAbsent && !scores->terms.empty())
    scores->refusal = "a condition and a sum";
  if (!scores->refusal.empty()) {
    at.miss(scores->refusal, scores->nodes);
    return std::nullopt;
  }
  const ir::Node& product = *scores->product;
  if (product.attrs.has("accumulate") || product.attrs.i("transpose_a") != 0) return std::nullopt;
  scores->nodes.push_back(softmax);
  Found found{*std::move(scores), unscaled(at, product.inputs[0]), unscaled(at, product.inputs[1]),
              at.in(1)};
  const op::Type &q = at.type(product.inputs[0]), &k = at.type(product.inputs[1]);
  if (!q.ranked() || !k.ranked() || q.rank() != p.rank() || k.rank() != p.rank())
    return std::nullopt;
  for (int a = 0; a + 2 < p.rank(); ++a)
    if (!(q.dim(a) == p.dim(a)) || !(k.dim(a) == p.dim(a)) || !(v.dim(a) == p.dim(a)))
      return std::nullopt;
  return found;
}

// (H, S, E) as (1, H, S, E)
ir::ValueId batched(ir::Builder& b, ir::ValueId id) {
  if (!b.ok() || b.rank(id) != 3) return id;
  op::Shape shape = *b.type(id).shape;
  shape.insert(shape.begin(), op::Expr(1));
  return reshape_to(b, id, shape);
}

// Keys and values in two parts, the second of as many rows as there are queries. Null: not so.
struct Parts {
  const ir::Node *k = nullptr, *v = nullptr;
};
Parts parts_of(const Site& at, const Scores& scores, ir::ValueId k, ir::ValueId v) {
  const Parts parts{joined_parts(at.graph(), k), joined_parts(at.graph(), v)};
  const op::Type& type = at.type(scores.product->outputs[0]);
  const bool fits = parts.k && parts.v &&
                    at.type(parts.k->inputs[0]).dim(2) == at.type(parts.v->inputs[0]).dim(2) &&
                    at.type(parts.k->inputs[1]).dim(2) == type.dim(type.rank() - 2);
  return fits ? parts : Parts{};
}

bool rule(Site& at) {
  auto found = find(at);
  if (!found) return false;
  Scores& s = found->scores;
  ir::Builder& b = at.build(s.nodes);
  Operand keys = found->k;
  const bool rows = s.product->attrs.i("transpose_b") != 0 || unswap(at, keys);
  const ir::ValueId few_k = rows && keys.views.empty() ? before_groups(at, keys.id) : ir::kAbsent,
                    few_v = before_groups(at, found->v);
  const bool grouped = few_k != ir::kAbsent && few_v != ir::kAbsent;
  ir::ValueId v = grouped ? few_v : found->v;
  ir::ValueId k = grouped ? few_k : viewed(b, keys);
  if (!rows) {
    op::Ints swap;
    for (int64_t a = 0; a < b.rank(k); ++a) swap.push_back(a);
    std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
    k = b.transpose(k, std::move(swap));
  }
  const Parts parts = s.behind != ir::kAbsent && b.ok() ? parts_of(at, s, k, v) : Parts{};
  if (parts.k) {
    s.causal = true;
    std::erase(s.terms, s.behind);
    if (s.visible == s.behind) s.visible = ir::kAbsent;
    k = parts.k->inputs[1];
    v = parts.v->inputs[1];
  }
  op::Attrs attrs{{"scale", s.scale * found->q.scale * found->k.scale},
                  {"causal", int64_t{s.causal}}};
  if (s.cap > 0) attrs.set("softcap", s.cap);
  ir::ValueId mask = joined_mask(at, b, s);
  if (s.visible != ir::kAbsent) mask = s.negated ? b.unary("not", s.visible) : s.visible;
  std::vector<ir::ValueId> inputs{batched(b, viewed(b, found->q)), batched(b, k), batched(b, v),
                                  mask};
  if (parts.k) inputs.insert(inputs.end(), {parts.k->inputs[0], parts.v->inputs[0]});
  const ir::ValueId y = b.op("attention", std::move(inputs), std::move(attrs));
  const ir::ValueId shaped = b.ok() && b.rank(y) != at.type(at.out()).rank()
                                 ? reshape_to(b, y, *at.type(at.out()).shape)
                                 : y;
  return shaped != ir::kAbsent &&
         at.replace(shaped,
                    fmt::format("attention{}{}{}", s.causal ? ", causal" : "",
                                mask == ir::kAbsent ? "" : ", masked", grouped ? ", grouped" : ""));
}

}  // namespace

void attention(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
