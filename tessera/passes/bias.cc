#include "tessera/passes/bias.h"

#include <functional>

#include "tessera/passes/constants.h"

namespace tessera::passes {
namespace {

// y + c, or y - c.
struct Term {
  ir::ValueId y = ir::kAbsent;
  const op::Tensor* c = nullptr;
  double sign = 1;
};

std::optional<Term> term_of(const Site& at, const ir::Node& node) {
  const bool minus = node.op->name == "sub";
  if (node.op->name != "add" && !minus) return std::nullopt;
  for (size_t side : {1, 0}) {
    if (side == 0 && minus) break;
    const op::Tensor* c = at.constant(node.inputs[side]);
    if (c && is_float(c->dtype()) && !at.constant(node.inputs[1 - side]))
      return Term{node.inputs[1 - side], c, minus ? -1.0 : 1.0};
  }
  return std::nullopt;
}

bool absorb(Site& at, const ir::Node& conv, const Term& term) {
  if (at.uses(term.y) != 1)
    return at.miss(fmt::format("the result of {} is read elsewhere, too", conv.op->name));
  const op::Type &w = at.type(conv.inputs[1]), &y = at.type(term.y);
  if (!y.ranked() || !y.dim(1).is_constant()) return at.miss("the number of channels is unknown");
  const auto offsets = along_axis(*term.c, y.rank(), 1, *y.dim(1).constant());
  if (!offsets) return at.miss("the sum differs within a channel");
  const bool biased = conv.inputs.size() > 2 && conv.inputs[2] != ir::kAbsent;
  const op::Tensor* own = biased ? at.constant(conv.inputs[2]) : nullptr;
  if (biased && !own) return at.miss("the bias is no constant");
  auto bias = op::Tensor::make(w.dtype, {static_cast<int64_t>(offsets->size())});
  if (!bias) return false;
  for (int64_t i = 0; i < bias->count(); ++i)
    bias->set_f64(i, (own ? own->f64(i) : 0) + term.sign * (*offsets)[static_cast<size_t>(i)]);
  ir::Builder& b = at.build({&conv});
  return at.replace(
      b.op(conv.op->name, {conv.inputs[0], conv.inputs[1], b.constant(*std::move(bias))},
           conv.attrs),
      fmt::format("{} {}", conv.op->name, at.node.op->name));
}

bool join(Site& at, const ir::Node& inner, const Term& term) {
  const auto first = at.uses(term.y) == 1 ? term_of(at, inner) : std::nullopt;
  if (!first) return false;
  const auto c = combined(*first->c, *term.c,
                          [&](double a, double b) { return first->sign * a + term.sign * b; });
  if (!c) return false;
  ir::Builder& b = at.build({&inner});
  return at.replace(b.add(first->y, b.constant(*c)), "two terms");
}

bool rule(Site& at) {
  const auto term = term_of(at, at.node);
  if (!term) return false;
  if (const ir::Node* y = at.producer(term->y)) {
    if (y->op->name == "conv" || y->op->name == "conv_transpose") return absorb(at, *y, *term);
    if (join(at, *y, *term)) return true;
  }
  if (term->sign > 0) return false;
  const auto negated =
      combined(*term->c, op::Tensor::scalar(term->c->dtype(), -1.0), std::multiplies<double>());
  if (!negated) return false;
  ir::Builder& b = at.build();
  return at.replace(b.add(term->y, b.constant(*negated)), "difference");
}

}  // namespace

void bias(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
