#include "tessera/passes/shapes.h"

#include <algorithm>

namespace tessera::passes {
namespace {

bool one(const op::Expr& e) { return e.constant() == 1; }

std::vector<int> wide_axes(const op::Shape& shape) {
  std::vector<int> axes;
  for (size_t a = 0; a < shape.size(); ++a)
    if (!one(shape[a])) axes.push_back(static_cast<int>(a));
  return axes;
}

bool empty(const op::Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](auto& e) { return e.constant() == 0; });
}

}  // namespace

std::optional<std::vector<AxisGroup>> axis_groups(const op::Shape& from, const op::Shape& to) {
  if (empty(from) || empty(to)) return std::nullopt;
  const std::vector<int> a = wide_axes(from), b = wide_axes(to);
  std::vector<AxisGroup> groups;
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    // The shortest run of each side with the same product.
    bool found = false;
    op::Expr left(1);
    for (size_t p = i; p < a.size() && !found; ++p) {
      left = left * from[static_cast<size_t>(a[p])];
      op::Expr right(1);
      for (size_t q = j; q < b.size() && !found; ++q) {
        right = right * to[static_cast<size_t>(b[q])];
        if (!(left == right)) continue;
        found = true;
        groups.push_back({{a.begin() + static_cast<std::ptrdiff_t>(i),
                           a.begin() + static_cast<std::ptrdiff_t>(p + 1)},
                          {b.begin() + static_cast<std::ptrdiff_t>(j),
                           b.begin() + static_cast<std::ptrdiff_t>(q + 1)}});
        i = p + 1;
        j = q + 1;
      }
    }
    if (!found) return std::nullopt;
  }
  if (i < a.size() || j < b.size()) return std::nullopt;
  return groups;
}

ir::ValueId reshape_to(ir::Builder& b, ir::ValueId x, const op::Shape& shape) {
  if (!b.ok()) return ir::kAbsent;
  const op::Type& type = b.type(x);
  if (type.ranked() && *type.shape == shape) return x;
  std::vector<int64_t> sizes;
  bool zero = false, open = false;
  for (const op::Expr& d : shape) zero = zero || d.constant() == 0;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (const auto size = shape[a].constant()) {
      sizes.push_back(*size);
    } else if (!zero && type.ranked() && a < type.shape->size() && (*type.shape)[a] == shape[a]) {
      sizes.push_back(0);  // copies the input's size
    } else if (!zero && !open) {
      sizes.push_back(-1);
      open = true;
    } else {
      return ir::kAbsent;
    }
  }
  return b.op("reshape", {x, b.ints(sizes)}, {{"zero_is_zero", int64_t{zero}}});
}

op::Shape permuted(const op::Shape& shape, const op::Ints& perm) {
  op::Shape result;
  for (int64_t p : perm) result.push_back(shape[static_cast<size_t>(p)]);
  return result;
}

op::Ints inverse(const op::Ints& perm) {
  op::Ints result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return result;
}

bool moves_ones_only(const op::Shape& shape, const op::Ints& perm) {
  int64_t last = -1;
  for (int64_t p : perm) {
    if (one(shape[static_cast<size_t>(p)])) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

int common_tail(const op::Shape& a, const op::Shape& b) {
  int count = 0;
  while (count < static_cast<int>(std::min(a.size(), b.size())) &&
         a[a.size() - 1 - static_cast<size_t>(count)] ==
             b[b.size() - 1 - static_cast<size_t>(count)])
    ++count;
  return count;
}

}  // namespace tessera::passes
