// conv(x, w, bias?) in f32 on channels-last operands, 3x3 or 5x5 taps at distance 1: row
// cpu.winograd.
#include <algorithm>

#include "tessera/kernels/cpu/conv_last.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/panel.h"
#include "tessera/kernels/cpu/winograd_args.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kLeastChannels = 16;

int64_t round_up(int64_t a, int64_t step) { return ceil_div(a, step) * step; }

double weight_bytes(const ConvShape& s) {
  return static_cast<double>(s.G * kWinogradPoints * packed_size(s.C, s.M)) * sizeof(float);
}

// How many tiles at a time: what is transformed stays in L2. Large weights, which are read for each
// block, come from beyond L2 and had better be read rarely.
int64_t most_tiles(const ConvShape& s, int64_t depth, int64_t width) {
  constexpr int64_t kBlockFloats = 112 << 10, kLeast = 8, kMost = 64;
  constexpr double kSmallWeights = 1 << 20;
  if (weight_bytes(s) > kSmallWeights * static_cast<double>(s.G)) return kMost;
  return std::clamp(kBlockFloats / (kWinogradPoints * (depth + width)), kLeast, kMost);
}

WinogradArgs args_of(const LastConv& conv) {
  WinogradArgs a{};
  const ConvShape& s = conv.shape;
  a.shape = s;
  a.x_ld = conv.x_ld;
  a.y_ld = conv.y_ld;
  a.out = kWinogradIn - s.kernel[1] + 1;
  a.tile_rows = ceil_div(s.out[1], a.out);
  a.tile_cols = ceil_div(s.out[2], a.out);
  constexpr int64_t kWidest = 4 * kPanel, kFewItems = 4, kManyItems = 8, kLine = 16;
  const int64_t tiles = s.N * a.tile_rows * a.tile_cols;
  const int64_t depth = round_up(std::max<int64_t>(s.C, 1), kPanel), M = std::max<int64_t>(s.M, 1);
  const int64_t most = most_tiles(s, depth, kWidest);
  const bool many = tiles >= kFewItems * most;
  // Few tiles: items by channels instead.
  const int64_t widths =
      std::max(ceil_div(M, kWidest), many ? 1 : std::min(kFewItems, ceil_div(M, kPanel)));
  a.width = round_up(ceil_div(M, widths), kPanel);
  a.tiles = many ? ceil_div(tiles, std::min(tiles / most, kManyItems)) : tiles;
  a.tile_items = ceil_div(tiles, a.tiles);
  a.block = ceil_div(a.tiles, ceil_div(a.tiles, most));
  a.cols = many ? round_up(M, a.width) : a.width;
  a.col_items = ceil_div(M, a.cols);
  constexpr int64_t kInTiles = 4;
  a.in_tiles = std::max(kInTiles, ceil_div(tiles, kManyItems));
  a.in_items = ceil_div(tiles, a.in_tiles);
  // An odd number of lines between points, which else would compete for the same places of a cache.
  a.x_stride = (many ? a.block : tiles) * depth + kLine;
  a.y_stride = a.block * a.width + kLine;
  a.shared = many ? 0 : s.G * kWinogradPoints * a.x_stride;
  a.region = kWinogradPoints * (a.y_stride + (many ? a.x_stride : 0));
  return a;
}

int64_t grid(const WinogradArgs& a) { return a.shape.G * a.tile_items * a.col_items; }

