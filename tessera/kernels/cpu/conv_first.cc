// conv(x, w, bias?) in f32 of few channels, x row-major or channels-last, y channels-last: row
// cpu.conv_first.
#include <algorithm>

#include "tessera/kernels/cpu/conv_last.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kMostChannels = 8;

int64_t columns_of(const ConvShape& s) { return (s.out[2] - 1) * s.stride[2] + s.kernel[2]; }
// Rows of x under so many output rows.
int64_t rows_under(const ConvShape& s, int64_t rows) {
  return (rows - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
}
// Output rows whose rows of x fit.
int64_t most_rows(const ConvShape& s) {
  const int64_t fit = kFirstFloats / std::max<int64_t>(1, columns_of(s) * s.C);
  return fit < rows_under(s, 1) ? 0 : (fit - rows_under(s, 1)) / s.stride[1] + 1;
}

Claim probe(const Problem& p) {
  LastConv conv;
  Reason why = check_last_output(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.shape;
  if (!p.in[0].layout.empty()) {
    const std::string text = not_channels_last(p.in[0], "input 0", conv.x_ld);
    why.need(text.empty(), "{}", text);
  } else {
    why.need(p.in[0].strides.empty(), "input 0 is row-major and strided");
  }
  why.need(s.G == 1, "{} groups, need 1", s.G);
  why.need(s.C <= kMostChannels, "{} channels, need at most {}", s.C, kMostChannels);
  why.need(s.kernel[0] == 1 && s.in[0] == 1 && s.out[0] == 1, "three spatial axes, need 1 or 2");
  why.need(s.dilation[2] == 1, "dilation {} along rows, need 1", s.dilation[2]);
  why.need(most_rows(s) >= 1, "rows of {} floats are too long for {} on the stack",
           columns_of(s) * s.C, kFirstFloats);
  if (!why.fine()) return why.refusal();
  const double m = static_cast<double>(std::max<int64_t>(s.M, 1));
  Claim c = claim(conv_flops(p, s) * static_cast<double>(panels_of(s.M) * kPanel) / m,
                  activation_bytes(p), 0.8, NumericClass::kReassociated);
  c.packed.push_back(
      {1, Bytes(packed_size(s.C * product(s.kernel), s.M) * int64_t{sizeof(float)})});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  check_last_output(p, conv);
  ConvFirstArgs args{};
  args.shape = conv.shape;
  const ConvShape& s = args.shape;
  if (p.in[0].layout.empty()) {
    args.x_c = product(s.in);
    args.x_w = 1;
  } else {
    args.x_c = 1;
    not_channels_last(p.in[0], "input 0", args.x_w);
  }
  args.y_ld = conv.y_ld;
  args.columns = columns_of(s);
  constexpr double kItemFlops = 2e6;
  const int64_t target =
      std::clamp<int64_t>(static_cast<int64_t>(conv_flops(p, s) / kItemFlops), 1, 32);
  args.rows = std::clamp<int64_t>(ceil_div(s.out[1], ceil_div(target, s.N)), 1, most_rows(s));
  args.row_items = ceil_div(s.out[1], args.rows);
  LaunchSpec launch;
  launch.entry = "cpu.conv_first";
  launch.grid = items(s.N * args.row_items, 1);
  launch.arguments = last_arguments(p, args.epilogue);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  pack_taps(s, reinterpret_cast<const float*>(source), reinterpret_cast<float*>(target));
  return {};
}

constexpr Row kRows[] = {{"conv", "cpu.conv_first", probe, prepare, pack, true}};

}  // namespace

std::span<const Row> conv_first_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
