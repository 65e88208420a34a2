// resize along one axis or two neighbouring ones: row cpu.resize. Nearest for any type, all other
// modes in f32.
#include <algorithm>
#include <cstring>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/resize_args.h"
#include "tessera/op/resize.h"

namespace tessera::kernels::cpu {
namespace {

struct Plan {
  ResizeArgs args{};
  op::Taps taps[2];
};

op::Taps unchanged(int64_t size) {
  op::Taps taps;
  for (int64_t i = 0; i < size; ++i) {
    taps.indices.push_back(i);
    taps.weights.push_back(1);
    taps.first.push_back(i + 1);
  }
  return taps;
}

bool is_unchanged(const op::Taps& taps, int64_t size) {
  if (std::ssize(taps.indices) != size || std::ssize(taps.first) != size + 1) return false;
  for (int64_t i = 0; i < size; ++i)
    if (taps.indices[static_cast<size_t>(i)] != i || taps.weights[static_cast<size_t>(i)] != 1)
      return false;
  return true;
}

Result<Plan> plan_of(const Problem& p) {
  const Operand &x = p.in[0], &y = p.out[0];
  if (bits_of(x.dtype) < 8)
    return error(Code::kInvalidArgument, "input 0 is {}, need elements of whole bytes",
                 name_of(x.dtype));
  for (size_t i : {size_t{1}, size_t{2}})
    if (p.has(i) && p.in[i].count() > 0)
      return error(Code::kInvalidArgument, "{} unknown", i == 1 ? "roi" : "scales");
  const bool sized = p.has(3) && p.in[3].count() > 0;
  if (sized && !p.in[3].values) return error(Code::kInvalidArgument, "sizes unknown");
  const op::Tensor sizes = sized ? op::Tensor::of_i64(*p.in[3].values) : op::Tensor();
  TRY_ASSIGN(const std::vector<op::ResizeAxis> axes,
             op::resize_axes(p.attrs, x.dims, nullptr, nullptr, sized ? &sizes : nullptr));
  Plan plan;
  plan.args.nearest = p.attrs.s("mode", "nearest") == "nearest";
  plan.args.bytes = bits_of(x.dtype) / 8;
  if (!plan.args.nearest && x.dtype != DType::kF32)
    return error(Code::kInvalidArgument, "input 0 is {}, need f32", name_of(x.dtype));
  std::vector<std::pair<size_t, op::Taps>> changed;
  for (const op::ResizeAxis& axis : axes) {
    if (y.dims[static_cast<size_t>(axis.axis)] != axis.out)
      return error(Code::kInvalidArgument, "axis {} becomes {}, the output has {}", axis.axis,
                   axis.out, y.dims[static_cast<size_t>(axis.axis)]);
    if (axis.in == 0 && axis.out > 0)
      return error(Code::kInvalidArgument, "axis {} is empty", axis.axis);
    if (axis.out == axis.in && axis.scale == 1 && axis.begin == 0 && axis.end == 1) continue;
    TRY_ASSIGN(op::Taps taps, op::resize_taps(p.attrs, axis));
    if (std::find(taps.outside.begin(), taps.outside.end(), true) != taps.outside.end())
      return error(Code::kInvalidArgument, "axis {} is extrapolated", axis.axis);
    if (!is_unchanged(taps, axis.in))
      changed.emplace_back(static_cast<size_t>(axis.axis), std::move(taps));
  }
  std::sort(changed.begin(), changed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  if (changed.size() > 2 || (changed.size() == 2 && changed[1].first != changed[0].first + 1))
    return error(Code::kInvalidArgument, "{} axes change, need one or two neighbours",
                 changed.size());
  const size_t last = changed.empty() ? x.dims.size() : changed.back().first;
  ResizeArgs& a = plan.args;
  a.outer = a.inner = 1;
  a.in[0] = a.in[1] = a.out[0] = a.out[1] = 1;
  plan.taps[0] = plan.taps[1] = unchanged(1);
  for (size_t i = 0; i < changed.size(); ++i) {
    const size_t at = 2 - changed.size() + i;
    a.in[at] = x.dims[changed[i].first];
    a.out[at] = y.dims[changed[i].first];
    plan.taps[at] = std::move(changed[i].second);
  }
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i + changed.size() <= last) a.outer *= x.dims[i];
    if (i > last) a.inner *= x.dims[i];
  }
  // A row must be mixed on the stack.
  if (!a.nearest && a.in[1] * a.inner > kResizeRow)
    return error(Code::kInvalidArgument, "rows of {} floats, need at most {}", a.in[1] * a.inner,
                 kResizeRow);
  if (a.nearest)
    for (size_t i = 0; i < 2; ++i)
      if (std::ssize(plan.taps[i].indices) != a.out[i])
        return error(Code::kInvalidArgument, "nearest with several taps");
  a.chunk = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, a.out[1] * a.inner));
  return plan;
}

Claim probe(const Problem& p) {
  const auto plan = plan_of(p);
  if (!plan) return Claim::refuse("", plan.error().message);
  const double taps = static_cast<double>(plan->taps[1].indices.size()) /
                      static_cast<double>(std::max<int64_t>(1, plan->args.out[1]));
  return claim(2 * (taps + 2) * static_cast<double>(p.out[0].count()), bytes_of(p), 0.05,
               plan->args.nearest ? NumericClass::kExact : NumericClass::kReassociated);
}

void append(std::vector<std::byte>& block, const auto& values, auto converted) {
  for (const auto& v : values) {
    converted = static_cast<decltype(converted)>(v);
    static_assert(sizeof(converted) == 4);
    const auto* bytes = reinterpret_cast<const std::byte*>(&converted);
    block.insert(block.end(), bytes, bytes + sizeof(converted));
  }
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  TRY_ASSIGN(const Plan plan, plan_of(p));
  LaunchSpec launch;
  launch.entry = "cpu.resize";
  launch.grid = items(plan.args.outer * plan.args.out[0], plan.args.chunk);
  launch.arguments = {{Argument::kInput, 0, 0}, {Argument::kOutput, 0, 0}};
  launch.set_constants(plan.args);
  for (const op::Taps& taps : plan.taps) {
    append(launch.constants, taps.first, int32_t{});
    append(launch.constants, taps.indices, int32_t{});
    append(launch.constants, taps.weights, float{});
  }
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {{"resize", "cpu.resize", row_major<probe>, prepare}};

}  // namespace

std::span<const Row> resize_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
