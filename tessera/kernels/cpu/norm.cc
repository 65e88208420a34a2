// Normalisations: rows cpu.row_norm and cpu.batch_norm in f32 and f64, cpu.lrn in f32.
#include <algorithm>

#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/rows.h"
#include "tessera/op/rules.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kItemElements = 16384;  // of a work item

int64_t product(const Dims& d, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= d[i];
  return n;
}

int64_t chunk_of(int64_t length) {
  return std::max<int64_t>(1, kItemElements / std::max<int64_t>(length, 1));
}

// Of the anchor and the steps behind it.
Claim claim_of(const Problem& p, double flops, NumericClass numeric) {
  const double steps = 2 * static_cast<double>(p.steps.size());
  return claim((flops + steps) * static_cast<double>(p.in[0].count()), bytes_of(p), 0.3, numeric);
}

// Inputs and outputs of the anchor, then what the steps read.
template <class Args>
std::vector<LaunchSpec> one_launch(const Problem& p, std::string_view entry, uint32_t grid,
                                   Args& args, Epilogue* epilogue) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  LaunchSpec launch;
  launch.entry = entry;
  launch.grid = grid;
  for (size_t i = 0; i < p.anchor_inputs(); ++i)
    if (p.in[i].present) launch.arguments.push_back({Argument::kInput, static_cast<int>(i), 0});
  for (size_t i = 0; i < p.out.size(); ++i)
    if (p.out[i].present) launch.arguments.push_back({Argument::kOutput, static_cast<int>(i), 0});
  if (epilogue) make_epilogue(p, rows_shape(p), launch.arguments, *epilogue);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

void need_packed_parameters(const Problem& p, Reason& why) {
  for (size_t i = 1; i < p.anchor_inputs(); ++i)
    why.need(!p.has(i) || p.in[i].strides.empty(), "input {} is strided, need packed", i);
}

void need_channels(const Problem& p, Reason& why) {
  why.need(p.in[0].rank() >= 2, "rank {}, need 2 or more", p.in[0].rank());
  for (size_t i = 1; why.fine() && i < p.anchor_inputs(); ++i)
    why.need(p.in[i].present && p.in[i].dims == Dims{p.in[0].dims[1]},
             "input {} is not one number for each of {} channels", i, p.in[0].dims[1]);
}

void need_row_major(const Problem& p, Reason& why) {
  const std::string text = not_packed(p, true);
  why.need(text.empty(), "{}", text);
}

// Pixels of input and output whose channels are neighbours: what lies between them.
struct Pixels {
  int64_t count, x_ld, y_ld;
};
std::optional<Pixels> pixels_of(const Problem& p) {
  const auto rows = row_space(p, 1, 2);
  if (!rows || rows->rank != 1 || p.in[0].dims[1] == 0) return std::nullopt;
  if (*stride_along(p.in[0], 1, 2) != 1 || *stride_along(p.out[0], 1, 2) != 1) return std::nullopt;
  return Pixels{rows->count, rows->strides[0][0], rows->strides[1][0]};
}

// ---- layer_norm, rms_norm

// Scale and bias must be as the normalised axes, element for element.
void need_along_row(const Problem& p, size_t axis, size_t i, Reason& why) {
  if (!p.has(i)) return;
  const Dims tail(p.in[0].dims.begin() + static_cast<int64_t>(axis), p.in[0].dims.end());
  const Dims& d = p.in[i].dims;
  const size_t lead = d.size() > tail.size() ? d.size() - tail.size() : 0;
  const bool same = d.size() >= tail.size() &&
                    std::all_of(d.begin(), d.begin() + static_cast<int64_t>(lead),
                                [](int64_t n) { return n == 1; }) &&
                    std::equal(tail.begin(), tail.end(), d.begin() + static_cast<int64_t>(lead));
  why.need(same, "input {} is [{}], need [{}]", i, fmt::join(d, ","), fmt::join(tail, ","));
}

