#include "tessera/passes/layouts.h"

#include "tessera/layout/layout.h"

namespace tessera::passes {

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
