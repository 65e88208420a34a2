// max_pool and average_pool: rows cpu.pool and, channels-last, cpu.pool_last.
#include <algorithm>

#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/cpu/epilogue.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/pool_args.h"
#include "tessera/op/window.h"

namespace tessera::kernels::cpu {
namespace {

std::optional<PoolType> type_of(DType d) {
  switch (d) {
    case DType::kF32:
      return PoolType::kF32;
    case DType::kF64:
      return PoolType::kF64;
    case DType::kI8:
      return PoolType::kI8;
    case DType::kU8:
      return PoolType::kU8;
    default:
      return std::nullopt;
  }
}

Status fill(const Problem& p, PoolArgs& args) {
  const Dims &x = p.in[0].dims, &y = p.anchor_result().dims;
  const op::Ints kernel = p.attrs.ints("kernel");
  const size_t axes = kernel.size(), lead = x.size() - axes;
  TRY_ASSIGN(const op::Window window, op::window_of(p.attrs, axes));
  args.planes = 1;
  for (size_t i = 0; i < lead; ++i) args.planes *= x[i];
  for (size_t i = 0; i < 3; ++i) {
    args.in[i] = args.out[i] = args.kernel[i] = args.stride[i] = args.dilation[i] = 1;
    args.pad[i] = args.pad_end[i] = 0;
  }
  int64_t plane = 1;
  for (size_t a = 0; a < axes; ++a) {
    const size_t i = 3 - axes + a;
    args.in[i] = x[lead + a];
    args.out[i] = y[lead + a];
    args.kernel[i] = kernel[a];
    args.stride[i] = window.strides[a];
    args.dilation[i] = window.dilations[a];
    std::tie(args.pad[i], args.pad_end[i]) = window.pads(a, args.in[i], args.kernel[i]);
    plane *= args.out[i];
  }
  args.chunk = std::max<int64_t>(1, 8192 / std::max<int64_t>(plane, 1));
  args.kind = p.op->name == "max_pool" ? PoolKind::kMax : PoolKind::kAverage;
  args.type = type_of(p.in[0].dtype).value_or(PoolType::kF32);
  args.count_padding = p.attrs.i("count_include_pad") != 0;
  args.has_indices = p.out.size() > 1 && p.out[1].present;
  args.column_major = p.attrs.i("column_major") != 0;
  return {};
}

double taps(const Problem& p) {
  return static_cast<double>(op::element_count(Dims(p.attrs.ints("kernel"))).value_or(1));
}

NumericClass numeric(const Problem& p) {
  return p.op->name == "max_pool" ? NumericClass::kExact : NumericClass::kReassociated;
}

Reason check(const Problem& p) {
  Reason why;
  const DType d = p.in[0].dtype;
  const size_t axes = p.attrs.ints("kernel").size();
  why.need(type_of(d).has_value(), "input 0 is {}, need f32, f64, i8 or u8", name_of(d));
  why.need(p.op->name == "max_pool" || is_float(d), "input 0 is {}, need floats", name_of(d));
  why.need(axes >= 1 && axes <= 3, "{} spatial axes, need 1 to 3", axes);
  why.need(p.in[0].dims.size() >= axes, "rank {} for {} spatial axes", p.in[0].rank(), axes);
  if (why.fine()) {
    PoolArgs args{};
    const Status filled = fill(p, args);
    why.need(filled.has_value(), "{}", filled ? "" : filled.error().message);
  }
  return why;
}

Claim probe(const Problem& p) {
  const Reason why = check(p);
  if (!why.fine()) return why.refusal();
  const bool indexed = p.out.size() > 1 && p.out[1].present;
  return claim(taps(p) * static_cast<double>(p.out[0].count()), bytes_of(p), indexed ? 0.01 : 0.1,
               numeric(p));
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  PoolArgs args{};
  TRY(fill(p, args));
  LaunchSpec launch;
  launch.entry = "cpu.pool";
  launch.grid = items(args.planes, args.chunk);
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// ---- cpu.pool_last

ResultShape result_shape(const Problem& p) {
  return {.dims = p.anchor_result().dims, .channels_last = true};
}

// Of f32, or maxima of bytes.
bool is_bytes(const Problem& p) {
  return p.op->name == "max_pool" && (p.in[0].dtype == DType::kU8 || p.in[0].dtype == DType::kI8);
}

Claim probe_last(const Problem& p) {
  Reason why = check(p);
  if (is_bytes(p))
    why.need(!p.fused(), "takes no steps behind a maximum of bytes");
  else
    why.input_is(p, 0, DType::kF32) && why.output_is(p, 0, DType::kF32);
  if (why.fine())
    why.need(p.in[0].rank() == std::ssize(p.attrs.ints("kernel")) + 2,
             "rank {} for {} spatial axes, need two more", p.in[0].rank(),
             p.attrs.ints("kernel").size());
  why.need(p.out.size() < 2 || !p.out[1].present, "the places of the maxima are asked for");
  int64_t ld = 0;
  for (const std::string& text : {why.fine() ? not_channels_last(p.in[0], "input 0", ld) : "",
                                  why.fine() ? not_channels_last(p.out[0], "output 0", ld) : "",
                                  why.fine() ? no_epilogue(p, result_shape(p)) : ""})
    why.need(text.empty(), "{}", text);
  if (!why.fine()) return why.refusal();
  return claim(taps(p) * static_cast<double>(p.out[0].count()), bytes_of(p),
               is_bytes(p) ? 0.5 : 0.2, p.fused() ? NumericClass::kApproximate : numeric(p));
}

Result<std::vector<LaunchSpec>> prepare_last(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  PoolLastArgs args{};
  TRY(fill(p, args.pool));
  not_channels_last(p.in[0], "input 0", args.x_ld);
  not_channels_last(p.out[0], "output 0", args.y_ld);
  const PoolArgs& pool = args.pool;
  args.images = p.in[0].dims[0];
  args.all_channels = p.in[0].dims[1];
  // The rows under an output row stay in L1; items of so many elements.
  constexpr int64_t kRowFloats = 6 << 10, kLeastChannels = 64, kItem = 32 << 10, kLine = 16;
  const int64_t row = std::max<int64_t>(1, pool.kernel[0] * pool.kernel[1] * pool.in[2]);
  args.channel_items =
      std::max<int64_t>(1, args.all_channels / std::max(kRowFloats / row, kLeastChannels));
  args.channels = ceil_div(ceil_div(args.all_channels, args.channel_items), kLine) * kLine;
  args.channel_items = ceil_div(args.all_channels, args.channels);
  const int64_t rows = pool.out[0] * pool.out[1];
  args.rows =
      std::clamp<int64_t>(kItem / std::max<int64_t>(1, pool.out[2] * args.channels), 1, rows);
  args.row_items = ceil_div(rows, args.rows);
  LaunchSpec launch;
  launch.entry = is_bytes(p) ? "cpu.pool_bytes" : "cpu.pool_last";
  launch.grid = items(args.images * args.row_items * args.channel_items, 1);
  launch.arguments = {{Argument::kInput, 0, 0}, {Argument::kOutput, 0, 0}};
  make_epilogue(p, result_shape(p), launch.arguments, args.epilogue);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {
    {"max_pool", "cpu.pool", row_major<probe>, prepare},
    {"average_pool", "cpu.pool", row_major<probe>, prepare},
    {"max_pool", "cpu.pool_last", probe_last, prepare_last, nullptr, true},
    {"average_pool", "cpu.pool_last", probe_last, prepare_last, nullptr, true},
};

}  // namespace

std::span<const Row> pool_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
