#include "tessera/kernels/cpu/conv_shape.h"

#include "tessera/op/layouts.h"
#include "tessera/op/window.h"

namespace tessera::kernels::cpu {

Status fill_shape(const Problem& p, ConvShape& s) {
  const Dims &x = p.in[0].dims, &w = p.in[1].dims, &y = p.anchor_result().dims;
  const size_t axes = w.size() - 2;
  TRY_ASSIGN(const op::Window window, op::window_of(p.attrs, axes));
  s.N = x[0];
  s.G = p.attrs.i("groups", 1);
  s.C = w[1];
  s.M = w[0] / s.G;
  for (size_t i = 0; i < 3; ++i) {
    s.in[i] = s.out[i] = s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
    s.pad[i] = 0;
  }
  for (size_t a = 0; a < axes; ++a) {
    const size_t i = 3 - axes + a;
    s.in[i] = x[a + 2];
    s.out[i] = y[a + 2];
    s.kernel[i] = w[a + 2];
    s.stride[i] = window.strides[a];
    s.dilation[i] = window.dilations[a];
    s.pad[i] = window.pads(a, s.in[i], s.kernel[i]).first;
  }
  return {};
}

bool is_flat(const ConvShape& s) {
  return product(s.kernel) == 1 && product(s.stride) == 1 && s.pad[0] == 0 && s.pad[1] == 0 &&
         s.pad[2] == 0 && product(s.in) == product(s.out);
}

void flatten(ConvShape& s) {
  s.in[2] = s.out[2] = s.N * product(s.out);
  s.N = s.in[0] = s.in[1] = s.out[0] = s.out[1] = 1;
}

Reason check_conv_operands(const Problem& p) {
  Reason why;
  why.input_is(p, 0, DType::kF32) && why.input_is(p, 1, DType::kF32) &&
      why.output_is(p, 0, DType::kF32);
  if (why.fine() && p.has(2)) why.input_is(p, 2, DType::kF32);
  if (why.fine())
    why.need(p.in[1].rank() >= 3 && p.in[1].rank() <= 5, "{} spatial axes, need 1 to 3",
             p.in[1].rank() - 2);
  return why;
}

Reason check_conv(const Problem& p, ConvShape& s) {
  Reason why = check_conv_operands(p);
  if (!why.fine()) return why;
  const Status filled = fill_shape(p, s);
  why.need(filled.has_value(), "{}", filled ? "" : filled.error().message);
  return why;
}

double conv_flops(const Problem& p, const ConvShape& s) {
  return 2.0 * static_cast<double>(p.anchor_result().count()) *
         static_cast<double>(product(s.kernel)) * static_cast<double>(s.C);
}

std::string not_channels_last(const Operand& o, std::string_view name, int64_t& ld) {
  const size_t rank = o.dims.size();
  if (!op::is_channels_last(o))
    return fmt::format("{} has layout '{}', need '{}'", name, o.layout,
                       op::channels_last(o.rank()));
  if (!op::element_count(o.dims))
    return fmt::format("{} has impossible sizes {}", name, op::to_string(o.dims));
  ld = o.dims[1];
  if (o.strides.empty()) return {};
  // Axes in the order of the layout, innermost first: those of extent 1 have no say.
  int64_t step = 0;
  for (size_t i = 0; i + 1 < rank; ++i) {
    const size_t a = i + 2 < rank ? rank - 1 - i : 0;
    if (o.dims[a] == 1) continue;
    if (step == 0) step = ld = o.strides[a];
    if (o.strides[a] != step)
      return fmt::format("{} is strided beyond the distance between pixels", name);
    step *= o.dims[a];
  }
  if ((o.strides[1] != 1 && o.dims[1] != 1) || ld < o.dims[1])
    return fmt::format("the channels of a pixel of {} are no neighbours", name);
  return {};
}

}  // namespace tessera::kernels::cpu