Claim probe(const Problem& p) {
  LastConv conv;
  Reason why = check_last(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.shape;
  why.need(s.kernel[0] == 1 && s.in[0] == 1 && s.out[0] == 1 && p.in[1].rank() == 4,
           "{} spatial axes, need 2", p.in[1].rank() - 2);
  why.need(s.kernel[1] == s.kernel[2] && (s.kernel[1] == 3 || s.kernel[1] == 5),
           "{} by {} taps, need 3 by 3 or 5 by 5", s.kernel[1], s.kernel[2]);
  why.need(product(s.stride) == 1 && product(s.dilation) == 1,
           "windows or taps are not neighbours");
  why.need(s.C >= kLeastChannels && s.M >= kLeastChannels,
           "{} channels in and {} out, need at least {}", s.C, s.M, kLeastChannels);
  if (!why.fine()) return why.refusal();
  const WinogradArgs a = args_of(conv);
  const double tiles = static_cast<double>(s.G * s.N * a.tile_rows * a.tile_cols),
               C = static_cast<double>(s.C), M = static_cast<double>(s.M);
  // A transform takes about so many operations of each channel's tile.
  constexpr double kTransform = 300;
  const double flops = tiles * (2 * kWinogradPoints * C * M + kTransform * (C + M));
  // Weights that no cache keeps are read for each block.
  constexpr double kKept = 4 << 20;
  const double blocks = static_cast<double>(a.tile_items * ceil_div(a.tiles, a.block));
  const double reads = weight_bytes(s) > kKept ? blocks : 1;
  Claim c =
      claim(flops, activation_bytes(p) + weight_bytes(s) * reads, 0.75, NumericClass::kTransformed);
  c.packed.push_back({1, Bytes(static_cast<int64_t>(weight_bytes(s)))});
  c.workspace = Bytes((a.shared + grid(a) * a.region) * int64_t{sizeof(float)});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  check_last(p, conv);
  WinogradArgs args = args_of(conv);
  LaunchSpec launch;
  launch.arguments = last_arguments(p, args.epilogue);
  args.workspace = static_cast<int32_t>(launch.arguments.size());
  launch.arguments.push_back({Argument::kWorkspace, 0, 0});
  launch.set_constants(args);
  if (args.shared > 0) {
    launch.entry = "cpu.winograd_in";
    launch.grid = items(args.shape.G * args.in_items, 1);
    launches.push_back(launch);
  }
  launch.entry = "cpu.winograd";
  launch.grid = items(grid(args), 1);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr int kIn = static_cast<int>(kWinogradIn);

// G, (point, tap): row i evaluates a polynomial at point i, over the product of its distances from
// the others; the last row is the coefficient at infinity.
template <int kTaps>
struct Evaluation {
  double rows[kIn][kTaps] = {};

  Evaluation() {
    constexpr double kPoints[] = {0, kWinogradP, -kWinogradP, kWinogradQ, -kWinogradQ};
    for (int i = 0; i < kIn - 1; ++i) {
      double distances = 1;
      for (int k = 0; k < kIn - 1; ++k)
        if (k != i) distances *= kPoints[i] - kPoints[k];
      double power = 1;
      for (int j = 0; j < kTaps; ++j, power *= kPoints[i]) rows[i][j] = power / distances;
    }
    rows[kIn - 1][kTaps - 1] = 1;
  }
};

// A panel's columns of one channel.
struct Lanes {
  double at[kPanel];
};

// to[i] = sum over k of g[i][k] * from[k]
template <int kTaps>
void evaluate(const Evaluation<kTaps>& g, const Lanes (&from)[kTaps], Lanes* to,
              int64_t to_stride) {
  for (int i = 0; i < kIn; ++i)
    for (int64_t j = 0; j < kPanel; ++j) {
      double sum = 0;
      for (int k = 0; k < kTaps; ++k) sum += g.rows[i][k] * from[k].at[j];
      to[i * to_stride].at[j] = sum;
    }
}

// (g, m, channel, tap) -> (g, point, panel of m, channel, column); columns beyond M are zero
template <int kTaps>
void pack_taps(const ConvShape& s, const float* w, float* packed) {
  const Evaluation<kTaps> evaluation;
  const int64_t stride = packed_size(s.C, s.M);
  constexpr int64_t kWindow = kTaps * kTaps;
  for (int64_t g = 0; g < s.G;
       ++g, w += s.M * s.C * kWindow, packed += (kWinogradPoints - 1) * stride)
    for (int64_t m = 0; m < s.M; m += kPanel)
      for (int64_t c = 0; c < s.C; ++c, packed += kPanel) {
        Lanes columns[kTaps][kTaps] = {};  // (column of taps, row)
        for (int64_t j = 0; j < std::min(kPanel, s.M - m); ++j)
          for (int64_t t = 0; t < kWindow; ++t)
            columns[t % kTaps][t / kTaps].at[j] = double{w[((m + j) * s.C + c) * kWindow + t]};
        Lanes half[kIn][kTaps], whole[kIn];
        for (int j = 0; j < kTaps; ++j) evaluate(evaluation, columns[j], &half[0][j], kTaps);
        for (int i = 0; i < kIn; ++i) {
          evaluate(evaluation, half[i], whole, 1);
          for (int k = 0; k < kIn; ++k)
            for (int64_t j = 0; j < kPanel; ++j)
              packed[(i * kIn + k) * stride + j] = static_cast<float>(whole[k].at[j]);
        }
      }
}

Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  const auto* w = reinterpret_cast<const float*>(source);
  auto* packed = reinterpret_cast<float*>(target);
  if (s.kernel[1] == 3)
    pack_taps<3>(s, w, packed);
  else
    pack_taps<5>(s, w, packed);
  return {};
}

constexpr Row kRows[] = {{"conv", "cpu.winograd", probe, prepare, pack, true}};

}  // namespace

std::span<const Row> conv_winograd_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
