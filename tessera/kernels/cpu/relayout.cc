// relayout between layouts that are more than an order of the axes: row cpu.relayout.
#include <cstring>

#include "tessera/kernels/cpu/box_args.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/layout/convert.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kItemBytes = 64 << 10, kZeroBytes = 256 << 10;

Result<layout::BoundLayout> bound(const Operand& o) {
  layout::Layout layout = layout::Layout::plain(o.dtype, o.rank());
  if (!o.layout.empty()) {
    TRY_ASSIGN(layout, layout::Layout::parse(o.layout));
  }
  return layout::BoundLayout::bind(layout, o.dtype, o.dims);
}

Result<layout::Conversion> conversion(const Problem& p) {
  TRY_ASSIGN(const layout::BoundLayout from, bound(p.in[0]));
  TRY_ASSIGN(const layout::BoundLayout to, bound(p.out[0]));
  return layout::Conversion::make(from, to);
}

Claim probe(const Problem& p) {
  Reason why;
  const Operand &x = p.in[0], &y = p.out[0];
  why.need(y.present, "nobody reads output 0");
  why.need(x.strides.empty() && y.strides.empty(), "an operand has gaps");
  why.need(bits_of(x.dtype) < 8 || !logical_strides(x) || !logical_strides(y),
           "both layouts are orders of the axes");
  if (!why.fine()) return why.refusal();
  const auto c = conversion(p);
  if (!c) return Claim::refuse("", c.error().message);
  why.need(!c->copies().empty(), "'{}' to '{}' does not come apart into boxes", x.layout, y.layout);
  if (!why.fine()) return why.refusal();
  return claim(0, static_cast<double>(c->from().bytes().value + c->to().bytes().value) * 1.25);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  TRY_ASSIGN(const layout::Conversion c, conversion(p));
  std::vector<LaunchSpec> launches;
  const int64_t from = c.from().bytes().value, to = c.to().bytes().value;
  if (!c.fills_itself()) {
    LaunchSpec& zero = launches.emplace_back();
    zero.entry = "cpu.zero";
    zero.grid = items(to, kZeroBytes);
    zero.arguments = {{Argument::kOutput, 0, 0}};
    zero.set_constants(to);
  }
  launches.push_back(move_boxes(c.copies(), from + to, 0, 0));
  return launches;
}

void move(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const BoxArgs*>(launch->constants);
  layout::run_copies({a.copies(), static_cast<size_t>(a.count)}, a.isa,
                     static_cast<const std::byte*>(launch->ranges[0].data),
                     static_cast<std::byte*>(launch->ranges[1].data), int64_t{first} * a.chunk,
                     std::min(a.tiles, (int64_t{first} + count) * a.chunk));
}

// Packed padding that the copies do not write, with all the rest. Work item = kZeroBytes of y.
void zero(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const int64_t bytes = *static_cast<const int64_t*>(launch->constants);
  const int64_t begin = first * kZeroBytes,
                end = std::min(bytes, (first + int64_t{count}) * kZeroBytes);
  std::memset(static_cast<std::byte*>(launch->ranges[0].data) + begin, 0,
              static_cast<size_t>(end - begin));
}

constexpr Row kRows[] = {{"relayout", "cpu.relayout", probe, prepare}};
constexpr Entry kEntries[] = {{"cpu.boxes", move}, {"cpu.zero", zero}};

}  // namespace

LaunchSpec move_boxes(std::span<const layout::Copy> copies, int64_t bytes, int input, int output) {
  BoxArgs args{static_cast<int64_t>(copies.size()), 0, 1, layout::best_isa()};
  for (const layout::Copy& c : copies) args.tiles += c.tiles;
  args.chunk = std::max<int64_t>(1, args.tiles * kItemBytes / std::max<int64_t>(bytes, 1));
  LaunchSpec launch;
  launch.entry = "cpu.boxes";
  launch.grid = items(args.tiles, args.chunk);
  launch.arguments = {{Argument::kInput, input, 0}, {Argument::kOutput, output, 0}};
  launch.constants.resize(sizeof args + copies.size_bytes());
  std::memcpy(launch.constants.data(), &args, sizeof args);
  std::memcpy(launch.constants.data() + sizeof args, copies.data(), copies.size_bytes());
  return launch;
}

Family relayout_family() { return {kRows, kEntries}; }

}  // namespace tessera::kernels::cpu
