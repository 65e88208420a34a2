// max_pool and average_pool: row cpu.pool.
#include <algorithm>

#include "tessera/kernels/cpu/claims.h"
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
  const Dims &x = p.in[0].dims, &y = p.out[0].dims;
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

Claim probe(const Problem& p) {
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
  if (!why.fine()) return why.refusal();
  const double taps =
      static_cast<double>(op::element_count(Dims(p.attrs.ints("kernel"))).value_or(1));
  const bool indexed = p.out.size() > 1 && p.out[1].present;
  return claim(taps * static_cast<double>(p.out[0].count()), bytes_of(p), indexed ? 0.01 : 0.1,
               p.op->name == "max_pool" ? NumericClass::kExact : NumericClass::kReassociated);
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

constexpr Row kRows[] = {
    {"max_pool", "cpu.pool", row_major<probe>, prepare},
    {"average_pool", "cpu.pool", row_major<probe>, prepare},
};

}  // namespace

std::span<const Row> pool_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
