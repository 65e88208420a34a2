// Softmax and normalisations in f32 and f64: rows cpu.softmax, cpu.row_norm, cpu.batch_norm,
// cpu.lrn.
#include <algorithm>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/norm_args.h"
#include "tessera/op/rules.h"

namespace tessera::kernels::cpu {
namespace {

// All operands present are of one type, f32 or f64.
void same_float(const Problem& p, Reason& why) {
  const DType d = p.in[0].dtype;
  why.need(d == DType::kF32 || d == DType::kF64, "input 0 is {}, need f32 or f64", name_of(d));
  for (size_t i = 1; i < p.in.size(); ++i)
    if (p.in[i].present) why.input_is(p, i, d);
  for (size_t i = 0; i < p.out.size(); ++i)
    if (p.out[i].present) why.output_is(p, i, d);
}

int32_t wide(const Problem& p) { return p.in[0].dtype == DType::kF64; }

int64_t product(const Dims& d, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= d[i];
  return n;
}

template <class Args>
std::vector<LaunchSpec> one_launch(const Problem& p, std::string_view entry, uint32_t grid,
                                   const Args& args) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  LaunchSpec launch;
  launch.entry = entry;
  launch.grid = grid;
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

int64_t chunk_of(int64_t length) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(length, 1));
}
double elements(const Problem& p) { return static_cast<double>(p.in[0].count()); }

// ---- softmax, log_softmax

Claim probe_softmax(const Problem& p) {
  Reason why;
  same_float(p, why);
  if (why.fine())
    why.need(op::normalize_axis(p.attrs.i("axis", -1), p.in[0].rank()).has_value(),
             "axis {} is outside rank {}", p.attrs.i("axis", -1), p.in[0].rank());
  if (!why.fine()) return why.refusal();
  return claim(25 * elements(p), bytes_of(p), 0.3, NumericClass::kApproximate);
}

Result<std::vector<LaunchSpec>> prepare_softmax(const Problem& p, const Claim&) {
  const Dims& x = p.in[0].dims;
  TRY_ASSIGN(const int axis, op::normalize_axis(p.attrs.i("axis", -1), p.in[0].rank()));
  const size_t at = static_cast<size_t>(axis);
  SoftmaxArgs args{};
  args.outer = product(x, 0, at);
  args.axis = x[at];
  args.inner = product(x, at + 1, x.size());
  args.chunk = chunk_of(args.axis);
  args.log = p.op->name == "log_softmax";
  args.wide = wide(p);
  const int64_t runs = ceil_div(args.inner, kSoftmaxCols);
  return one_launch(p, "cpu.softmax",
                    args.inner == 1 ? items(args.outer, args.chunk) : items(args.outer * runs, 1),
                    args);
}

// ---- layer_norm, rms_norm, group_norm, instance_norm

// Scale and bias must be as the normalised axes, element for element.
void along_row(const Problem& p, size_t axis, size_t i, Reason& why) {
  if (!p.has(i)) return;
  const Dims tail(p.in[0].dims.begin() + static_cast<int64_t>(axis), p.in[0].dims.end());
  const Dims& d = p.in[i].dims;
  const size_t lead = d.size() > tail.size() ? d.size() - tail.size() : 0;
  const bool same = d.size() >= tail.size() &&
                    std::all_of(d.begin(), d.begin() + static_cast<int64_t>(lead),
                                [](int64_t n) { return n == 1; }) &&
                    std::equal(tail.begin(), tail.end(), d.begin() + static_cast<int64_t>(lead));
  why.need(same, "input {} is {}, need {}", i, op::to_string(d), op::to_string(tail));
}

void per_channel(const Problem& p, Reason& why) {
  why.need(p.in[0].rank() >= 2, "rank {}, need 2 or more", p.in[0].rank());
  for (size_t i = 1; why.fine() && i < p.in.size(); ++i)
    why.need(p.in[i].present && p.in[i].dims == Dims{p.in[0].dims[1]},
             "input {} is not one number for each of {} channels", i, p.in[0].dims[1]);
}

RowNormArgs row_norm_args(const Problem& p) {
  const Dims& x = p.in[0].dims;
  RowNormArgs args{};
  args.epsilon = p.attrs.f("epsilon", 1e-5);
  args.wide = wide(p);
  args.has_scale = p.has(1);
  args.has_bias = p.has(2);
  args.has_mean = p.out.size() > 1 && p.out[1].present;
  args.has_inverse = p.out.size() > 2 && p.out[2].present;
  args.rms = p.op->name == "rms_norm";
  if (p.op->name == "group_norm" || p.op->name == "instance_norm") {
    const int64_t groups = p.op->name == "group_norm" ? p.attrs.i("groups") : x[1];
    args.affine = Affine::kPerChannel;
    args.inner = product(x, 2, x.size());
    args.all_channels = x[1];
    args.channels = groups == 0 ? 0 : x[1] / groups;
    args.rows = x[0] * groups;
    args.length = args.channels * args.inner;
  } else {
    const auto axis =
        static_cast<size_t>(op::normalize_axis(p.attrs.i("axis", -1), p.in[0].rank()).value_or(0));
    args.rows = product(x, 0, axis);
    args.length = product(x, axis, x.size());
  }
  args.chunk = chunk_of(args.length);
  return args;
}

