// Values of a graph's nodes at an index, and as straight lines along an axis.
#include <algorithm>
#include <bit>

#include "tessera/layout/graph.h"

namespace tessera::layout {
namespace {

int64_t value_at(std::span<const int64_t> values, const Ref& ref) {
  return values[static_cast<size_t>(ref.node)];
}

Affine divide(Affine x, int64_t k) {
  if (x.slope % k == 0) return {x.value / k, x.slope / k, x.length};
  return {x.value / k, 0, std::min(x.length, ceil_div(k - x.value % k, x.slope))};
}

Affine remainder(Affine x, int64_t k) {
  const int64_t slope = x.slope % k;
  if (slope == 0) return {x.value % k, 0, x.length};
  return {x.value % k, slope, std::min(x.length, ceil_div(k - x.value % k, slope))};
}

// The position inside its segment.
Affine local(const Node& node, Affine x) {
  const Segment s = node.segments[node.segment_of(x.value)];
  return {x.value - s.lo, x.slope, x.slope == 0 ? x.length : std::min(x.length, s.hi - x.value)};
}

// One argument moves by 1 over bits that the others leave 0, or nothing moves, or the line is one
// point.
Affine exclusive_or(const Node& node, std::span<const Affine> lines) {
  Affine result{0, 0, lines[static_cast<size_t>(node.args[0].node)].length};
  int64_t constant = 0;
  int64_t moving = 0;
  int movers = 0;
  bool simple = true;
  for (const Ref& arg : node.args) {
    const Affine x = lines[static_cast<size_t>(arg.node)];
    result.length = std::min(result.length, x.length);
    result.value ^= x.value;
    if (x.slope == 0) {
      constant ^= x.value;
    } else {
      moving = x.value;
      ++movers;
      simple &= x.slope == 1;
    }
  }
  if (movers == 0) return result;
  if (movers > 1 || !simple) return {result.value, 0, 1};
  if (constant == 0) return {result.value, 1, result.length};
  const int64_t block = int64_t{1} << std::countr_zero(static_cast<uint64_t>(constant));
  return {result.value, 1, std::min(result.length, block - moving % block)};
}

Affine line_of(const Node& node, std::span<const int64_t> index, int axis,
               std::span<const int64_t> extents, std::span<const Affine> lines) {
  const auto arg = [&](size_t i) { return lines[static_cast<size_t>(node.args[i].node)]; };
  const int64_t whole = extents[static_cast<size_t>(axis)] - index[static_cast<size_t>(axis)];
  switch (node.kind) {
    case NodeKind::kZero:
      return {0, 0, whole};
    case NodeKind::kLetter:
      return {index[static_cast<size_t>(node.axis)], node.axis == axis ? 1 : 0, whole};
    case NodeKind::kDiv:
      return divide(arg(0), node.by);
    case NodeKind::kMod:
      return remainder(arg(0), node.by);
    case NodeKind::kXor:
      return exclusive_or(node, lines);
    case NodeKind::kJoinMod:
      return remainder(divide(local(node, arg(0)), node.by), node.modulus);
    case NodeKind::kJoin: {
      Affine x = divide(local(node, arg(0)), node.by);
      x.value += node.bases[node.segment_of(arg(0).value)];
      return x;
    }
    case NodeKind::kMerge: {
      Affine sum{0, 0, whole};
      for (size_t i = 0; i < node.args.size(); ++i) {
        sum.value += arg(i).value * node.strides[i];
        sum.slope += arg(i).slope * node.strides[i];
        sum.length = std::min(sum.length, arg(i).length);
      }
      return sum;
    }
  }
  return {};
}

}  // namespace

int64_t Graph::evaluate_node(const Node& node, std::span<const int64_t> values) const {
  switch (node.kind) {
    case NodeKind::kZero:
      return 0;
    case NodeKind::kLetter:
      return 0;  // set by evaluate
    case NodeKind::kDiv:
      return value_at(values, node.args[0]) / node.by;
    case NodeKind::kMod:
      return value_at(values, node.args[0]) % node.by;
    case NodeKind::kJoin:
    case NodeKind::kJoinMod: {
      const int64_t position = value_at(values, node.args[0]);
      const size_t j = node.segment_of(position);
      const int64_t quotient = (position - node.segments[j].lo) / node.by;
      return node.kind == NodeKind::kJoin ? node.bases[j] + quotient : quotient % node.modulus;
    }
    case NodeKind::kXor: {
      int64_t result = 0;
      for (const Ref& arg : node.args) result ^= value_at(values, arg);
      return result;
    }
    case NodeKind::kMerge: {
      int64_t sum = 0;
      for (size_t i = 0; i < node.args.size(); ++i)
        sum += value_at(values, node.args[i]) * node.strides[i];
      return sum;
    }
  }
  return 0;
}

void Graph::evaluate(std::span<const int64_t> index, std::span<int64_t> values) const {
  for (size_t n = 0; n < nodes_.size(); ++n)
    values[n] = nodes_[n].kind == NodeKind::kLetter ? index[static_cast<size_t>(nodes_[n].axis)]
                                                    : evaluate_node(nodes_[n], values);
}

void Graph::evaluate_lines(std::span<const int64_t> index, int axis,
                           std::span<Affine> lines) const {
  for (size_t n = 0; n < nodes_.size(); ++n)
    lines[n] = line_of(nodes_[n], index, axis, extents_, lines);
}

std::vector<bool> Graph::axes_of(int node) const {
  std::vector<bool> flags(extents_.size());
  std::vector<int> open = {node};
  std::vector<bool> seen(nodes_.size());
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    if (seen[static_cast<size_t>(n)]) continue;
    seen[static_cast<size_t>(n)] = true;
    if ((*this)[n].kind == NodeKind::kLetter) flags[static_cast<size_t>((*this)[n].axis)] = true;
    for (const Ref& arg : (*this)[n].args) open.push_back(arg.node);
  }
  return flags;
}

}  // namespace tessera::layout
