// conv(x, w, bias?) in f32 on channels-last operands, 3x3 at distance 1: row cpu.winograd.
#include <algorithm>

#include "tessera/kernels/cpu/conv_last.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/panel.h"
#include "tessera/kernels/cpu/winograd_args.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kLeastChannels = 16;
constexpr int64_t kMostWidth = 4 * kPanel;
constexpr int64_t kBlockFloats = 112 << 10;  // of a block's transforms: they stay in L2
constexpr int64_t kLeastBlock = 8, kMostBlock = 96;
constexpr int64_t kLine = 16;  // floats

int64_t round_up(int64_t a, int64_t step) { return ceil_div(a, step) * step; }

WinogradArgs args_of(const LastConv& conv) {
  WinogradArgs a{};
  const ConvShape& s = conv.shape;
  a.shape = s;
  a.x_ld = conv.x_ld;
  a.y_ld = conv.y_ld;
  a.tile_rows = ceil_div(s.out[1], kWinogradOut);
  a.tile_cols = ceil_div(s.out[2], kWinogradOut);
  const int64_t tiles = s.N * a.tile_rows * a.tile_cols;
  // Items by tiles, as long as each has a block's worth; then by channels.
  constexpr int64_t kItems = 16, kFewItems = 4;
  const int64_t depth = round_up(std::max<int64_t>(s.C, 1), kPanel);
  const int64_t widths = ceil_div(s.M, kMostWidth);
  a.width = round_up(ceil_div(s.M, std::max<int64_t>(widths, 1)), kPanel);
  const int64_t fit = kBlockFloats / (kWinogradPoints * (depth + a.width));
  const int64_t most = std::clamp(fit, kLeastBlock, kMostBlock);
  a.tile_items = std::clamp<int64_t>(tiles / most, 1, kItems);
  a.tiles = ceil_div(tiles, a.tile_items);
  a.tile_items = ceil_div(tiles, a.tiles);
  a.block = ceil_div(a.tiles, ceil_div(a.tiles, most));
  a.col_items =
      std::clamp<int64_t>(ceil_div(kFewItems, a.tile_items), 1, std::max<int64_t>(widths, 1));
  a.cols = round_up(ceil_div(widths, a.col_items), 1) * a.width;
  a.col_items = std::max<int64_t>(1, ceil_div(s.M, a.cols));
  // An odd number of lines between points, which else would compete for the same places of a cache.
  a.x_stride = a.block * depth + kLine;
  a.y_stride = a.block * a.width + kLine;
  a.region = kWinogradPoints * (a.x_stride + a.y_stride);
  return a;
}

