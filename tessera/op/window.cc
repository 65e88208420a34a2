#include "tessera/op/window.h"

#include <algorithm>

#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

// Keeps products of two attributes and a size within 64 bits.
constexpr int64_t kMaxAttribute = int64_t{1} << 30;

Result<Ints> per_axis(const Attrs& attrs, std::string_view name, size_t axes, int64_t otherwise,
                      int64_t lowest) {
  Ints values = attrs.ints(name);
  if (values.empty()) values.assign(axes, otherwise);
  if (values.size() != axes)
    return error(Code::kInvalidArgument, "{} has {} numbers, need {}", name, values.size(), axes);
  for (int64_t v : values)
    if (v < lowest || v > kMaxAttribute)
      return error(Code::kInvalidArgument, "{} holds {}, must be in [{}, {}]", name, v, lowest,
                   kMaxAttribute);
  return values;
}

int64_t div_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

}  // namespace

Result<Window> window_of(const Attrs& attrs, size_t axes) {
  Window w;
  TRY_ASSIGN(w.strides, per_axis(attrs, "strides", axes, 1, 1));
  TRY_ASSIGN(w.dilations, per_axis(attrs, "dilations", axes, 1, 1));
  TRY_ASSIGN(w.pads_begin, per_axis(attrs, "pads_begin", axes, 0, -kMaxAttribute));
  TRY_ASSIGN(w.pads_end, per_axis(attrs, "pads_end", axes, 0, -kMaxAttribute));
  w.ceil_mode = attrs.i("ceil_mode") != 0;
  const std::string auto_pad = attrs.s("auto_pad");
  w.same = !auto_pad.empty();
  w.same_lower = auto_pad == "same_lower";
  if (w.same && !w.same_lower && auto_pad != "same_upper")
    return error(Code::kInvalidArgument, "auto_pad is '{}', must be same_upper or same_lower",
                 auto_pad);
  return w;
}

std::vector<AttrDef> window_attrs(std::vector<AttrDef> more) {
  for (std::string_view name : {"strides", "dilations", "pads_begin", "pads_end"})
    more.push_back({name, AttrKind::kInts});
  more.push_back({"ceil_mode", AttrKind::kInt});
  more.push_back({"auto_pad", AttrKind::kString});
  return more;
}

Expr Window::count(size_t axis, const Expr& size, const Expr& kernel) const {
  if (same) return ceil_div(size, Expr(strides[axis]));
  return window_size(size, pads_begin[axis], pads_end[axis], kernel, strides[axis], dilations[axis],
                     ceil_mode);
}

std::pair<int64_t, int64_t> Window::pads(size_t axis, int64_t size, int64_t kernel) const {
  if (!same) return {pads_begin[axis], pads_end[axis]};
  const int64_t windows = div_up(size, strides[axis]);
  const int64_t total = std::max<int64_t>(
      0, (windows - 1) * strides[axis] + (kernel - 1) * dilations[axis] + 1 - size);
  const int64_t less = total / 2;
  return same_lower ? std::pair(total - less, less) : std::pair(less, total - less);
}

Result<Shape> windows_shape(const InferContext& context, const Window& window, const Shape& input,
                            const Shape& kernel) {
  if (input.size() < kernel.size())
    return context.fail("the input {} has fewer axes than the kernel {}", to_string(input),
                        to_string(kernel));
  const size_t lead = input.size() - kernel.size();
  Shape shape(input.begin(), input.begin() + static_cast<int64_t>(lead));
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (kernel[i].is_constant() &&
        (*kernel[i].constant() < 1 || *kernel[i].constant() > kMaxAttribute))
      return context.fail("kernel size {} is {}, must be in [1, {}]", i, *kernel[i].constant(),
                          kMaxAttribute);
    const Expr n = window.count(i, input[lead + i], kernel[i]);
    if (n.is_constant() && *n.constant() < 0)
      return context.fail(
          "axis {}: size {} with padding {} and {} is smaller than the kernel, {} of dilation {}",
          lead + i, input[lead + i].str(), window.pads_begin[i], window.pads_end[i],
          kernel[i].str(), window.dilations[i]);
    shape.push_back(n);
  }
  return shape;
}

Expr unwindowed(const Window& w, size_t axis, const Expr& windows, const Expr& kernel,
                int64_t output_padding) {
  return Expr(w.strides[axis]) * (windows - Expr(1)) +
         Expr(w.dilations[axis]) * (kernel - Expr(1)) +
         Expr(1 + output_padding - w.pads_begin[axis] - w.pads_end[axis]);
}

Result<Window> transposed_window(const Attrs& attrs, const Dims& windows, const Dims& kernel) {
  TRY_ASSIGN(Window w, window_of(attrs, kernel.size()));
  const bool upper = w.same && !w.same_lower;
  w.same = false;
  if (!attrs.has("output_shape")) return w;
  const Ints shape = attrs.ints("output_shape");
  TRY_ASSIGN(const Ints extra, per_axis(attrs, "output_padding", kernel.size(), 0, 0));
  if (shape.size() != kernel.size())
    return error(Code::kInvalidArgument, "output_shape has {} numbers, need {}", shape.size(),
                 kernel.size());
  w.pads_begin.assign(kernel.size(), 0);
  w.pads_end = w.pads_begin;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto natural = unwindowed(w, i, Expr(windows[i]), Expr(kernel[i]), extra[i]).constant();
    if (!natural || shape[i] < 0 || shape[i] > kMaxAttribute || *natural > kMaxAttribute)
      return error(Code::kInvalidArgument, "output_shape {}, natural size {}: must be in [0, {}]",
                   shape[i], natural.value_or(-1), kMaxAttribute);
    const int64_t total = *natural - shape[i],
                  half = total >= 0 ? total / 2 : -((1 - total) / 2);  // rounded down
    w.pads_begin[i] = upper ? half : total - half;
    w.pads_end[i] = upper ? total - half : half;
  }
  return w;
}

std::pair<int64_t, int64_t> inside(int64_t count, int64_t step, int64_t offset, int64_t size) {
  const int64_t first = std::clamp<int64_t>(div_up(-offset, step), 0, count);
  const int64_t last = std::clamp<int64_t>(div_up(size - offset, step), first, count);
  return {first, last};
}

}  // namespace tessera::op