Claim probe_row_norm(const Problem& p) {
  Reason why;
  same_float(p, why);
  if (!why.fine()) return why.refusal();
  if (p.op->name == "group_norm" || p.op->name == "instance_norm") {
    per_channel(p, why);
  } else {
    const auto axis = op::normalize_axis(p.attrs.i("axis", -1), p.in[0].rank());
    why.need(axis.has_value(), "axis {} is outside rank {}", p.attrs.i("axis", -1), p.in[0].rank());
    for (size_t i = 1; axis && i < p.in.size(); ++i)
      along_row(p, static_cast<size_t>(*axis), i, why);
  }
  const DType stash = p.attrs.dtype("stash", DType::kF32);
  why.need(stash == DType::kF32 || stash == p.in[0].dtype, "statistics in {}, need {}",
           name_of(stash), name_of(p.in[0].dtype));
  if (!why.fine()) return why.refusal();
  return claim(8 * elements(p), bytes_of(p), 0.3, NumericClass::kReassociated);
}

Result<std::vector<LaunchSpec>> prepare_row_norm(const Problem& p, const Claim&) {
  const RowNormArgs args = row_norm_args(p);
  return one_launch(p, "cpu.row_norm", items(args.rows, args.chunk), args);
}

// ---- batch_norm

Claim probe_batch_norm(const Problem& p) {
  Reason why;
  same_float(p, why);
  if (why.fine()) per_channel(p, why);
  if (!why.fine()) return why.refusal();
  return claim(3 * elements(p), bytes_of(p), 0.3, NumericClass::kReassociated);
}

Result<std::vector<LaunchSpec>> prepare_batch_norm(const Problem& p, const Claim&) {
  const Dims& x = p.in[0].dims;
  BatchNormArgs args{};
  args.planes = x[0] * x[1];
  args.channels = x[1];
  args.inner = product(x, 2, x.size());
  args.chunk = chunk_of(args.inner);
  args.epsilon = p.attrs.f("epsilon", 1e-5);
  args.wide = wide(p);
  return one_launch(p, "cpu.batch_norm", items(args.planes, args.chunk), args);
}

// ---- lrn

Claim probe_lrn(const Problem& p) {
  Reason why;
  why.input_is(p, 0, DType::kF32) && why.output_is(p, 0, DType::kF32);
  why.need(p.in[0].rank() >= 2, "rank {}, need 2 or more", p.in[0].rank());
  why.need(p.attrs.f("bias", 1) > 0 && p.attrs.f("alpha", 1e-4) >= 0,
           "bias {} and alpha {}, need a positive base", p.attrs.f("bias", 1),
           p.attrs.f("alpha", 1e-4));
  if (!why.fine()) return why.refusal();
  return claim((30 + 2 * static_cast<double>(p.attrs.i("size"))) * elements(p), bytes_of(p), 0.3,
               NumericClass::kApproximate);
}

Result<std::vector<LaunchSpec>> prepare_lrn(const Problem& p, const Claim&) {
  const Dims& x = p.in[0].dims;
  LrnArgs args{};
  args.outer = x[0];
  args.channels = x[1];
  args.inner = product(x, 2, x.size());
  args.size = p.attrs.i("size");
  args.before = (args.size - 1) / 2;
  args.factor = p.attrs.f("alpha", 1e-4) / static_cast<double>(args.size);
  args.bias = p.attrs.f("bias", 1);
  args.beta = p.attrs.f("beta", 0.75);
  return one_launch(p, "cpu.lrn", items(args.outer * ceil_div(args.inner, kLrnCols), 1), args);
}

constexpr Row kRows[] = {
    {"softmax", "cpu.softmax", row_major<probe_softmax>, prepare_softmax},
    {"log_softmax", "cpu.softmax", row_major<probe_softmax>, prepare_softmax},
    {"layer_norm", "cpu.row_norm", row_major<probe_row_norm>, prepare_row_norm},
    {"rms_norm", "cpu.row_norm", row_major<probe_row_norm>, prepare_row_norm},
    {"group_norm", "cpu.row_norm", row_major<probe_row_norm>, prepare_row_norm},
    {"instance_norm", "cpu.row_norm", row_major<probe_row_norm>, prepare_row_norm},
    {"batch_norm", "cpu.batch_norm", row_major<probe_batch_norm>, prepare_batch_norm},
    {"lrn", "cpu.lrn", row_major<probe_lrn>, prepare_lrn},
};

}  // namespace

std::span<const Row> norm_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