Claim probe(const Problem& p) {
  LastConv conv;
  Reason why = check_last(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.shape;
  why.need(s.G == 1, "{} groups, need 1", s.G);
  why.need(s.kernel[0] == 1 && s.in[0] == 1 && s.out[0] == 1 && p.in[1].rank() == 4,
           "{} spatial axes, need 2", p.in[1].rank() - 2);
  why.need(s.kernel[1] == kWinogradKernel && s.kernel[2] == kWinogradKernel,
           "{} by {} taps, need 3 by 3", s.kernel[1], s.kernel[2]);
  why.need(product(s.stride) == 1 && product(s.dilation) == 1,
           "windows or taps are not neighbours");
  why.need(s.C >= kLeastChannels && s.M >= kLeastChannels,
           "{} channels in and {} out, need at least {}", s.C, s.M, kLeastChannels);
  if (!why.fine()) return why.refusal();
  const WinogradArgs a = args_of(conv);
  const double tiles = static_cast<double>(a.tile_items * a.tiles), C = static_cast<double>(s.C),
               M = static_cast<double>(s.M);
  // A transform takes about so many operations of each channel's tile.
  constexpr double kTransform = 300;
  const double flops = tiles * (2 * kWinogradPoints * C * M +
                                kTransform * (C * static_cast<double>(a.col_items) + M));
  const int64_t weights = kWinogradPoints * packed_size(s.C, s.M) * int64_t{sizeof(float)};
  Claim c = claim(flops, activation_bytes(p) + static_cast<double>(weights), 0.75,
                  NumericClass::kTransformed);
  c.packed.push_back({1, Bytes(weights)});
  c.workspace = Bytes(a.tile_items * a.col_items * a.region * int64_t{sizeof(float)});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  check_last(p, conv);
  WinogradArgs args = args_of(conv);
  LaunchSpec launch;
  launch.entry = "cpu.winograd";
  launch.grid = items(args.tile_items * args.col_items, 1);
  launch.arguments = last_arguments(p, args.epilogue);
  args.workspace = static_cast<int32_t>(launch.arguments.size());
  launch.arguments.push_back({Argument::kWorkspace, 0, 0});
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// G, (point, tap): row i evaluates a polynomial at point i, over the product of its distances from
// the others; the last row is the coefficient at infinity.
struct Evaluation {
  double rows[kWinogradIn][kWinogradKernel];

  Evaluation() {
    constexpr double kPoints[] = {0, kWinogradP, -kWinogradP, kWinogradQ, -kWinogradQ};
    for (int i = 0; i < kWinogradIn - 1; ++i) {
      double distances = 1;
      for (int k = 0; k < kWinogradIn - 1; ++k)
        if (k != i) distances *= kPoints[i] - kPoints[k];
      double power = 1;
      for (int j = 0; j < kWinogradKernel; ++j, power *= kPoints[i]) rows[i][j] = power / distances;
    }
    for (int j = 0; j < kWinogradKernel; ++j)
      rows[kWinogradIn - 1][j] = j == kWinogradKernel - 1 ? 1 : 0;
  }
};

// A panel's columns of one channel.
struct Lanes {
  double at[kPanel];
};

// to[i] = sum over k of g[i][k] * from[k]
void evaluate(const Evaluation& g, const Lanes (&from)[kWinogradKernel], Lanes* to,
              int64_t to_stride) {
  for (int i = 0; i < kWinogradIn; ++i)
    for (int64_t j = 0; j < kPanel; ++j) {
      double sum = 0;
      for (int k = 0; k < kWinogradKernel; ++k) sum += g.rows[i][k] * from[k].at[j];
      to[i * to_stride].at[j] = sum;
    }
}

// (m, channel, tap) -> (point, panel of m, channel, column); columns beyond M are zero
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  const auto* w = reinterpret_cast<const float*>(source);
  auto* packed = reinterpret_cast<float*>(target);
  const Evaluation g;
  constexpr int64_t kTaps = kWinogradKernel * kWinogradKernel;
  const int64_t stride = packed_size(s.C, s.M);
  for (int64_t m = 0; m < s.M; m += kPanel)
    for (int64_t c = 0; c < s.C; ++c, packed += kPanel) {
      Lanes columns[kWinogradKernel][kWinogradKernel] = {};  // (column of taps, row)
      for (int64_t j = 0; j < std::min(kPanel, s.M - m); ++j)
        for (int64_t t = 0; t < kTaps; ++t)
          columns[t % kWinogradKernel][t / kWinogradKernel].at[j] =
              double{w[((m + j) * s.C + c) * kTaps + t]};
      Lanes half[kWinogradIn][kWinogradKernel], whole[kWinogradIn];
      for (int j = 0; j < kWinogradKernel; ++j)
        evaluate(g, columns[j], &half[0][j], kWinogradKernel);
      for (int i = 0; i < kWinogradIn; ++i) {
        evaluate(g, half[i], whole, 1);
        for (int k = 0; k < kWinogradIn; ++k)
          for (int64_t j = 0; j < kPanel; ++j)
            packed[(i * kWinogradIn + k) * stride + j] = static_cast<float>(whole[k].at[j]);
      }
    }
  return {};
}

constexpr Row kRows[] = {{"conv", "cpu.winograd", probe, prepare, pack, true}};

}  // namespace

std::span<const Row> conv_winograd_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
