// Windows and convolutions. N, C: batch and channels; M: channels of the result; G: groups.
#include "tessera/op/rules.h"
#include "tessera/op/window.h"

namespace tessera::op {
namespace {

using enum OpClass;
using enum AttrKind;

// window(x, fill?): the last axes of x, one per number of `kernel`, become windows; the taps are new axes at the end:
// (lead..., spatial...) -> (lead..., windows..., kernel...). Padding reads as `fill`, a scalar (absent: 0).
Result<std::vector<Type>> window_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const Ints taps = c.attrs.ints("kernel");
  const Shape kernel(taps.begin(), taps.end());
  TRY_ASSIGN(Window window, window_of(c.attrs, kernel.size()));
  if (c.has(1) && c.in(1).dtype != x.dtype) return c.fail("types {} and {} differ", name_of(x.dtype), name_of(c.in(1).dtype));
  if (!x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  TRY_ASSIGN(Shape shape, windows_shape(c, window, *x.shape, kernel));
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

// conv(x, w, bias?): (N, C, spatial...), (M, C/G, kernel...), (M) -> (N, M, windows...)
Result<std::vector<Type>> conv_rule(const InferContext& c) {
  const Type &x = c.in(0), &w = c.in(1);
  if (x.dtype != w.dtype) return c.fail("types {} and {} differ", name_of(x.dtype), name_of(w.dtype));
  if (c.has(2) && c.in(2).dtype != x.dtype) return c.fail("the bias has type {}, need {}", name_of(c.in(2).dtype), name_of(x.dtype));
  if (!w.ranked() && !x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  const int rank = w.ranked() ? w.rank() : x.rank();
  if (rank < 3) return c.fail("needs rank 3 or more, got {} and {}", x.str(), w.str());
  if (!w.ranked() || !x.ranked()) return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(rank)))};
  if (x.rank() != rank) return c.fail("ranks of {} and {} differ", x.str(), w.str());
  const int64_t groups = c.attrs.i("groups", 1);
  if (groups < 1) return c.fail("groups is {}", groups);
  if (!x.dim(1).is_constant() || !w.dim(1).is_constant()) {
    // checked when the sizes are known
  } else if (int64_t channels; __builtin_mul_overflow(*w.dim(1).constant(), groups, &channels) || *x.dim(1).constant() != channels) {
    return c.fail("{} has {} channels, {} with {} groups takes {}", x.str(), x.dim(1).str(), w.str(), groups, channels);
  }
  if (w.dim(0).is_constant() && *w.dim(0).constant() % groups != 0)
    return c.fail("{} channels do not divide into {} groups", w.dim(0).str(), groups);
  if (c.has(2) && c.in(2).ranked() && (c.in(2).rank() != 1 || (c.in(2).dim(0).is_constant() && w.dim(0).is_constant() && !(c.in(2).dim(0) == w.dim(0)))))
    return c.fail("the bias is {}, need one number for each of {} channels", c.in(2).str(), w.dim(0).str());
  const Shape kernel(w.shape->begin() + 2, w.shape->end());
  TRY_ASSIGN(Window window, window_of(c.attrs, kernel.size()));
  TRY_ASSIGN(Shape shape, windows_shape(c, window, *x.shape, kernel));
  shape[1] = w.dim(0);
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

Flops conv_flops(const Attrs&, std::span<const Type* const> in, std::span<const Type> out) {
  const Dims w = in[1]->dims();
  const int64_t taps = element_count(Dims(w.begin() + 1, w.end())).value_or(0);
  return Flops(2 * element_count(out[0].dims()).value_or(0) * taps);
}

}  // namespace

std::span<const OpDef> conv_rows() {
  static const std::vector<OpDef> rows{
      {"window", kPrimitive, 1, 2, 1, 1, window_attrs({{"kernel", kInts, true}}), window_rule},
      {"conv", kComposite, 2, 3, 1, 1, window_attrs({{"groups", kInt}}), conv_rule, nullptr, conv_flops},
  };
  return rows;
}

}  // namespace tessera::op