RowNormArgs common_args(const Problem& p) {
  RowNormArgs args{};
  args.epsilon = p.attrs.f("epsilon", 1e-5);
  args.wide = p.in[0].dtype == DType::kF64;
  args.has_scale = p.has(1);
  args.has_bias = p.has(2);
  args.has_mean = p.out.size() > 1 && p.out[1].present;
  args.has_inverse = p.out.size() > 2 && p.out[2].present;
  args.rms = p.op->name == "rms_norm";
  return args;
}

Reason plan_rows(const Problem& p, RowNormArgs& args) {
  Reason why;
  need_same_float(p, why);
  if (!why.fine()) return why;
  const Operand &x = p.in[0], &y = p.out[0];
  const auto axis = op::normalize_axis(p.attrs.i("axis", -1), x.rank());
  if (!why.need(axis.has_value(), "axis {} is outside rank {}", p.attrs.i("axis", -1), x.rank()))
    return why;
  const auto first = static_cast<size_t>(*axis), rank = x.dims.size();
  need_packed_parameters(p, why);
  for (size_t i = 1; i < p.anchor_inputs(); ++i) need_along_row(p, first, i, why);
  const DType stash = p.attrs.dtype("stash", DType::kF32);
  why.need(stash == DType::kF32 || stash == x.dtype, "statistics in {}, need {}", name_of(stash),
           name_of(x.dtype));
  why.need(stride_along(x, first, rank) == 1 && stride_along(y, first, rank) == 1,
           "the elements of a row are not neighbours");
  const auto rows = row_space(p, first, rank);
  why.need(rows.has_value(), "more than {} axes that do not merge", kMaxSpaceRank);
  const std::string text = no_rows_epilogue(p, first);
  why.need(text.empty(), "{}", text);
  if (!why.fine()) return why;
  args = common_args(p);
  why.need(!(args.has_mean || args.has_inverse) || (y.layout.empty() && y.strides.empty()),
           "statistics of rows that are not packed");
  args.rows = *rows;
  args.length = product(x.dims, first, rank);
  args.chunk = chunk_of(args.length);
  return why;
}

