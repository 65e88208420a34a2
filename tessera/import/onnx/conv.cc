// Convolutions.
#include "tessera/import/onnx/windows.h"
#include "tessera/op/window.h"

namespace tessera::import::onnx {
namespace {

// Kernel sizes: from kernel_shape, else from the weights (M, C/G, kernel...), which must agree.
Result<op::Shape> kernel_of(const NodeContext& c, size_t weights) {
  const op::Ints given = c.ints("kernel_shape");
  const op::Type& w = c.type(weights);
  if (!w.ranked()) {
    if (given.empty())
      return error(Code::kInvalidArgument, "{}: needs kernel_shape, or weights of known rank",
                   c.node.op_type);
    return op::Shape(given.begin(), given.end());
  }
  if (w.rank() < 3)
    return error(Code::kInvalidArgument, "{}: the weights are {}, need rank 3 or more",
                 c.node.op_type, w.str());
  const op::Shape kernel(w.shape->begin() + 2, w.shape->end());
  for (size_t i = 0; i < given.size(); ++i)
    if (given.size() != kernel.size() ||
        (kernel[i].is_constant() && *kernel[i].constant() != given[i]))
      return error(Code::kInvalidArgument, "{}: kernel_shape is {}, the weights are {}",
                   c.node.op_type, op::to_string(op::Dims(given)), w.str());
  return kernel;
}

Status conv(NodeContext& c) {
  if (c.input_count() < 2 || c.input_count() > 3)
    return c.fail("has {} inputs, need 2 or 3", c.input_count());
  TRY_ASSIGN(const op::Shape kernel, kernel_of(c, 1));
  TRY_ASSIGN(op::Attrs attrs, window_attrs(c, kernel));
  attrs.set("groups", c.i("group", 1));
  c.out(0, c.b.op("conv", {c.in(0), c.in(1), c.in(2)}, std::move(attrs)));
  return {};
}

// output_shape, or SAME's size * stride, become pads where sizes are known.
Status conv_transpose(NodeContext& c) {
  if (c.input_count() < 2 || c.input_count() > 3)
    return c.fail("has {} inputs, need 2 or 3", c.input_count());
  TRY_ASSIGN(const op::Shape kernel, kernel_of(c, 1));
  const size_t n = kernel.size();
  const op::Ints pads = c.ints("pads", op::Ints(2 * n, 0)),
                 extra = c.ints("output_padding", op::Ints(n, 0));
  const std::string auto_pad = c.s("auto_pad", "NOTSET");
  if (pads.size() != 2 * n || extra.size() != n)
    return c.fail("pads has {} numbers, output_padding {}, need {} and {}", pads.size(),
                  extra.size(), 2 * n, n);
  op::Attrs attrs{{"strides", c.ints("strides", op::Ints(n, 1))},
                  {"dilations", c.ints("dilations", op::Ints(n, 1))},
                  {"output_padding", extra},
                  {"groups", c.i("group", 1)}};
  const bool explicit_pads = auto_pad == "NOTSET";
  const auto middle = pads.begin() + static_cast<int64_t>(n);
  attrs.set("pads_begin", explicit_pads ? op::Ints(pads.begin(), middle) : op::Ints(n, 0));
  attrs.set("pads_end", explicit_pads ? op::Ints(middle, pads.end()) : op::Ints(n, 0));
  const bool upper = auto_pad == "SAME_UPPER", lower = auto_pad == "SAME_LOWER";
  if (!explicit_pads && !upper && !lower && auto_pad != "VALID")
    return c.fail("auto_pad is '{}'", auto_pad);
  op::Ints shape = c.ints("output_shape");
  if (shape.size() == n + 2)
    shape.erase(shape.begin(), shape.begin() + 2);  // some files hold batch and channels too
  op::Dims sizes, taps;
  for (size_t i = 0; i < n; ++i) {
    const op::Type& x = c.type(0);
    const auto size =
        x.ranked() && x.shape->size() == n + 2 ? (*x.shape)[i + 2].constant() : std::nullopt;
    // SAME's padding is the same for any size: one stands for all.
    if (size || shape.empty()) sizes.push_back(shape.empty() ? 1 : *size);
    if (kernel[i].is_constant()) taps.push_back(*kernel[i].constant());
  }
  if (shape.empty() && (upper || lower))
    shape = attrs.ints("strides");
  else if (shape.empty())
    sizes.clear();
  if (!shape.empty()) {
    attrs.set("output_shape", shape);
    attrs.set("auto_pad", std::string(upper ? "same_upper" : "same_lower"));
    if (sizes.size() == n && taps.size() == n) {
      auto window = op::transposed_window(attrs, sizes, taps);
      if (!window) return c.fail("{}", window.error().message);
      attrs = op::Attrs{{"strides", window->strides},       {"dilations", window->dilations},
                        {"output_padding", extra},          {"groups", c.i("group", 1)},
                        {"pads_begin", window->pads_begin}, {"pads_end", window->pads_end}};
    } else if (!c.has_attr("output_shape")) {
      return c.fail("needs weights of known size where auto_pad is {}", auto_pad);
    }
  }
  c.out(0, c.b.op("conv_transpose", {c.in(0), c.in(1), c.in(2)}, std::move(attrs)));
  return {};
}

// A number per channel, (M), so that it stands beside (M, ...) or (N, M, ...) of `rank` axes; a
// single number as it is.
ValueId beside(ir::Builder& b, ValueId v, int rank_after) {
  if (b.rank(v) != 1) return v;
  op::Ints shape(static_cast<size_t>(rank_after) + 1, 1);
  shape[0] = -1;
  return b.reshape(v, shape);
}

// conv of integers x and w with their zero points, in i32.
Result<ValueId> integer_conv(NodeContext& c, size_t x, size_t x_zero, size_t w, size_t w_zero,
                             ValueId bias) {
  if (!c.type(w).ranked())
    return error(Code::kInvalidArgument, "{}: needs weights of known rank", c.node.op_type);
  TRY_ASSIGN(const op::Shape kernel, kernel_of(c, w));
  TRY_ASSIGN(op::Attrs attrs, window_attrs(c, kernel));
  attrs.set("groups", c.i("group", 1));
  return c.b.op("conv_integer", {c.in(x), c.in(w), c.in(x_zero), c.in(w_zero), bias},
                std::move(attrs));
}

Status conv_integer(NodeContext& c) {
  if (c.input_count() < 2 || c.input_count() > 4)
    return c.fail("has {} inputs, need 2 to 4", c.input_count());
  TRY_ASSIGN(const ValueId y, integer_conv(c, 0, 2, 1, 3, kAbsent));
  c.out(0, y);
  return {};
}

// Inputs x, its scale and zero point, w, its scale and zero point, scale and zero point of y, bias.
Status qlinear_conv(NodeContext& c) {
  if (c.input_count() < 8 || c.input_count() > 9)
    return c.fail("has {} inputs, need 8 or 9", c.input_count());
  TRY_ASSIGN(const ValueId sum, integer_conv(c, 0, 2, 3, 5, c.in(8)));
  ir::Builder& b = c.b;
  auto scalar = [&](size_t i) { return b.rank(c.in(i)) == 1 ? b.reshape(c.in(i), {}) : c.in(i); };
  const ValueId scale = b.mul(scalar(1), beside(b, c.in(4), b.rank(sum) - 2));
  c.out(0, b.op("quantize", {b.mul(b.convert(sum, b.dtype(scale)), scale), scalar(6), scalar(7)},
                {{"to", c.type(7).dtype}}));
  return {};
}

// A depthwise convolution of the past state, or zeros, followed by the input; the end of that is
// the next state.
Status causal_conv(NodeContext& c) {
  if (c.input_count() < 2 || c.input_count() > 4)
    return c.fail("has {} inputs, need 2 to 4", c.input_count());
  ir::Builder& b = c.b;
  const op::Type &x = c.type(0), &w = c.type(1);
  if ((x.ranked() && x.rank() != 3) || !w.ranked() || w.rank() != 3 || !w.dim(0).is_constant() ||
      !w.dim(2).is_constant())
    return c.fail("needs an input of rank 3 and weights of rank 3 and known sizes, got {} and {}",
                  x.str(), w.str());
  const int64_t channels = *w.dim(0).constant(), state = *w.dim(2).constant() - 1;
  const ValueId padded = c.has(3) ? b.concat({c.in(3), c.in(0)}, 2)
                                  : b.op("pad", {c.in(0), b.ints({0, 0, state, 0, 0, 0})});
  ValueId y = b.op("conv", {padded, c.in(1), c.in(2)}, {{"groups", channels}});
  const std::string activation = c.s("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = b.op("silu", {y});
  else if (activation != "none")
    return c.fail("activation is '{}'", activation);
  c.out(0, y);
  if (!c.wants(1)) return {};
  const ValueId start = b.sub(b.dim(padded, 2), b.ints({state}));
  c.out(1, b.op("slice", {padded, start, b.dim(padded, 2), b.ints({2})}));
  return {};
}

Status col2im(NodeContext& c) {
  if (c.input_count() != 3) return c.fail("has {} inputs, need 3", c.input_count());
  const op::Type& block = c.type(2);
  if (!block.ranked() || block.rank() != 1 || !block.dim(0).is_constant())
    return c.fail("needs a block_shape of known length, got {}", block.str());
  TRY_ASSIGN(
      op::Attrs attrs,
      window_attrs(c, op::Shape(static_cast<size_t>(*block.dim(0).constant()), op::Expr(1))));
  c.out(0, c.b.op("col2im", c.inputs, std::move(attrs)));
  return {};
}

constexpr Converter kRows[] = {
    {"", "CausalConvWithState", causal_conv},
    {"", "Col2Im", col2im},
    {"", "Conv", conv},
    {"", "ConvInteger", conv_integer},
    {"", "ConvTranspose", conv_transpose},
    {"", "QLinearConv", qlinear_conv},
};

}  // namespace

std::span<const Converter> conv_converters() { return kRows; }

}  // namespace tessera::import::onnx
