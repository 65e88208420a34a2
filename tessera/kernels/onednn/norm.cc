// layer_norm along the last axis of packed f32: row onednn.layer_norm. oneDNN's softmax loses NaN.
#include "tessera/kernels/onednn/rows.h"
#include "tessera/kernels/onednn/work.h"
#include "tessera/op/rules.h"

namespace tessera::kernels::onednn {
namespace {

Reason plan(const Problem& p, Work& work) {
  Reason why;
  const std::string text = cpu::not_packed(p, true);
  why.need(text.empty(), "{}", text);
  if (!why.fine() || !why.input_is(p, 0, DType::kF32)) return why;
  const Operand& x = p.in[0];
  const auto axis = op::normalize_axis(p.attrs.i("axis", -1), x.rank());
  why.need(axis && *axis == x.rank() - 1, "axis {} is not the last", p.attrs.i("axis", -1));
  why.need(x.count() > 0, "nothing to compute");
  for (size_t i = 1; i < p.out.size(); ++i) why.need(!p.out[i].present, "output {} is wanted", i);
  if (!why.fine()) return why;
  const int64_t cols = x.dims.back();
  for (size_t i = 1; i < p.in.size(); ++i)
    why.need(!p.has(i) || (p.in[i].count() == cols && p.in[i].dtype == DType::kF32),
             "input {} is not {} floats", i, cols);
  Spec& s = work.spec;
  s.kind = Kind::kLayerNorm;
  s.rank = 2;
  s.x = s.y = {{x.count() / cols, cols}, {cols, 1}};
  s.has_scale = p.has(1);
  s.has_bias = p.has(2);
  s.epsilon = p.attrs.f("epsilon", 1e-5);
  constexpr double kItemElements = 65536;
  if (why.fine()) cut(work, 0, static_cast<double>(x.count()), kItemElements);
  settle(work, why);
  return why;
}

Claim probe(const Problem& p) {
  Work work = {};
  const Reason why = plan(p, work);
  if (!why.fine()) return why.refusal();
  return offer(p, work, 10.0 * static_cast<double>(p.in[0].count()), NumericClass::kApproximate);
}

constexpr Row kRows[] = {{"layer_norm", "onednn.layer_norm", probe, prepare<plan>}};

}  // namespace

std::span<const Row> norm_rows() { return kRows; }

}  // namespace tessera::kernels::onednn
