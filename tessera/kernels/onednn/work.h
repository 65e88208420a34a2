// A problem as work for oneDNN: one spec, cut along an axis of the result into items that a queue
// can spread.
#pragma once

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/onednn/primitive.h"

namespace tessera::kernels::onednn {

using cpu::Argument;
using cpu::Claim;
using cpu::Dims;
using cpu::LaunchSpec;
using cpu::NumericClass;
using cpu::Operand;
using cpu::Problem;
using cpu::Reason;

// The constant block. Ranges: x, y, then w, scale and bias where the spec has them; then what the
// steps read.
struct Work {
  Spec spec;
  dnnl_memory_desc_t weights;  // where spec.any_weights: how the first item wants them
  int64_t relu;                // y = max(y, 0) behind it: oneDNN's own would lose NaN
  int64_t axis;                // of y, into items of `step`; 0 or an axis of rows
  int64_t step;
  int64_t items;
};

// An item's spec, and where its operands begin, in elements behind those of the whole.
struct Item {
  Spec spec;
  int64_t x, w, y;
  int64_t posts[kMaxPostOps];
};
Item item_of(const Work& work, int64_t index);

// Cuts where items of at least `least` of so much work come out.
void cut(Work& work, int64_t axis, double work_in_all, double least);
// Images, or where there is one, its rows: only channels-last, where they leave a packed image.
void cut_images(Work& work, double work_in_all, double least);

// The place of an operand with `rank` axes, its own the last of them; nothing where it is no order
// of its axes.
std::optional<Place> place_of(const Operand& o, int64_t rank);

// Takes the problem's steps: add and mul by an input that broadcasts to the result, and relu as the
// last.
void add_steps(const Problem& p, Work& work, Reason& why);

// Asks oneDNN whether it has all items, and sets how weights lie.
void settle(Work& work, Reason& why);

// `flops` and the bytes of the problem, priced above our own kernels until it has been measured.
Claim offer(const Problem& p, const Work& work, double flops, NumericClass numeric);
Result<std::vector<LaunchSpec>> launches(const Problem& p, const Work& work);

// Row's prepare and pack, by how the family turns a problem into work.
template <Reason (*kPlan)(const Problem&, Work&)>
Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  Work work = {};
  const Reason why = kPlan(p, work);
  if (!why.fine()) return error(Code::kInternal, "prepare without a claim: {}", why.text());
  return launches(p, work);
}
template <Reason (*kPlan)(const Problem&, Work&)>
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  Work work = {};
  const Reason why = kPlan(p, work);
  if (!why.fine()) return error(Code::kInternal, "pack without a claim: {}", why.text());
  return reorder_weights(work.spec, work.weights, source, target);
}

// The entry behind all of them.
void run(const tessera_launch* launch, uint32_t first, uint32_t count);

}  // namespace tessera::kernels::onednn
