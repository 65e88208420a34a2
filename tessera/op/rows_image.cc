// Operators that sample images. N, C: batch and channels; R: regions of interest.
#include "tessera/op/resize.h"
#include "tessera/op/rules.h"
#include "tessera/op/window.h"

namespace tessera::op {
namespace {

using enum OpClass;
using enum AttrKind;

std::vector<Type> only(DType dtype, Shape shape) { return {Type::tensor(dtype, std::move(shape))}; }

// resize(x, roi?, scales?, sizes?): attributes roi, scales and sizes stand for inputs that are
// known. Scales, sizes and roi (all begins, then all ends) are per axis of `axes` (absent: all
// axes).
Result<std::vector<Type>> resize_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.ranked()) return std::vector<Type>{x};
  std::vector<int> axes;
  for (int64_t a : c.attrs.has("axes") ? c.attrs.ints("axes") : Ints{}) {
    auto axis = normalize_axis(a, x.rank());
    if (!axis) return error(std::move(axis).error().at(c.op));
    axes.push_back(*axis);
  }
  if (!c.attrs.has("axes"))
    for (int a = 0; a < x.rank(); ++a) axes.push_back(a);
  const Tensor* scales = c.has(2) ? c.constants[2] : nullptr;
  Floats known_scales = c.attrs.floats("scales");
  if (scales)
    for (int64_t i = 0; i < scales->count(); ++i) known_scales.push_back(scales->f64(i));
  std::optional<Contents> sizes;
  if (c.has(3) && c.content(3)) sizes = *c.content(3);
  if (c.attrs.has("sizes")) {
    const Ints given = c.attrs.ints("sizes");
    sizes = Contents(given.begin(), given.end());
  }
  if ((sizes && sizes->size() != axes.size()) ||
      (!known_scales.empty() && known_scales.size() != axes.size()))
    return c.fail("{} scales and {} sizes for {} axes", known_scales.size(),
                  sizes ? sizes->size() : 0, axes.size());
  Shape shape = *x.shape;
  const bool stretch = c.attrs.s("policy", "stretch") == "stretch";
  if (sizes && !stretch && x.is_static() &&
      std::all_of(sizes->begin(), sizes->end(), [](auto& e) { return e.is_constant(); })) {
    Ints numbers;
    for (const Expr& e : *sizes) numbers.push_back(*e.constant());
    const Tensor wanted = Tensor::of_i64(numbers);
    auto resized = resize_axes(c.attrs, x.dims(), nullptr, nullptr, &wanted);
    if (!resized) return error(std::move(resized).error().at(c.op));
    for (const ResizeAxis& axis : *resized) shape[static_cast<size_t>(axis.axis)] = Expr(axis.out);
    return only(x.dtype, std::move(shape));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr& d = shape[static_cast<size_t>(axes[i])];
    std::optional<Expr> size;
    if (sizes && stretch) size = (*sizes)[i];
    if (!known_scales.empty()) {
      size = scaled_size(d, known_scales[i]);
      if (!size && d.is_constant())
        return c.fail("scale {} is {}, of size {}", i, known_scales[i], d.str());
    }
    if (size && size->is_constant() && *size->constant() < 0)
      return c.fail("size {} is {}", i, *size->constant());
    d = size ? *size : c.fresh();
  }
  return only(x.dtype, std::move(shape));
}

// grid_sample(x, grid): (N, C, size...), (N, out..., axes) -> (N, C, out...)
Result<std::vector<Type>> grid_sample_rule(const InferContext& c) {
  const Type &x = c.in(0), &grid = c.in(1);
  if (!x.ranked() || !grid.ranked()) return std::vector<Type>{Type::unranked(x.dtype)};
  if (x.rank() < 3 || grid.rank() != x.rank())
    return c.fail("ranks of {} and {} must be equal, 3 or more", x.str(), grid.str());
  const Expr& axes = grid.dim(grid.rank() - 1);
  if (axes.is_constant() && *axes.constant() != x.rank() - 2)
    return c.fail("the grid {} has {} coordinates, need {}", grid.str(), axes.str(), x.rank() - 2);
  if (x.dim(0).is_constant() && grid.dim(0).is_constant() && !(x.dim(0) == grid.dim(0)))
    return c.fail("batches of {} and {} differ", x.str(), grid.str());
  Shape shape{x.dim(0), x.dim(1)};
  shape.insert(shape.end(), grid.shape->begin() + 1, grid.shape->end() - 1);
  return only(x.dtype, std::move(shape));
}

