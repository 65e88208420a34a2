// average_pool in f32, row-major or channels-last: row onednn.pool. Its max_pool loses NaN.
#include <algorithm>

#include "tessera/kernels/onednn/rows.h"
#include "tessera/kernels/onednn/work.h"
#include "tessera/op/window.h"

namespace tessera::kernels::onednn {
namespace {

Kind kind_of(const Problem& p) {
  return p.attrs.i("count_include_pad") != 0 ? Kind::kAveragePoolPadding : Kind::kAveragePool;
}

void fill_window(const Problem& p, const op::Window& window, const op::Ints& kernel, Spec& s,
                 Reason& why) {
  const size_t axes = kernel.size();
  std::fill_n(s.stride, 3, 1), std::fill_n(s.dilation, 3, 1), std::fill_n(s.kernel, 3, 1);
  for (size_t a = 0; a < axes; ++a) {
    const size_t i = 3 - axes + a;
    const int64_t in = p.in[0].dims[a + 2], out = p.out[0].dims[a + 2];
    const auto [begin, end] = window.pads(a, in, kernel[a]);
    const int64_t span = (kernel[a] - 1) * window.dilations[a] + 1;
    s.stride[i] = window.strides[a];
    s.dilation[i] = window.dilations[a];
    s.kernel[i] = kernel[a];
    s.pad[i] = begin;
    s.pad_end[i] = (out - 1) * s.stride[i] + span - in - begin;
    why.need(begin >= 0 && s.pad_end[i] >= 0, "windows leave elements at the end");
    why.need(s.kind != Kind::kAveragePoolPadding || s.pad_end[i] <= end,
             "the last window reaches beyond the padding");
    why.need(begin < span && s.pad_end[i] < span, "a window of padding alone");
  }
}

Reason plan(const Problem& p, Work& work) {
  Reason why;
  why.input_is(p, 0, DType::kF32) && why.output_is(p, 0, DType::kF32);
  const op::Ints kernel = p.attrs.ints("kernel");
  const size_t axes = kernel.size();
  why.need(axes >= 1 && axes <= 3 && p.in[0].dims.size() == axes + 2,
           "rank {} for {} spatial axes, need two more", p.in[0].rank(), axes);
  why.need(p.out.size() < 2 || !p.out[1].present, "indices are wanted");
  why.need(p.out[0].present && p.in[0].count() > 0 && p.out[0].count() > 0, "nothing to compute");
  if (!why.fine()) return why;
  const auto window = op::window_of(p.attrs, axes);
  if (!why.need(window.has_value(), "{}", window ? "" : window.error().message)) return why;
  Spec& s = work.spec;
  s.kind = kind_of(p);
  s.rank = p.in[0].rank();
  const auto x = place_of(p.in[0], s.rank), y = place_of(p.out[0], s.rank);
  if (!why.need(x && y, "an operand's layout is no order of its axes")) return why;
  s.x = *x, s.y = *y;
  fill_window(p, *window, kernel, s, why);
  constexpr double kItemElements = 65536;
  if (why.fine()) cut_images(work, static_cast<double>(p.in[0].count()), kItemElements);
  settle(work, why);
  return why;
}

Claim probe(const Problem& p) {
  Work work = {};
  const Reason why = plan(p, work);
  if (!why.fine()) return why.refusal();
  double taps = 1;
  for (int64_t k : work.spec.kernel) taps *= static_cast<double>(k);
  return offer(p, work, taps * static_cast<double>(p.out[0].count()), NumericClass::kReassociated);
}

constexpr Row kRows[] = {{"average_pool", "onednn.pool", probe, prepare<plan>}};

}  // namespace

std::span<const Row> pool_rows() { return kRows; }

}  // namespace tessera::kernels::onednn
