// conv(x, w, bias?) in f32, row-major or channels-last: rows onednn.conv, and apart, since their
// speeds are, onednn.conv_pointwise and onednn.conv_grouped.
#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/onednn/rows.h"
#include "tessera/kernels/onednn/work.h"

namespace tessera::kernels::onednn {
namespace {

using cpu::ConvShape;

enum class Class { kPlain, kPointwise, kGrouped };
Class class_of(const ConvShape& s) {
  return s.G > 1                       ? Class::kGrouped
         : cpu::product(s.kernel) == 1 ? Class::kPointwise
                                       : Class::kPlain;
}

void fill_window(const Problem& p, const ConvShape& s, Spec& spec) {
  (void)p;
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
  static constexpr std::string_view kNames[] = {"one group and several taps", "one tap", "groups"};
  why.need(class_of(shape) == wanted, "need {}", kNames[static_cast<size_t>(wanted)]);
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
  fill_window(p, shape, s);
  for (int64_t end : s.pad_end) why.need(end >= 0, "the last window leaves {} elements", -end);
  for (int64_t begin : s.pad) why.need(begin >= 0, "negative padding");
  add_steps(p, work, why);
  if (!why.fine()) return why;
  constexpr double kItemFlops = 2e7;
  cut(work, s.x.dims[0] > 1 ? 0 : 2, cpu::conv_flops(p, shape), kItemFlops);
  settle(work, why);
  return why;
}

template <Class kClass>
Claim probe(const Problem& p) {
  ConvShape shape{};
  Work work = {};
  const Reason why = plan(p, kClass, shape, work);
  if (!why.fine()) return why.refusal();
  return offer(p, work, cpu::conv_flops(p, shape), NumericClass::kReassociated);
}

template <Class kClass>
Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  ConvShape shape{};
  Work work = {};
  const Reason why = plan(p, kClass, shape, work);
  if (!why.fine()) return error(Code::kInternal, "prepare without a claim: {}", why.text());
  return launches(p, work);
}

template <Class kClass>
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape shape{};
  Work work = {};
  const Reason why = plan(p, kClass, shape, work);
  if (!why.fine()) return error(Code::kInternal, "pack without a claim: {}", why.text());
  return reorder_weights(work.spec, work.weights, source, target);
}

template <Class kClass>
constexpr Row row(std::string_view name) {
  return {"conv", name, probe<kClass>, prepare<kClass>, pack<kClass>, true};
}
constexpr Row kRows[] = {row<Class::kPlain>("onednn.conv"),
                         row<Class::kPointwise>("onednn.conv_pointwise"),
                         row<Class::kGrouped>("onednn.conv_grouped")};

}  // namespace

std::span<const Row> conv_rows() { return kRows; }

}  // namespace tessera::kernels::onednn