Claim probe_rows(const Problem& p) {
  RowNormArgs args{};
  const Reason why = plan_rows(p, args);
  return why.fine() ? claim_of(p, 8, NumericClass::kReassociated) : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_rows(const Problem& p, const Claim&) {
  RowNormArgs args{};
  if (const Reason why = plan_rows(p, args); !why.fine())
    return error(Code::kInternal, "prepare without a claim: {}", why.text());
  return one_launch(p, "cpu.row_norm", items(args.rows.count, args.chunk), args, &args.epilogue);
}

// ---- group_norm, instance_norm

Claim probe_groups(const Problem& p) {
  Reason why;
  need_same_float(p, why);
  if (why.fine()) need_row_major(p, why);
  if (why.fine()) need_channels(p, why);
  const DType stash = p.attrs.dtype("stash", DType::kF32);
  why.need(stash == DType::kF32 || stash == p.in[0].dtype, "statistics in {}, need {}",
           name_of(stash), name_of(p.in[0].dtype));
  return why.fine() ? claim_of(p, 8, NumericClass::kReassociated) : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_groups(const Problem& p, const Claim&) {
  const Dims& x = p.in[0].dims;
  RowNormArgs args = common_args(p);
  const int64_t groups = p.op->name == "group_norm" ? p.attrs.i("groups") : x[1];
  args.affine = Affine::kPerChannel;
  args.inner = product(x, 2, x.size());
  args.all_channels = x[1];
  args.channels = groups == 0 ? 0 : x[1] / groups;
  args.length = args.channels * args.inner;
  args.rows.rank = 1;
  args.rows.count = args.rows.dims[0] = x[0] * groups;
  args.rows.strides[0][0] = args.rows.strides[1][0] = args.length;
  args.chunk = chunk_of(args.length);
  return one_launch(p, "cpu.row_norm", items(args.rows.count, args.chunk), args, nullptr);
}

// ---- batch_norm

Claim probe_batch(const Problem& p) {
  Reason why;
  need_same_float(p, why);
  if (why.fine()) need_channels(p, why);
  if (why.fine()) need_packed_parameters(p, why);
  if (why.fine() && pixels_of(p)) {
    const std::string text = no_rows_epilogue(p, 1);
    why.need(text.empty(), "{}", text);
  } else if (why.fine()) {
    need_row_major(p, why);
    why.need(!p.fused(), "steps behind planes");
  }
  return why.fine() ? claim_of(p, 3, NumericClass::kReassociated) : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_batch(const Problem& p, const Claim&) {
  const Dims& x = p.in[0].dims;
  BatchNormArgs args{};
  args.channels = x[1];
  args.epsilon = p.attrs.f("epsilon", 1e-5);
  args.wide = p.in[0].dtype == DType::kF64;
  if (const auto pixels = pixels_of(p)) {
    args.channels_last = 1;
    args.pixels = pixels->count;
    args.x_ld = pixels->x_ld;
    args.y_ld = pixels->y_ld;
    args.chunk = chunk_of(args.channels);
    return one_launch(p, "cpu.batch_norm", items(args.pixels, args.chunk), args, &args.epilogue);
  }
  args.planes = x[0] * x[1];
  args.inner = product(x, 2, x.size());
  args.chunk = chunk_of(args.inner);
  return one_launch(p, "cpu.batch_norm", items(args.planes, args.chunk), args, nullptr);
}

// ---- lrn

// Channels last and packed: the kernel slides its window along a pixel.
bool lrn_by_pixels(const Problem& p) {
  const auto pixels = pixels_of(p);
  const int64_t channels = p.in[0].dims[1], size = p.attrs.i("size");
  return pixels && (pixels->count == 1 || (pixels->x_ld == channels && pixels->y_ld == channels)) &&
         channels <= kLrnChannels && size <= kLrnWindow;
}

Claim probe_lrn(const Problem& p) {
  Reason why;
  need_same_float(p, why);
  why.input_is(p, 0, DType::kF32);
  why.need(p.in[0].rank() >= 2, "rank {}, need 2 or more", p.in[0].rank());
  why.need(p.attrs.f("bias", 1) > 0 && p.attrs.f("alpha", 1e-4) >= 0,
           "bias {} and alpha {}, need a positive base", p.attrs.f("bias", 1),
           p.attrs.f("alpha", 1e-4));
  if (why.fine() && !lrn_by_pixels(p)) need_row_major(p, why);
  return why.fine() ? claim_of(p, 30 + 2 * static_cast<double>(p.attrs.i("size")),
                               NumericClass::kApproximate)
                    : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_lrn(const Problem& p, const Claim&) {
  const Dims& x = p.in[0].dims;
  LrnArgs args{};
  args.channels = x[1];
  args.size = p.attrs.i("size");
  args.before = (args.size - 1) / 2;
  args.factor = p.attrs.f("alpha", 1e-4) / static_cast<double>(args.size);
  args.bias = p.attrs.f("bias", 1);
  args.beta = p.attrs.f("beta", 0.75);
  if (lrn_by_pixels(p)) {
    args.channels_last = 1;
    args.outer = pixels_of(p)->count;
    args.chunk = chunk_of(args.channels);
    return one_launch(p, "cpu.lrn", items(args.outer, args.chunk), args, nullptr);
  }
  args.outer = x[0];
  args.inner = product(x, 2, x.size());
  return one_launch(p, "cpu.lrn", items(args.outer * ceil_div(args.inner, kLrnCols), 1), args,
                    nullptr);
}

constexpr Row kRows[] = {
    {"layer_norm", "cpu.row_norm", probe_rows, prepare_rows, nullptr, true},
    {"rms_norm", "cpu.row_norm", probe_rows, prepare_rows, nullptr, true},
    {"group_norm", "cpu.row_norm", probe_groups, prepare_groups},
    {"instance_norm", "cpu.row_norm", probe_groups, prepare_groups},
    {"batch_norm", "cpu.batch_norm", probe_batch, prepare_batch, nullptr, true},
    {"lrn", "cpu.lrn", probe_lrn, prepare_lrn},
};

}  // namespace

std::span<const Row> norm_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