// affine_grid(theta, size): (N, axes, axes + 1), the sizes (N, C, out...) -> (N, out..., axes)
Result<std::vector<Type>> affine_grid_rule(const InferContext& c) {
  const Type &theta = c.in(0), &size = c.in(1);
  if (!theta.ranked()) return std::vector<Type>{theta};
  if (theta.rank() != 3) return c.fail("theta is {}, need rank 3", theta.str());
  std::optional<int64_t> axes = theta.dim(1).constant();
  if (!axes && size.ranked() && size.rank() == 1 && size.dim(0).is_constant())
    axes = *size.dim(0).constant() - 2;
  if (!axes) return std::vector<Type>{Type::unranked(theta.dtype)};
  if (*axes < 1 || (theta.dim(2).is_constant() && *theta.dim(2).constant() != *axes + 1))
    return c.fail("theta is {}, need (N, axes, axes + 1)", theta.str());
  const Contents* known = c.content(1);
  if (known && known->size() != static_cast<size_t>(*axes) + 2)
    return c.fail("{} sizes for {} axes, need 2 more", known->size(), *axes);
  Shape shape{theta.dim(0)};
  for (int64_t i = 0; i < *axes; ++i) {
    const Expr d = known ? (*known)[static_cast<size_t>(i) + 2] : c.fresh();
    if (d.is_constant() && *d.constant() < 0) return c.fail("size {} is {}", i + 2, d.str());
    shape.push_back(d);
  }
  shape.push_back(Expr(*axes));
  return only(theta.dtype, std::move(shape));
}

// x (N, C, H, W) and R regions of `columns` numbers -> (R, C, height, width)
template <int kColumns>
Result<std::vector<Type>> roi_rule(const InferContext& c) {
  const Type &x = c.in(0), &rois = c.in(1);
  const int64_t height = c.attrs.i("height", 1), width = c.attrs.i("width", 1);
  if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
    return c.fail("the output would be {} by {}", height, width);
  if (x.ranked() && x.rank() != 4) return c.fail("needs rank 4, got {}", x.str());
  if (rois.ranked() &&
      (rois.rank() != 2 || (rois.dim(1).is_constant() && *rois.dim(1).constant() != kColumns)))
    return c.fail("regions are {}, need (R, {})", rois.str(), kColumns);
  if (c.has(2) && c.in(2).ranked() &&
      (c.in(2).rank() != 1 || (rois.ranked() && rois.dim(0).is_constant() &&
                               c.in(2).dim(0).is_constant() && !(rois.dim(0) == c.in(2).dim(0)))))
    return c.fail("batch indices are {}, regions {}", c.in(2).str(), rois.str());
  return only(x.dtype, {rois.ranked() ? rois.dim(0) : c.fresh(), x.ranked() ? x.dim(1) : c.fresh(),
                        Expr(height), Expr(width)});
}

// max_unpool(x, indices, output_shape?): each element goes to its index in a flattened (N, C,
// natural size...); with output_shape, that is the corner of zeros of that shape.
Result<std::vector<Type>> max_unpool_rule(const InferContext& c) {
  const Type &x = c.in(0), &indices = c.in(1);
  const Ints kernel = c.attrs.ints("kernel");
  TRY_ASSIGN(const Window window, window_of(c.attrs, kernel.size()));
  if (x.ranked() && x.rank() != static_cast<int>(kernel.size()) + 2)
    return c.fail("the input is {}, kernel has {} numbers", x.str(), kernel.size());
  if (x.is_static() && indices.is_static() && x.dims() != indices.dims())
    return c.fail("{} has indices {}", x.str(), indices.str());
  if (c.has(2)) {
    if (const Contents* shape = c.content(2)) {
      if (shape->size() != kernel.size() + 2)
        return c.fail("output_shape has {} numbers, need {}", shape->size(), kernel.size() + 2);
      for (const Expr& d : *shape)
        if (d.is_constant() && *d.constant() < 0) return c.fail("output_shape holds {}", d.str());
      return only(x.dtype, *shape);
    }
    return only(x.dtype, c.fresh_shape(kernel.size() + 2));
  }
  if (!x.ranked()) return only(x.dtype, c.fresh_shape(kernel.size() + 2));
  Shape shape{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < kernel.size(); ++i) {
    shape.push_back(unwindowed(window, i, x.dim(static_cast<int>(i) + 2), Expr(kernel[i]), 0));
    if (shape.back().is_constant() && *shape.back().constant() < 0)
      return c.fail("axis {} would have size {}", i + 2, shape.back().str());
  }
  return only(x.dtype, std::move(shape));
}

