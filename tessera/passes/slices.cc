#include "tessera/passes/slices.h"

#include <algorithm>

#include "tessera/op/rules.h"
#include "tessera/passes/shapes.h"

namespace tessera::passes {
namespace {

// The indices i, i + 1, ..., of a constant; nullopt if they are others.
std::optional<std::pair<int64_t, int64_t>> run_of(const op::Tensor& indices, int64_t whole) {
  if (!is_int(indices.dtype()) || indices.count() == 0) return std::nullopt;
  const int64_t first = indices.i64(0) < 0 ? indices.i64(0) + whole : indices.i64(0);
  for (int64_t i = 0; i < indices.count(); ++i) {
    const int64_t at = indices.i64(i) < 0 ? indices.i64(i) + whole : indices.i64(i);
    if (at != first + i || at < 0 || at >= whole) return std::nullopt;
  }
  return std::pair(first, indices.count());
}

bool gathered(Site& at) {
  const op::Tensor* indices = at.is("gather") ? at.constant(at.in(1)) : nullptr;
  const op::Type& type = at.type(at.in(0));
  if (!indices || !type.ranked() || at.constant(at.in(0))) return false;
  const auto axis = op::normalize_axis(at.node.attrs.i("axis"), type.rank());
  const auto whole = axis ? type.dim(*axis).constant() : std::nullopt;
  const auto run = whole ? run_of(*indices, *whole) : std::nullopt;
  if (!run) return false;
  ir::Builder& b = at.build();
  const ir::ValueId part = run->second == *whole
                               ? at.in(0)
                               : b.slice(at.in(0), *axis, run->first, run->first + run->second);
  const ir::ValueId y = reshape_to(b, part, *at.type(at.out()).shape);
  return y != ir::kAbsent && at.replace(y, "gather of a run");
}

bool of_transpose(Site& at, const Slice& s) {
  const ir::Node* inner = at.producer(at.in(0), "transpose");
  if (!inner) return false;
  const op::Ints perm = inner->attrs.ints("perm");
  ir::Builder& b = at.build({inner});
  const ir::ValueId part =
      b.slice(inner->inputs[0], perm[static_cast<size_t>(s.axis)], s.first, s.first + s.size);
  return at.replace(b.transpose(part, perm), "slice of transpose");
}

// The sliced axis is the outermost of those that one axis of x became.
bool of_reshape(Site& at, const Slice& s) {
  const ir::Node* inner = at.producer(at.in(0), "reshape");
  const op::Type& type = at.type(at.in(0));
  if (!inner || !at.type(inner->inputs[0]).ranked() || s.whole == 1) return false;
  const auto groups = axis_groups(*at.type(inner->inputs[0]).shape, *type.shape);
  if (!groups) return false;
  for (const AxisGroup& g : *groups) {
    if (g.to.front() != s.axis || g.from.size() != 1) continue;
    int64_t run = 1;  // elements of x's axis per place of the sliced one
    for (size_t k = 1; k < g.to.size(); ++k) {
      const auto size = type.dim(g.to[k]).constant();
      if (!size) return false;
      run *= *size;
    }
    ir::Builder& b = at.build({inner});
    const ir::ValueId part =
        b.slice(inner->inputs[0], g.from[0], s.first * run, (s.first + s.size) * run);
    const ir::ValueId y = reshape_to(b, part, *at.type(at.out()).shape);
    return y != ir::kAbsent && at.replace(y, "slice of reshape");
  }
  return false;
}

bool of_concat(Site& at, const Slice& s) {
  const ir::Node* inner = at.producer(at.in(0), "concat");
  if (!inner) return false;
  const auto axis = op::normalize_axis(inner->attrs.i("axis"), at.type(at.in(0)).rank());
  if (!axis || *axis != s.axis) return false;
  int64_t first = 0;
  for (ir::ValueId id : inner->inputs) {
    const auto size = at.type(id).ranked() ? at.type(id).dim(s.axis).constant() : std::nullopt;
    if (!size) return false;
    if (first == s.first && *size == s.size) {
      at.build({inner});
      return at.replace(id, "slice of concat");
    }
    first += *size;
  }
  return false;
}

bool rule(Site& at) {
  if (at.node.outputs.size() != 1 || at.value(at.out()).contents || !at.type(at.out()).ranked())
    return false;
  if (at.is("gather")) return gathered(at);
  if (!at.is("slice")) return false;
  const auto s = slice_of(at, at.node);
  return s && (of_transpose(at, *s) || of_reshape(at, *s) || of_concat(at, *s));
}

}  // namespace

std::optional<Slice> slice_of(const Site& at, const ir::Node& node) {
  const op::Type &from = at.type(node.inputs[0]), &to = at.type(node.outputs[0]);
  auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : ir::kAbsent; };
  const auto starts = at.ints(input(1));
  if (!from.ranked() || !to.ranked() || !starts || starts->size() != 1) return std::nullopt;
  op::Ints axes{0}, steps{1};
  if (input(3) != ir::kAbsent) {
    const auto given = at.ints(input(3));
    if (!given) return std::nullopt;
    axes = *given;
  }
  if (input(4) != ir::kAbsent) {
    const auto given = at.ints(input(4));
    if (!given) return std::nullopt;
    steps = *given;
  }
  const auto axis = op::normalize_axis(axes[0], from.rank());
  if (!axis || steps[0] != 1) return std::nullopt;
  const auto whole = from.dim(*axis).constant(), size = to.dim(*axis).constant();
  if (!whole || !size) return std::nullopt;
  const int64_t start = (*starts)[0] < 0 ? (*starts)[0] + *whole : (*starts)[0];
  return Slice{*axis, std::clamp<int64_t>(start, 0, *whole), *size, *whole};
}

void slices(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
