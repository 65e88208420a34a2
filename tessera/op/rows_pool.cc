// Pooling: a reduction of windows.
#include "tessera/op/rules.h"
#include "tessera/op/window.h"

namespace tessera::op {
namespace {

using enum OpClass;
using enum AttrKind;

// pool(x): (lead..., spatial...) -> (lead..., windows...); as many spatial axes as numbers in
// `kernel`.
Result<std::vector<Type>> pool_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const Ints taps = c.attrs.ints("kernel");
  TRY_ASSIGN(Window window, window_of(c.attrs, taps.size()));
  if (!x.ranked()) return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(taps.size() + 2))};
  TRY_ASSIGN(Shape shape, windows_shape(c, window, *x.shape, Shape(taps.begin(), taps.end())));
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

// max_pool yields, on demand, where each maximum (the first of equals) lies in the flattened input,
// row-major, or, with column_major, first spatial axis fastest within each (n, c).
Result<std::vector<Type>> max_pool_rule(const InferContext& c) {
  TRY_ASSIGN(std::vector<Type> types, pool_rule(c));
  types.push_back(Type::tensor(DType::kI64, *types[0].shape));
  return types;
}

// (N, C, spatial...) -> (N, C, 1...)
Result<std::vector<Type>> global_rule(const InferContext& c) {
  Type y = c.in(0);
  if (!y.ranked()) return std::vector<Type>{y};
  if (y.rank() < 2) return c.fail("needs rank 2 or more, got {}", y.str());
  for (int i = 2; i < y.rank(); ++i) (*y.shape)[static_cast<size_t>(i)] = Expr(1);
  return std::vector<Type>{y};
}

Flops pool_flops(const Attrs& attrs, std::span<const Type* const>, std::span<const Type> out) {
  return Flops(element_count(out[0].dims()).value_or(0) *
               element_count(attrs.ints("kernel")).value_or(0));
}
Flops global_flops(const Attrs&, std::span<const Type* const> in, std::span<const Type>) {
  return Flops(element_count(in[0]->dims()).value_or(0));
}

}  // namespace

std::span<const OpDef> pool_rows() {
  static const std::vector<OpDef> rows{
      {"max_pool", kComposite, 1, 1, 1, 2,
       window_attrs({{"kernel", kInts, true}, {"column_major", kInt}}), max_pool_rule, nullptr,
       pool_flops},
      // count_include_pad: padding counts as elements that are 0; what ceil_mode adds beyond it
      // does not count.
      {"average_pool", kComposite, 1, 1, 1, 1,
       window_attrs({{"kernel", kInts, true}, {"count_include_pad", kInt}}), pool_rule, nullptr,
       pool_flops},
      // (sum |x|^p)^(1/p)
      {"lp_pool", kComposite, 1, 1, 1, 1, window_attrs({{"kernel", kInts, true}, {"p", kFloat}}),
       pool_rule, nullptr, pool_flops},
      {"global_average_pool", kComposite, 1, 1, 1, 1, {}, global_rule, nullptr, global_flops},
      {"global_max_pool", kComposite, 1, 1, 1, 1, {}, global_rule, nullptr, global_flops},
      {"global_lp_pool",
       kComposite,
       1,
       1,
       1,
       1,
       {{"p", kFloat}},
       global_rule,
       nullptr,
       global_flops},
  };
  return rows;
}

}  // namespace tessera::op