// deform_conv(x, w, offset, bias?, mask?): conv whose taps are moved by offset (N, O*k*axes,
// windows...) and weighted by mask (N, O*k, windows...), O: offset groups.
Result<std::vector<Type>> deform_conv_rule(const InferContext& c) {
  const std::vector<const Type*> inputs{c.inputs[0], c.inputs[1], c.has(3) ? c.inputs[3] : nullptr};
  const std::vector<const Contents*> contents(3);
  const std::vector<const Tensor*> constants(3);
  const InferContext plain{c.op, c.attrs, inputs, contents, constants, {}, c.fresh};
  TRY_ASSIGN(std::vector<Type> types, find("conv")->infer(plain));
  if (c.attrs.i("offset_groups", 1) < 1)
    return c.fail("offset_groups is {}", c.attrs.i("offset_groups", 1));
  return types;
}

// non_max_suppression(boxes (N, B, 4), scores (N, classes, B), most?, iou?, score?) -> (selected,
// 3): batch, class, box
Result<std::vector<Type>> non_max_suppression_rule(const InferContext& c) {
  const Type &boxes = c.in(0), &scores = c.in(1);
  if ((boxes.ranked() && boxes.rank() != 3) || (scores.ranked() && scores.rank() != 3))
    return c.fail("needs rank 3, got {} and {}", boxes.str(), scores.str());
  if (boxes.ranked() && boxes.dim(2).is_constant() && *boxes.dim(2).constant() != 4)
    return c.fail("boxes are {}, need 4 numbers each", boxes.str());
  return only(DType::kI64, {c.fresh(), Expr(3)});
}

// decode_image(file u8 (n)) -> u8 (height, width, channels); (0, 0, channels) for what cannot be
// decoded
Result<std::vector<Type>> decode_image_rule(const InferContext& c) {
  const Type& file = c.in(0);
  if (file.dtype != DType::kU8 || (file.ranked() && file.rank() != 1))
    return c.fail("needs u8 of rank 1, got {}", file.str());
  const std::string format = c.attrs.s("format", "rgb");
  if (format != "rgb" && format != "bgr" && format != "grey")
    return c.fail("unknown format '{}'", format);
  return only(DType::kU8, {c.fresh(), c.fresh(), Expr(format == "grey" ? 1 : 3)});
}

}  // namespace

std::span<const OpDef> image_rows() {
  static const std::vector<OpDef> rows{
      {"resize",
       kComposite,
       1,
       4,
       1,
       1,
       {{"mode", kString},
        {"coordinates", kString},
        {"nearest", kString},
        {"cubic_a", kFloat},
        {"exclude_outside", kInt},
        {"antialias", kInt},
        {"extrapolation", kFloat},
        {"policy", kString},
        {"axes", kInts},
        {"scales", kFloats},
        {"sizes", kInts},
        {"roi", kFloats}},
       resize_rule},
      // mode: nearest, linear, cubic; padding: zeros, border, reflection
      {"grid_sample",
       kComposite,
       2,
       2,
       1,
       1,
       {{"mode", kString}, {"padding", kString}, {"align_corners", kInt}},
       grid_sample_rule},
      {"affine_grid", kComposite, 2, 2, 1, 1, {{"align_corners", kInt}}, affine_grid_rule},
      {"deform_conv", kComposite, 3, 5, 1, 1,
       window_attrs({{"groups", kInt}, {"offset_groups", kInt}}), deform_conv_rule},
      // roi_align(x, rois (R, 4), batch_indices (R)); mode: avg, max; half_pixel: coordinates are
      // moved by -0.5; samples: per bin and axis, 0: as many as the bin has elements
      {"roi_align",
       kComposite,
       3,
       3,
       1,
       1,
       {{"mode", kString},
        {"height", kInt},
        {"width", kInt},
        {"samples", kInt},
        {"scale", kFloat},
        {"half_pixel", kInt}},
       roi_rule<4>},
      // max_roi_pool(x, rois (R, 5)): batch index first
      {"max_roi_pool",
       kComposite,
       2,
       2,
       1,
       1,
       {{"height", kInt}, {"width", kInt}, {"scale", kFloat}},
       roi_rule<5>},
      {"max_unpool", kComposite, 2, 3, 1, 1, window_attrs({{"kernel", kInts, true}}),
       max_unpool_rule},
      {"decode_image", kHost, 1, 1, 1, 1, {{"format", kString}}, decode_image_rule},
      {"non_max_suppression", kHost, 2, 5, 1, 1, {{"centre", kInt}}, non_max_suppression_rule},
  };
  return rows;
}

}  // namespace tessera::op
