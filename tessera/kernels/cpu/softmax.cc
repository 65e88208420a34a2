// softmax and log_softmax along any axis, in f32 and f64: row cpu.softmax.
#include <algorithm>

#include "tessera/kernels/cpu/epilogue.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/rows.h"
#include "tessera/op/rules.h"

namespace tessera::kernels::cpu {
namespace {

// Fills all but the epilogue.
Reason plan(const Problem& p, SoftmaxArgs& args) {
  Reason why;
  need_same_float(p, why);
  if (!why.fine()) return why;
  const Operand &x = p.in[0], &y = p.out[0];
  const auto axis = op::normalize_axis(p.attrs.i("axis", -1), x.rank());
  if (!why.need(axis.has_value(), "axis {} is outside rank {}", p.attrs.i("axis", -1), x.rank()))
    return why;
  const auto at = static_cast<size_t>(*axis);
  const auto rows = row_space(p, at, at + 1);
  if (!why.need(rows.has_value(), "more than {} axes that do not merge", kMaxSpaceRank)) return why;
  args.rows = *rows;
  args.axis = x.dims[at];
  args.log = p.op->name == "log_softmax";
  args.wide = x.dtype == DType::kF64;
  args.axis_strides[0] = *stride_along(x, at, at + 1);
  args.axis_strides[1] = *stride_along(y, at, at + 1);
  if (args.axis_strides[0] != 1 || args.axis_strides[1] != 1) {
    const int last = args.rows.rank - 1;
    why.need(args.rows.strides[0][last] == 1 && args.rows.strides[1][last] == 1,
             "neither elements along axis {} nor rows lie next to each other", *axis);
    args.inner = args.rows.dims[last];
    args.rows.count = args.inner == 0 ? 0 : args.rows.count / args.inner;
    args.rows.dims[last] = 1;
    args.rows.strides[0][last] = args.rows.strides[1][last] = 0;
    why.need(!p.fused(), "steps behind columns");
  }
  args.chunk = std::max<int64_t>(1, 16384 / std::max<int64_t>(args.axis, 1));
  const std::string text = no_rows_epilogue(p, at);
  why.need(text.empty(), "{}", text);
  return why;
}

Claim probe(const Problem& p) {
  SoftmaxArgs args{};
  if (const Reason why = plan(p, args); !why.fine()) return why.refusal();
  const double count = static_cast<double>(p.in[0].count());
  return claim((25 + 2 * static_cast<double>(p.steps.size())) * count, bytes_of(p), 0.3,
               NumericClass::kApproximate);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  SoftmaxArgs args{};
  std::vector<LaunchSpec> launches;
  if (const Reason why = plan(p, args); !why.fine())
    return error(Code::kInternal, "prepare without a claim: {}", why.text());
  if (p.out[0].count() == 0) return launches;
  LaunchSpec launch;
  launch.entry = "cpu.softmax";
  launch.grid = args.inner == 0 ? items(args.rows.count, args.chunk)
                                : items(args.rows.count * ceil_div(args.inner, kSoftmaxCols), 1);
  launch.arguments = {{Argument::kInput, 0, 0}, {Argument::kOutput, 0, 0}};
  make_epilogue(p, rows_shape(p), launch.arguments, args.epilogue);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {
    {"softmax", "cpu.softmax", probe, prepare, nullptr, true},
    {"log_softmax", "cpu.softmax", probe, prepare, nullptr, true},
};

}  // namespace

std::span<const Row> softmax_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
