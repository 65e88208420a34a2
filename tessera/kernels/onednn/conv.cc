// conv(x, w, bias?) in f32: rows onednn.conv, conv_pointwise, conv_depthwise and conv_grouped on
// channels-last operands, conv_plain on row-major ones: apart, since their speeds are.
#include <algorithm>

#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/onednn/rows.h"
#include "tessera/kernels/onednn/work.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::onednn {
namespace {

using cpu::ConvShape;

// Row-major; and channels-last: one group and several taps, one tap, one channel to a group, more.
enum class Class { kPlain, kDense, kPointwise, kDepthwise, kGrouped };
constexpr std::string_view kNeeds[] = {"row-major", "channels-last, one group and several taps",
                                       "channels-last, one group and one tap",
                                       "channels-last, a channel in and out for each group",
                                       "channels-last and groups of several channels"};
Class class_of(const Problem& p, const ConvShape& s) {
  if (!op::is_channels_last(p.in[0])) return Class::kPlain;
  if (s.G > 1) return s.C == 1 && s.M == 1 ? Class::kDepthwise : Class::kGrouped;
  return cpu::product(s.kernel) == 1 ? Class::kPointwise : Class::kDense;
}

// Channels of wider groups are filled up to whole vectors.
double flops_of(const Problem& p, const ConvShape& s) {
  constexpr int64_t kVector = 16;
  const double flops = cpu::conv_flops(p, s);
  if (s.G == 1 || (s.C == 1 && s.M == 1)) return flops;
  const auto filled = [](int64_t n) {
    return static_cast<double>(cpu::ceil_div(n, kVector) * kVector) / static_cast<double>(n);
  };
  return flops * filled(s.C) * filled(s.M);
}

void fill_window(const ConvShape& s, Spec& spec) {
  for (size_t i = 0; i < 3; ++i) {
    const int64_t span = (s.kernel[i] - 1) * s.dilation[i] + 1;
    spec.stride[i] = s.stride[i];
    spec.dilation[i] = s.dilation[i];
    spec.pad[i] = s.pad[i];
    spec.pad_end[i] = (s.out[i] - 1) * s.stride[i] + span - s.in[i] - s.pad[i];
    spec.kernel[i] = s.kernel[i];
  }
}

// w (g m, c, taps...) as (g, m, c, taps...).
Place grouped(const Place& w, int64_t rank, int64_t groups) {
  Place split = {};
  std::copy(w.dims, w.dims + rank, split.dims + 1);
  std::copy(w.strides, w.strides + rank, split.strides + 1);
  split.dims[0] = groups;
  split.dims[1] = w.dims[0] / groups;
  split.strides[0] = split.dims[1] * w.strides[0];
  return split;
}

Reason plan(const Problem& p, Class wanted, ConvShape& shape, Work& work) {
  Reason why = cpu::check_conv(p, shape);
  if (!why.fine()) return why;
  why.need(class_of(p, shape) == wanted, "need {}", kNeeds[static_cast<size_t>(wanted)]);
  why.need(p.in[1].constant, "the weights are not constant");
  why.need(p.in[0].count() > 0 && p.out[0].count() > 0 && p.in[1].count() > 0,
           "nothing to compute");
  if (!why.fine()) return why;
  Spec& s = work.spec;
  s.kind = Kind::kConv;
  s.rank = p.in[0].rank();
  const auto x = place_of(p.in[0], s.rank), w = place_of(p.in[1], s.rank),
             y = place_of(p.out[0], s.rank);
  if (!why.need(x && w && y, "an operand's layout is no order of its axes")) return why;
  s.x = *x, s.y = *y;
  s.w = shape.G > 1 ? grouped(*w, s.rank, shape.G) : *w;
  s.weights_rank = s.rank + (shape.G > 1);
  s.any_weights = 1;
  s.has_bias = p.has(2);
  if (s.has_bias)
    why.need(p.in[2].strides.empty() || p.in[2].strides == Dims{1}, "the bias is strided");
  fill_window(shape, s);
  for (int64_t end : s.pad_end) why.need(end >= 0, "the last window leaves {} elements", -end);
  for (int64_t begin : s.pad) why.need(begin >= 0, "negative padding");
  add_steps(p, work, why);
  if (!why.fine()) return why;
  constexpr double kItemFlops = 1e7;
  cut_images(work, cpu::conv_flops(p, shape), kItemFlops);
  settle(work, why);
  return why;
}

template <Class kClass>
Claim probe(const Problem& p) {
  ConvShape shape{};
  Work work = {};
  const Reason why = plan(p, kClass, shape, work);
  if (!why.fine()) return why.refusal();
  Claim c = offer(p, work, flops_of(p, shape), NumericClass::kReassociated);
  if (kClass == Class::kPlain) c.efficiency *= 0.2;  // by products of rows that it gathers
  return c;
}

template <Class kClass>
Reason plan_of(const Problem& p, Work& work) {
  ConvShape shape{};
  return plan(p, kClass, shape, work);
}

template <Class kClass>
constexpr Row row(std::string_view name) {
  return {"conv", name, probe<kClass>, prepare<plan_of<kClass>>, pack<plan_of<kClass>>, true};
}
constexpr Row kRows[] = {row<Class::kPlain>("onednn.conv_plain"), row<Class::kDense>("onednn.conv"),
                         row<Class::kPointwise>("onednn.conv_pointwise"),
                         row<Class::kDepthwise>("onednn.conv_depthwise"),
                         row<Class::kGrouped>("onednn.conv_grouped")};

}  // namespace

std::span<const Row> conv_rows() { return kRows; }

}  // namespace tessera::kernels::onednn
