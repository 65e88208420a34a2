#include "tessera/passes/layouts.h"

#include <algorithm>
#include <numeric>

#include "tessera/layout/layout.h"
#include "tessera/op/layouts.h"

namespace tessera::passes {

namespace {

// All axes in physical order, those of size 1 too.
std::optional<std::vector<int>> whole_order(int rank, std::string_view layout) {
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (layout.empty()) return order;
  auto parsed = layout::Layout::parse(layout);
  if (!parsed || parsed->rank() != rank || parsed->physical_rank() != rank) return std::nullopt;
  for (size_t k = 0; k < order.size(); ++k) {
    if (parsed->axes()[k].kind != layout::ExprKind::kLetter) return std::nullopt;
    order[k] = parsed->axes()[k].axis;
  }
  return order;
}

}  // namespace

std::string layout_of(const std::vector<int>& order) {
  if (std::is_sorted(order.begin(), order.end())) return {};
  const int rank = static_cast<int>(order.size());
  if (const std::string last(op::channels_last(rank)); !last.empty())
    if (whole_order(rank, last) == order) return last;
  std::string letters, axes;
  for (int a = 0; a < rank; ++a) letters += static_cast<char>('a' + a);
  for (int a : order) axes += std::string(" ") + static_cast<char>('a' + a);
  return letters + ":" + axes;
}

std::optional<std::string> reshaped(const op::Type& from, std::string_view layout,
                                    const op::Type& to) {
  if (from.rank() > 26 || to.rank() > 26) return std::nullopt;
  const auto order = whole_order(from.rank(), layout);
  if (!order) return std::nullopt;
  if (std::is_sorted(order->begin(), order->end())) return std::string();
  // Runs of axes that become runs of axes: the shortest with equal products. Axes of size 1 go
  // where they are.
  std::vector<std::vector<int>> becomes(static_cast<size_t>(from.rank()));
  std::vector<int> head(static_cast<size_t>(from.rank()), -1);  // the axis before, in its run
  int i = 0, j = 0;
  while (i < from.rank()) {
    op::Expr left = from.dim(i), right = 1;
    int p = i + 1, q = j;
    for (bool found = false; !found;) {
      right = 1;
      for (q = j; q < to.rank() && !found; ++q) {
        right = right * to.dim(q);
        found = left == right;
      }
      if (left == op::Expr(1) && !found) {
        q = j;
        found = true;
      }
      if (found) break;
      if (p == from.rank()) return std::nullopt;
      head[static_cast<size_t>(p)] = p - 1;
      left = left * from.dim(p++);
    }
    for (; j < q; ++j) becomes[static_cast<size_t>(i)].push_back(j);
    i = p;
  }
  std::vector<int>& last = becomes[static_cast<size_t>(order->back())];
  for (; j < to.rank(); ++j) {
    if (!(to.dim(j) == op::Expr(1))) return std::nullopt;
    last.push_back(j);
  }
  std::vector<int> result;
  for (size_t k = 0; k < order->size(); ++k) {
    const int axis = (*order)[k];
    if (const int before = head[static_cast<size_t>(axis)];
        before >= 0 && (k == 0 || (*order)[k - 1] != before))
      return std::nullopt;
    for (int a : becomes[static_cast<size_t>(axis)]) result.push_back(a);
  }
  return layout_of(result);
}

std::optional<std::vector<int>> physical_order(const op::Type& type, std::string_view layout) {
  if (!type.is_tensor() || !type.ranked()) return std::nullopt;
  std::vector<int> order;
  auto add = [&](int axis) {
    if (type.dim(axis).constant() != 1) order.push_back(axis);
  };
  if (layout.empty()) {
    for (int a = 0; a < type.rank(); ++a) add(a);
    return order;
  }
  auto parsed = layout::Layout::parse(layout);
  if (!parsed || parsed->rank() != type.rank()) return std::nullopt;
  for (const layout::Expr& e : parsed->axes()) {
    if (e.kind != layout::ExprKind::kLetter) return std::nullopt;
    add(e.axis);
  }
  return order;
}

}  // namespace tessera::passes
