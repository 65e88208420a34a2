// Resizing, sampling, regions of interest, boxes.
#include "tessera/import/onnx/windows.h"

namespace tessera::import::onnx {
namespace {

std::string lower_mode(const std::string& mode) {
  return mode == "bilinear" || mode == "trilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
}

op::Floats floats_of(const op::Tensor& t) {
  op::Floats values;
  for (int64_t i = 0; i < t.count(); ++i) values.push_back(t.f64(i));
  return values;
}

// An input that is there and not known to be empty.
bool given(const NodeContext& c, size_t i) {
  if (!c.has(i)) return false;
  const op::Type& t = c.type(i);
  return !(t.ranked() && t.rank() == 1 && t.dim(0).constant() == 0);
}

// Known scales, sizes and regions become attributes, others stay inputs.
Status resize(NodeContext& c, op::Attrs attrs, size_t roi, size_t scales, size_t sizes) {
  std::vector<ValueId> in{c.in(0), kAbsent, kAbsent, kAbsent};
  const bool crop = attrs.s("coordinates") == "tf_crop_and_resize";
  if (crop && given(c, roi)) {
    if (const op::Tensor* known = c.constant(roi))
      attrs.set("roi", floats_of(*known));
    else
      in[1] = c.in(roi);
  }
  if (given(c, scales)) {
    if (const op::Tensor* known = c.constant(scales))
      attrs.set("scales", floats_of(*known));
    else
      in[2] = c.in(scales);
  }
  if (given(c, sizes)) {
    if (const auto known = c.known_ints(sizes))
      attrs.set("sizes", *known);
    else
      in[3] = c.in(sizes);
  }
  if (given(c, sizes) == (given(c, scales) || attrs.has("scales")))
    return c.fail("needs either scales or sizes");
  c.out(0, c.b.op("resize", std::move(in), std::move(attrs)));
  return {};
}

constexpr size_t kNone = SIZE_MAX / 2;

// Opset 10 has x and scales only, and samples as Upsample does.
Status resize(NodeContext& c) {
  op::Attrs attrs{{"mode", lower_mode(c.s("mode", "nearest"))}};
  if (c.opset < 11) {
    attrs.set("coordinates", std::string("asymmetric"));
    attrs.set("nearest", std::string("floor"));
    return resize(c, std::move(attrs), kNone, 1, kNone);
  }
  attrs.set("coordinates", c.s("coordinate_transformation_mode", "half_pixel"));
  attrs.set("nearest", c.s("nearest_mode", "round_prefer_floor"));
  attrs.set("cubic_a", c.f("cubic_coeff_a", -0.75));
  attrs.set("exclude_outside", c.i("exclude_outside", 0));
  attrs.set("extrapolation", c.f("extrapolation_value", 0));
  attrs.set("antialias", c.i("antialias", 0));
  attrs.set("policy", c.s("keep_aspect_ratio_policy", "stretch"));
  if (c.has_attr("axes")) attrs.set("axes", c.ints("axes"));
  return resize(c, std::move(attrs), 1, 2, 3);
}

// Version 1 has a scale for height and one for width, 7 scales as an attribute, 9 as an input.
Status upsample(NodeContext& c) {
  op::Attrs attrs{{"mode", lower_mode(c.s("mode", "nearest"))},
                  {"coordinates", std::string("asymmetric")},
                  {"nearest", std::string("floor")}};
  if (c.opset < 7)
    attrs.set("scales", op::Floats{1, 1, c.f("height_scale", 1), c.f("width_scale", 1)});
  else if (c.opset < 9)
    attrs.set("scales", c.floats("scales"));
  return resize(c, std::move(attrs), kNone, c.opset < 9 ? kNone : 1, kNone);
}

Status grid_sample(NodeContext& c) {
  const std::string mode = lower_mode(c.s("mode", "linear")),
                    padding = c.s("padding_mode", "zeros");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") return c.fail("mode is '{}'", mode);
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return c.fail("padding_mode is '{}'", padding);
  c.out(0,
        c.b.op("grid_sample", c.inputs,
               {{"mode", mode}, {"padding", padding}, {"align_corners", c.i("align_corners", 0)}}));
  return {};
}

Status affine_grid(NodeContext& c) {
  c.out(0, c.b.op("affine_grid", c.inputs, {{"align_corners", c.i("align_corners", 0)}}));
  return {};
}

// Before opset 16, coordinates are not moved by half an element.
Status roi_align(NodeContext& c) {
  const std::string mode = c.s("mode", "avg");
  if (mode != "avg" && mode != "max") return c.fail("mode is '{}'", mode);
  const bool half =
      c.opset >= 16 && c.s("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  c.out(0, c.b.op("roi_align", c.inputs,
                  {{"mode", mode},
                   {"height", c.i("output_height", 1)},
                   {"width", c.i("output_width", 1)},
                   {"samples", c.i("sampling_ratio", 0)},
                   {"scale", c.f("spatial_scale", 1)},
                   {"half_pixel", int64_t{half}}}));
  return {};
}

Status max_roi_pool(NodeContext& c) {
  const op::Ints shape = c.ints("pooled_shape");
  if (shape.size() != 2) return c.fail("pooled_shape has {} numbers, need 2", shape.size());
  c.out(0, c.b.op("max_roi_pool", c.inputs,
                  {{"height", shape[0]}, {"width", shape[1]}, {"scale", c.f("spatial_scale", 1)}}));
  return {};
}

Status max_unpool(NodeContext& c) {
  const op::Ints kernel = c.ints("kernel_shape");
  TRY_ASSIGN(op::Attrs attrs, window_attrs(c, op::Shape(kernel.begin(), kernel.end())));
  attrs.set("kernel", kernel);
  c.out(0, c.b.op("max_unpool", c.inputs, std::move(attrs)));
  return {};
}

Status deform_conv(NodeContext& c) {
  if (c.input_count() < 3) return c.fail("has {} inputs, need 3 to 5", c.input_count());
  const op::Type& w = c.type(1);
  if (!w.ranked() || w.rank() < 3)
    return c.fail("needs weights of known rank, 3 or more, got {}", w.str());
  TRY_ASSIGN(op::Attrs attrs, window_attrs(c, op::Shape(w.shape->begin() + 2, w.shape->end())));
  attrs.set("groups", c.i("group", 1));
  attrs.set("offset_groups", c.i("offset_group", 1));
  c.out(0, c.b.op("deform_conv", c.inputs, std::move(attrs)));
  return {};
}

Status non_max_suppression(NodeContext& c) {
  c.out(0, c.b.op("non_max_suppression", c.inputs, {{"centre", c.i("center_point_box", 0)}}));
  return {};
}

Status image_decoder(NodeContext& c) {
  const std::string format = c.s("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    return c.fail("pixel_format is '{}'", format);
  c.out(0, c.b.op("decode_image", c.inputs,
                  {{"format", std::string(format == "RGB"   ? "rgb"
                                          : format == "BGR" ? "bgr"
                                                            : "grey")}}));
  return {};
}

constexpr Converter kRows[] = {
    {"", "AffineGrid", affine_grid},
    {"", "DeformConv", deform_conv},
    {"", "GridSample", grid_sample},
    {"", "ImageDecoder", image_decoder},
    {"", "MaxRoiPool", max_roi_pool},
    {"", "MaxUnpool", max_unpool},
    {"", "NonMaxSuppression", non_max_suppression},
    {"", "Resize", resize},
    {"", "RoiAlign", roi_align},
    {"", "Upsample", upsample},
};

}  // namespace

std::span<const Converter> image_converters() { return kRows; }

}  // namespace tessera::import::onnx
