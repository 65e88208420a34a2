// conv(x, w, bias?) in f32: rows cpu.depthwise (one input channel per group) and cpu.conv
// (everything else).
#include <algorithm>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/cpu/families.h"

namespace tessera::kernels::cpu {
namespace {

bool has_bias(const Problem& p) { return p.has(2); }
bool packs(const Problem& p) { return p.in[1].constant; }

std::vector<Argument> arguments(const Problem& p, bool packed) {
  std::vector<Argument> list = all_arguments(p);
  if (packed) list[1] = {Argument::kPacked, 0, 0};
  return list;
}

// ---- cpu.conv

int64_t panels(int64_t rows) { return ceil_div(rows, kPanelRows); }

Claim probe_conv(const Problem& p) {
  ConvShape s{};
  const Reason why = check_conv(p, s);
  if (!why.fine()) return why.refusal();
  // Few output channels do not pay for gathering the windows.
  const double m = static_cast<double>(std::max<int64_t>(s.M, 1));
  Claim c = claim(conv_flops(p, s) * (m + 8) / m, bytes_of(p), 0.7, NumericClass::kReassociated);
  if (packs(p))
    c.packed.push_back({1, Bytes(s.G * panels(s.M) * kPanelRows * s.C * product(s.kernel) * 4)});
  return c;
}

Result<std::vector<LaunchSpec>> prepare_conv(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  ConvArgs args{};
  TRY(fill_shape(p, args.shape));
  const ConvShape& s = args.shape;
  const int64_t P = product(s.out);
  const int64_t target = std::clamp<int64_t>(static_cast<int64_t>(conv_flops(p, s) / 2e6), 1, 32);
  const int64_t wanted = ceil_div(target, s.N * s.G);
  args.strips = std::max(ceil_div(P, kStrip), std::min(wanted, ceil_div(P, 2 * kPanelCols)));
  args.strip = ceil_div(ceil_div(P, args.strips), kPanelCols) * kPanelCols;
  args.strips = ceil_div(P, args.strip);
  // Small planes leave few items: the output channels are cut as well, down to a size that still
  // pays for the windows.
  const int64_t blocks = std::clamp<int64_t>(ceil_div(target, s.N * s.G * args.strips), 1,
                                             std::max<int64_t>(1, s.M / (8 * kPanelRows)));
  args.m_step = panels(ceil_div(s.M, blocks)) * kPanelRows;
  args.m_items = ceil_div(s.M, args.m_step);
  args.w_packed = packs(p);
  args.has_bias = has_bias(p);
  LaunchSpec launch;
  launch.entry = "cpu.conv";
  launch.grid = items(s.N * s.G * args.m_items * args.strips, 1);
  launch.arguments = arguments(p, packs(p));
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// (g, m, channel, tap) -> (g, m / kPanelRows, tap, channel, m % kPanelRows); rows beyond M are zero
Status pack_conv(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  const auto* w = reinterpret_cast<const float*>(source);
  auto* packed = reinterpret_cast<float*>(target);
  const int64_t taps = product(s.kernel), K = taps * s.C;
  for (int64_t g = 0; g < s.G; ++g, w += s.M * K)
    for (int64_t m = 0; m < s.M; m += kPanelRows)
      for (int64_t t = 0; t < taps; ++t)
        for (int64_t c = 0; c < s.C; ++c, packed += kPanelRows)
          for (int64_t r = 0; r < kPanelRows; ++r)
            packed[r] = m + r < s.M ? w[(m + r) * K + c * taps + t] : 0.0f;
  return {};
}

// ---- cpu.depthwise

int64_t pitch_of(const ConvShape& s) {
  return s.out[2] + ceil_div((s.kernel[2] - 1) * s.dilation[2] + 1, s.stride[2]);
}
int64_t rows_for(const ConvShape& s, int64_t outputs) {
  return (outputs - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
}
// Output rows whose input fits the band; below 1: none.
int64_t band_of(const ConvShape& s) {
  const int64_t rows = kBandFloats / (pitch_of(s) * s.stride[2]) - rows_for(s, 1);
  return rows < 0 ? 0 : std::min(s.out[1], rows / s.stride[1] + 1);
}

Claim probe_depthwise(const Problem& p) {
  ConvShape s{};
  Reason why = check_conv(p, s);
  if (!why.fine()) return why.refusal();
  why.need(s.C == 1, "{} input channels per group, need 1", s.C);
  why.need(s.kernel[0] == 1 && s.in[0] == 1 && s.out[0] == 1, "three spatial axes, need 1 or 2");
  why.need(product(s.kernel) <= kMaxTaps, "{} taps, need at most {}", product(s.kernel), kMaxTaps);
  why.need(s.pad[2] < pitch_of(s) && band_of(s) >= 1,
           "input rows of {} floats are too long for {} on the stack", s.in[2], kBandFloats);
  if (!why.fine()) return why.refusal();
  return claim(conv_flops(p, s), bytes_of(p), 0.25, NumericClass::kReassociated);
}

Result<std::vector<LaunchSpec>> prepare_depthwise(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  DepthwiseArgs args{};
  TRY(fill_shape(p, args.shape));
  const ConvShape& s = args.shape;
  args.pitch = pitch_of(s);
  args.band = band_of(s);
  args.planes = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, product(s.out)));
  args.has_bias = has_bias(p);
  LaunchSpec launch;
  launch.entry = "cpu.depthwise";
  launch.grid = items(s.N * s.G * s.M, args.planes);
  launch.arguments = arguments(p, false);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {
    {"conv", "cpu.depthwise", row_major<probe_depthwise>, prepare_depthwise},
    {"conv", "cpu.conv", row_major<probe_conv>, prepare_conv, pack_conv},
};

}  // namespace

std::span<const Row> conv_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
