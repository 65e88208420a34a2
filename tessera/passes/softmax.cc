#include "tessera/passes/softmax.h"

#include "tessera/op/rules.h"

namespace tessera::passes {
namespace {

// The axis of a reduction over one axis, which is kept.
std::optional<int> axis_of(const Site& at, const ir::Node& reduce, std::string_view kind) {
  const op::Type& type = at.type(reduce.inputs[0]);
  if (reduce.attrs.s("kind") != kind || reduce.attrs.i("keepdims", 1) == 0 || !type.ranked())
    return std::nullopt;
  op::Ints axes{0};
  if (reduce.inputs.size() > 1 && reduce.inputs[1] != ir::kAbsent) {
    const auto given = at.ints(reduce.inputs[1]);
    if (!given || given->size() != 1) return std::nullopt;
    axes = *given;
  } else if (type.rank() != 1) {
    return std::nullopt;
  }
  const auto axis = op::normalize_axis(axes[0], type.rank());
  return axis ? std::optional(*axis) : std::nullopt;
}

struct Shifted {
  ir::ValueId x = ir::kAbsent;
  std::vector<const ir::Node*> nodes;
};

// x - max(x) over the axis, read so many times.
std::optional<Shifted> shifted(const Site& at, ir::ValueId id, int axis, int uses) {
  const ir::Node* d = at.producer(id, "sub");
  if (!d || at.uses(id) != uses || at.uses(d->inputs[1]) != 1) return std::nullopt;
  const ir::Node* max = at.producer(d->inputs[1], "reduce");
  if (!max || max->inputs[0] != d->inputs[0] || axis_of(at, *max, "max") != axis)
    return std::nullopt;
  return Shifted{d->inputs[0], {max, d}};
}

bool replace(Site& at, std::string_view op, Shifted found, int axis) {
  ir::Builder& b = at.build(found.nodes);
  return at.replace(b.op(op, {found.x}, {{"axis", int64_t{axis}}}), std::string(op));
}

// e / sum(e)
bool quotient(Site& at) {
  const ir::Node* sum = at.producer(at.in(1), "reduce");
  const ir::Node* e = at.producer(at.in(0), "exp");
  if (!sum || !e || sum->inputs[0] != at.in(0) || at.uses(at.in(0)) != 2 || at.uses(at.in(1)) != 1)
    return false;
  const auto axis = axis_of(at, *sum, "sum");
  auto found = axis ? shifted(at, e->inputs[0], *axis, 1) : std::nullopt;
  if (!found) return false;
  found->nodes.insert(found->nodes.end(), {e, sum});
  return replace(at, "softmax", *std::move(found), *axis);
}

// d - log(sum(exp(d)))
bool difference(Site& at) {
  const ir::Node* log = at.producer(at.in(1), "log");
  const ir::Node* sum = log ? at.producer(log->inputs[0], "reduce") : nullptr;
  const ir::Node* e = sum ? at.producer(sum->inputs[0], "exp") : nullptr;
  if (!e || e->inputs[0] != at.in(0) || at.uses(at.in(1)) != 1 || at.uses(log->inputs[0]) != 1 ||
      at.uses(sum->inputs[0]) != 1)
    return false;
  const auto axis = axis_of(at, *sum, "sum");
  auto found = axis ? shifted(at, at.in(0), *axis, 2) : std::nullopt;
  if (!found) return false;
  found->nodes.insert(found->nodes.end(), {e, sum, log});
  return replace(at, "log_softmax", *std::move(found), *axis);
}

bool rule(Site& at) {
  if (at.is("div")) return quotient(at);
  return at.is("sub") && difference(at);
}

}  // namespace

void softmax(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
