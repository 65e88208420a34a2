// Windows and convolutions. N, C: batch and channels; M: channels of the result; G: groups.
#include "tessera/op/rules.h"
#include "tessera/op/window.h"

namespace tessera::op {
namespace {

using enum OpClass;
using enum AttrKind;

// window(x, fill?): the last axes of x, one per number of `kernel`, become windows; the taps are
// new axes at the end: (lead..., spatial...) -> (lead..., windows..., kernel...). Padding reads as
// `fill`, a scalar (absent: 0).
Result<std::vector<Type>> window_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const Ints taps = c.attrs.ints("kernel");
  const Shape kernel(taps.begin(), taps.end());
  TRY_ASSIGN(Window window, window_of(c.attrs, kernel.size()));
  if (c.has(1) && c.in(1).dtype != x.dtype)
    return c.fail("types {} and {} differ", name_of(x.dtype), name_of(c.in(1).dtype));
  if (!x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  TRY_ASSIGN(Shape shape, windows_shape(c, window, *x.shape, kernel));
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

Status check_bias(const InferContext& c, const Expr& channels) {
  if (!c.has(2)) return {};
  const Type& bias = c.in(2);
  if (bias.dtype != c.in(0).dtype)
    return c.fail("the bias has type {}, need {}", name_of(bias.dtype), name_of(c.in(0).dtype));
  if (bias.ranked() && (bias.rank() != 1 || (bias.dim(0).is_constant() && channels.is_constant() &&
                                             !(bias.dim(0) == channels))))
    return c.fail("the bias is {}, need one number for each of {} channels", bias.str(),
                  channels.str());
  return {};
}

// conv(x, w, bias?): (N, C, spatial...), (M, C/G, kernel...), (M) -> (N, M, windows...). `compute`
// and `compute_forced` as for dot.
Result<std::vector<Type>> conv_rule(const InferContext& c) {
  const Type &x = c.in(0), &w = c.in(1);
  if (x.dtype != w.dtype)
    return c.fail("types {} and {} differ", name_of(x.dtype), name_of(w.dtype));
  if (!w.ranked() && !x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  const int rank = w.ranked() ? w.rank() : x.rank();
  if (rank < 3) return c.fail("needs rank 3 or more, got {} and {}", x.str(), w.str());
  if (!w.ranked() || !x.ranked())
    return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(rank)))};
  if (x.rank() != rank) return c.fail("ranks of {} and {} differ", x.str(), w.str());
  const int64_t groups = c.attrs.i("groups", 1);
  if (groups < 1) return c.fail("groups is {}", groups);
  if (!x.dim(1).is_constant() || !w.dim(1).is_constant()) {
    // checked when the sizes are known
  } else if (int64_t channels; __builtin_mul_overflow(*w.dim(1).constant(), groups, &channels) ||
                               *x.dim(1).constant() != channels) {
    return c.fail("{} has {} channels, {} with {} groups takes {}", x.str(), x.dim(1).str(),
                  w.str(), groups, channels);
  }
  if (w.dim(0).is_constant() && *w.dim(0).constant() % groups != 0)
    return c.fail("{} channels do not divide into {} groups", w.dim(0).str(), groups);
  TRY(check_bias(c, w.dim(0)));
  const Shape kernel(w.shape->begin() + 2, w.shape->end());
  TRY_ASSIGN(Window window, window_of(c.attrs, kernel.size()));
  TRY_ASSIGN(Shape shape, windows_shape(c, window, *x.shape, kernel));
  shape[1] = w.dim(0);
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

// conv_transpose(x, w, bias?): (N, C, windows...), (C, M/G, kernel...), (M) -> (N, M, size...).
// Adds, for each tap, x times w to where conv's windows would read; output_shape, where given,
// overrides the pads.
Result<std::vector<Type>> conv_transpose_rule(const InferContext& c) {
  const Type &x = c.in(0), &w = c.in(1);
  if (x.dtype != w.dtype)
    return c.fail("types {} and {} differ", name_of(x.dtype), name_of(w.dtype));
  if (!w.ranked() && !x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  const int rank = w.ranked() ? w.rank() : x.rank();
  if (rank < 3) return c.fail("needs rank 3 or more, got {} and {}", x.str(), w.str());
  if (!w.ranked() || !x.ranked())
    return std::vector<Type>{Type::tensor(x.dtype, c.fresh_shape(static_cast<size_t>(rank)))};
  const int64_t groups = c.attrs.i("groups", 1);
  if (x.rank() != rank) return c.fail("ranks of {} and {} differ", x.str(), w.str());
  if (groups < 1 || groups > INT32_MAX) return c.fail("groups is {}", groups);
  if (x.dim(1).is_constant() && w.dim(0).is_constant() &&
      (!(x.dim(1) == w.dim(0)) || *x.dim(1).constant() % groups != 0))
    return c.fail("{} has {} channels, {} takes {} in {} groups", x.str(), x.dim(1).str(), w.str(),
                  w.dim(0).str(), groups);
  const Expr channels = w.dim(1) * Expr(groups);
  TRY(check_bias(c, channels));
  const size_t axes = static_cast<size_t>(rank) - 2;
  TRY_ASSIGN(Window window, window_of(c.attrs, axes));
  const Ints extra = c.attrs.ints("output_padding", Ints(axes, 0)),
             given = c.attrs.ints("output_shape");
  if (extra.size() != axes || (!given.empty() && given.size() != axes))
    return c.fail("output_padding has {} numbers, output_shape {}, need {}", extra.size(),
                  given.size(), axes);
  Shape shape{x.dim(0), channels};
  for (size_t i = 0; i < axes; ++i) {
    const Expr kernel = w.dim(static_cast<int>(i) + 2);
    if (kernel.is_constant() && *kernel.constant() < 1)
      return c.fail("kernel size {} is {}", i, *kernel.constant());
    const Expr size = given.empty()
                          ? unwindowed(window, i, x.dim(static_cast<int>(i) + 2), kernel, extra[i])
                          : Expr(given[i]);
    if (size.is_constant() && *size.constant() < 0)
      return c.fail("axis {} would have size {}", i + 2, *size.constant());
    shape.push_back(size);
  }
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

Flops conv_transpose_flops(const Attrs&, std::span<const Type* const> in, std::span<const Type>) {
  const Dims w = in[1]->dims();
  return Flops(2 * element_count(in[0]->dims()).value_or(0) *
               element_count(Dims(w.begin() + 1, w.end())).value_or(0));
}

// fold(x, size): the adjoint of window, taps first: (lead..., taps, windows), both flattened, to
// (lead..., size...). Adds each element to the place that its tap of its window reads.
Result<std::vector<Type>> fold_rule(const InferContext& c) {
  const Type& x = c.in(0);
  const Ints kernel = c.attrs.ints("kernel");
  TRY_ASSIGN(Window window, window_of(c.attrs, kernel.size()));
  if (!x.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  if (x.rank() < 2) return c.fail("needs rank 2 or more, got {}", x.str());
  TRY_ASSIGN(const int64_t taps, element_count(kernel));
  if (x.dim(x.rank() - 2).is_constant() && *x.dim(x.rank() - 2).constant() != taps)
    return c.fail("axis {} of {} must have the size of the kernel, {}", x.rank() - 2, x.str(),
                  taps);
  const Contents* size = c.content(1);
  if (size && size->size() != kernel.size())
    return c.fail("{} sizes for {} axes", size->size(), kernel.size());
  Shape shape(x.shape->begin(), x.shape->end() - 2);
  Expr windows(1);
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Expr d = size ? (*size)[i] : c.fresh();
    if (d.is_constant() && *d.constant() < 0) return c.fail("size {} is {}", i, *d.constant());
    windows = windows * window.count(i, d, Expr(kernel[i]));
    shape.push_back(d);
  }
  const Expr given = x.dim(x.rank() - 1);
  if (windows.is_constant() && given.is_constant() && !(windows == given))
    return c.fail("{} has {} windows, the sizes {} have {}", x.str(), given.str(), to_string(shape),
                  windows.str());
  return std::vector<Type>{Type::tensor(x.dtype, std::move(shape))};
}

// col2im(x, image_shape, block_shape): (N, C * taps, windows) -> (N, C, image...), as fold.
Result<std::vector<Type>> col2im_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (x.ranked() && x.rank() != 3) return c.fail("needs rank 3, got {}", x.str());
  const Contents *image = c.content(1), *block = c.content(2);
  if (!image) return std::vector<Type>{Type::unranked(x.dtype)};
  if (block && block->size() != image->size())
    return c.fail("image_shape has {} numbers, block_shape {}", image->size(), block->size());
  Shape shape{x.ranked() ? x.dim(0) : c.fresh(), c.fresh()};
  if (x.ranked() && block) {
    const Expr taps = element_count(*block);
    if (taps.is_constant() &&
        (*taps.constant() < 1 ||
         (x.dim(1).is_constant() && *x.dim(1).constant() % *taps.constant() != 0)))
      return c.fail("{} channels do not divide by the block, {}", x.dim(1).str(),
                    to_string(*block));
    shape[1] = floor_div(x.dim(1), taps);
  }
  shape.insert(shape.end(), image->begin(), image->end());
  for (const Expr& d : shape)
    if (d.is_constant() && *d.constant() < 0) return c.fail("a size is {}", *d.constant());
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
      {"conv", kComposite, 2, 3, 1, 1,
       window_attrs({{"groups", kInt}, {"compute", kDType}, {"compute_forced", kInt}}), conv_rule,
       nullptr, conv_flops},
      {"conv_transpose", kComposite, 2, 3, 1, 1,
       window_attrs({{"groups", kInt}, {"output_padding", kInts}, {"output_shape", kInts}}),
       conv_transpose_rule, nullptr, conv_transpose_flops},
      {"fold", kPrimitive, 2, 2, 1, 1, window_attrs({{"kernel", kInts, true}}), fold_rule},
      {"col2im", kComposite, 3, 3, 1, 1, window_attrs({}), col2im_rule},
  };
  return rows;
}

}  // namespace tessera::op
