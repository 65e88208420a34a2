#include "tessera/passes/pad.h"

#include <algorithm>
#include <cmath>

#include "tessera/op/rules.h"
#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

struct Padding {
  op::Ints begin, end;  // of all axes
  double value = 0;
};

// A pad by a constant with known amounts, none of which crops.
std::optional<Padding> padding_of(const Site& at, const ir::Node& node) {
  if (node.attrs.s("mode", "constant") != "constant") return std::nullopt;
  const op::Type& type = at.type(node.inputs[0]);
  auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : ir::kAbsent; };
  const auto pads = at.ints(node.inputs[1]);
  if (!pads || !type.ranked()) return std::nullopt;
  Padding p{op::Ints(type.shape->size()), op::Ints(type.shape->size())};
  op::Ints axes;
  for (int a = 0; a < type.rank(); ++a) axes.push_back(a);
  if (input(3) != ir::kAbsent) {
    const auto given = at.ints(input(3));
    if (!given) return std::nullopt;
    axes = *given;
  }
  if (pads->size() != 2 * axes.size() ||
      std::any_of(pads->begin(), pads->end(), [](int64_t v) { return v < 0; }))
    return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = op::normalize_axis(axes[i], type.rank());
    if (!axis) return std::nullopt;
    p.begin[static_cast<size_t>(*axis)] += (*pads)[i];
    p.end[static_cast<size_t>(*axis)] += (*pads)[axes.size() + i];
  }
  if (input(2) == ir::kAbsent) return p;
  const auto value = number(at, input(2));
  if (!value) return std::nullopt;
  p.value = *value;
  return p;
}

bool zero(const op::Ints& list) {
  return std::all_of(list.begin(), list.end(), [](int64_t v) { return v == 0; });
}

bool absorb(Site& at) {
  const bool conv = at.is("conv"), max = at.is("max_pool"), average = at.is("average_pool");
  if (!conv && !max && !average) return false;
  const ir::Node* inner = at.producer(at.in(0), "pad");
  if (!inner) return false;
  if (at.uses(at.in(0)) != 1) return at.miss("the padded value is read elsewhere, too");
  const auto p = padding_of(at, *inner);
  if (!p) return at.miss("the amounts are unknown, crop, or do not pad with a constant");
  if (p->value != 0 && !(max && std::isinf(p->value) && p->value < 0))
    return at.miss(fmt::format("pads with {}", p->value));
  if (max && p->value == 0) return at.miss("pads with 0, which may exceed the maximum");
  if (p->begin[0] != 0 || p->begin[1] != 0 || p->end[0] != 0 || p->end[1] != 0)
    return at.miss("pads batch or channels");
  op::Attrs attrs = at.node.attrs;
  const size_t axes = p->begin.size() - 2;
  if (attrs.i("ceil_mode") != 0 || !attrs.s("auto_pad").empty() || at.node.outputs.size() > 1)
    return at.miss("the pads follow from the size");
  op::Ints begin = attrs.ints("pads_begin", op::Ints(axes, 0)),
           end = attrs.ints("pads_end", op::Ints(axes, 0));
  if (average && attrs.i("count_include_pad") == 0) {
    if (!zero(begin) || !zero(end)) return at.miss("own padding does not count, the other does");
    attrs.set("count_include_pad", int64_t{1});
  }
  if (begin.size() != axes || end.size() != axes) return false;
  for (size_t i = 0; i < axes; ++i) {
    begin[i] += p->begin[i + 2];
    end[i] += p->end[i + 2];
  }
  attrs.set("pads_begin", std::move(begin));
  attrs.set("pads_end", std::move(end));
  std::vector<ir::ValueId> inputs = at.node.inputs;
  inputs[0] = inner->inputs[0];
  ir::Builder& b = at.build({inner});
  return at.replace(b.op(at.node.op->name, std::move(inputs), std::move(attrs)),
                    fmt::format("pad {}", at.node.op->name));
}

bool join(Site& at) {
  if (!at.is("pad")) return false;
  const ir::Node* inner = at.producer(at.in(0), "pad");
  if (!inner || at.uses(at.in(0)) != 1) return false;
  const auto first = padding_of(at, *inner), second = padding_of(at, at.node);
  if (!first || !second || first->value != second->value) return false;
  op::Ints pads = first->begin;
  pads.insert(pads.end(), first->end.begin(), first->end.end());
  for (size_t i = 0; i < second->begin.size(); ++i) {
    pads[i] += second->begin[i];
    pads[second->begin.size() + i] += second->end[i];
  }
  ir::Builder& b = at.build({inner});
  return at.replace(b.op("pad", {inner->inputs[0], b.ints(pads), at.in(2)}, at.node.attrs),
                    "two pads");
}

}  // namespace

void pad(Rewriter& rewriter) {
  rewriter.walk([](Site& at) { return absorb(at) || join(at); });
}

}  // namespace tessera::passes
