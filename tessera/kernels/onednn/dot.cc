// dot(a, b) in f32: row onednn.dot. Matrices may be strided and transposed.
#include <algorithm>

#include "tessera/kernels/onednn/rows.h"
#include "tessera/kernels/onednn/work.h"

namespace tessera::kernels::onednn {
namespace {

void transpose_last(Place& p, int64_t rank) {
  std::swap(p.dims[rank - 1], p.dims[rank - 2]);
  std::swap(p.strides[rank - 1], p.strides[rank - 2]);
}

// Rows of all batches as rows of one product, where b is the same for all. Packed operands only.
void flatten(const Problem& p, Spec& s) {
  for (const Operand* o : {&p.in[0], &p.out[0]})
    if (!o->strides.empty()) return;
  if (p.in[1].rank() != 2 || p.attrs.i("transpose_a") != 0 || p.in[0].rank() != p.out[0].rank() ||
      p.fused())
    return;
  for (Place* place : {&s.x, &s.y}) {
    int64_t rows = 1;
    for (int64_t a = 0; a + 1 < s.rank; ++a) rows *= place->dims[a];
    const int64_t cols = place->dims[s.rank - 1];
    *place = {{rows, cols}, {cols, 1}};
  }
  s.w = {{s.w.dims[s.rank - 2], s.w.dims[s.rank - 1]},
         {s.w.strides[s.rank - 2], s.w.strides[s.rank - 1]}};
  s.rank = s.weights_rank = 2;
}

Reason plan(const Problem& p, Work& work) {
  Reason why;
  why.input_is(p, 0, DType::kF32) && why.input_is(p, 1, DType::kF32) &&
      why.output_is(p, 0, DType::kF32);
  if (!why.fine()) return why;
  for (const Operand* o : {&p.in[0], &p.in[1], &p.out[0]}) {
    why.need(o->rank() >= 2 && o->rank() <= kMaxAxes, "rank {}, need 2 to {}", o->rank(), kMaxAxes);
    why.need(o->layout.empty(), "layout '{}', need row-major", o->layout);
    why.need(o->count() > 0, "nothing to compute");
  }
  if (!why.fine()) return why;
  Spec& s = work.spec;
  s.kind = Kind::kDot;
  s.rank = s.weights_rank = p.out[0].rank();
  const auto a = place_of(p.in[0], s.rank), b = place_of(p.in[1], s.rank),
             y = place_of(p.out[0], s.rank);
  if (!why.need(a && b && y, "an operand's layout is no order of its axes")) return why;
  s.x = *a, s.w = *b, s.y = *y;
  if (p.attrs.i("transpose_a") != 0) transpose_last(s.x, s.rank);
  if (p.attrs.i("transpose_b") != 0) transpose_last(s.w, s.rank);
  flatten(p, s);
  s.any_weights = p.in[1].constant && s.rank == 2 && p.in[1].strides.empty();
  add_steps(p, work, why);
  if (!why.fine()) return why;
  constexpr double kItemFlops = 1e7;
  const double flops = 2.0 * static_cast<double>(p.out[0].count() * s.x.dims[s.rank - 1]);
  cut(work, s.rank > 2 && s.y.dims[0] > 1 ? 0 : s.rank - 2, flops, kItemFlops);
  settle(work, why);
  return why;
}

Claim probe(const Problem& p) {
  Work work = {};
  const Reason why = plan(p, work);
  if (!why.fine()) return why.refusal();
  const Spec& s = work.spec;
  return offer(p, work, 2.0 * static_cast<double>(p.out[0].count() * s.x.dims[s.rank - 1]),
               NumericClass::kReassociated);
}

constexpr Row kRows[] = {{"dot", "onednn.dot", probe, prepare<plan>, pack<plan>, true}};

}  // namespace

std::span<const Row> dot_rows() { return kRows; }

}  // namespace tessera::kernels::onednn
