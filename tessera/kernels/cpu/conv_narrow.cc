// conv(x, w, bias?) of f32 on channels-last operands, with weights held in 16 bits. Rows
// cpu.conv_bf16 and cpu.conv_f16: a window of one pixel, as a product of pixels (P, C) and weights
// (C, M) by the entries of dot_narrow.cc. Row cpu.conv_window_bf16: other windows, in a copy of x
// in bf16 with padding; for units that multiply so much faster than f32 that it beats Winograd.
#include <algorithm>
#include <vector>

#include "tessera/kernels/cpu/conv_last.h"
#include "tessera/kernels/cpu/dot.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/narrow.h"

namespace tessera::kernels::cpu {
namespace {

bool reads_inside(const ConvShape& s) {
  for (int i = 0; i < 3; ++i)
    if (s.pad[i] != 0 || (s.out[i] - 1) * s.stride[i] >= std::max<int64_t>(s.in[i], 1))
      return false;
  return true;
}

Reason fit(const Problem& p, LastConv& conv) {
  Reason why = check_last(p, conv);
  if (!why.fine()) return why;
  const ConvShape& s = conv.shape;
  why.need(product(s.kernel) == 1, "the window has {} pixels, need 1", product(s.kernel)) &&
      why.need(reads_inside(s), "the input is padded") &&
      why.need(s.G == 1, "{} groups, need 1", s.G) &&
      why.need(s.M > 1 && s.C > 0, "{} channels to {}, need more than one", s.C, s.M);
  return why;
}

// All but items and epilogue: all pixels are rows of one product if none is left out, else those of
// a row of the plane.
void fill(const LastConv& conv, GemmArgs& g) {
  const ConvShape& s = conv.shape;
  Products& r = g.products;
  const bool flat = is_flat(s);
  r.M = flat ? s.N * product(s.out) : s.out[2];
  r.N = s.M;
  r.K = s.C;
  g.a_row = flat ? conv.x_ld : s.stride[2] * conv.x_ld;
  g.a_col = 1;
  g.b_row = 1;
  g.b_col = s.C;
  g.y_row = conv.y_ld;
  g.right = RightSide::kPanels;
  if (flat) return;
  const int64_t rows = s.in[2] * conv.x_ld, to = s.out[2] * conv.y_ld;
  r.batch_rank = 3;
  const int64_t dims[] = {s.N, s.out[0], s.out[1]},
                a[] = {product(s.in) * conv.x_ld, s.stride[0] * s.in[1] * rows, s.stride[1] * rows},
                y[] = {s.out[0] * s.out[1] * to, s.out[1] * to, to};
  std::copy_n(dims, 3, r.batch_dims);
  std::copy_n(a, 3, r.a_batch);
  std::copy_n(y, 3, r.y_batch);
}

Claim probe(const Problem& p) {
  LastConv conv;
  const Reason why = fit(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.shape;
  GemmArgs g{};
  fill(conv, g);
  const double rows = static_cast<double>(std::max<int64_t>(g.products.M, 1)),
               whole = static_cast<double>(panels_of(s.M) * kPanel);
  Claim c = claim(conv_flops(p, s), bytes_of(p) - bytes_of(p.in[1]) / 2,
                  0.85 * static_cast<double>(s.M) / whole * rows / (rows + 1),
                  NumericClass::kReassociated);
  c.packed.push_back({1, Bytes(narrow_size(s.C, s.M) * 2)});
  return c;
}

Claim probe_bf16(const Problem& p) {
  Claim c = probe(p);
  LastConv conv;
  if (!c.supported() || !fit(p, conv).fine()) return c;
  GemmArgs g{};
  fill(conv, g);
  c.workspace = narrow_workspace(p, g.products);
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, std::string_view entry) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  fit(p, conv);
  GemmArgs g{};
  fill(conv, g);
  LaunchSpec launch;
  launch.entry = entry;
  launch.arguments = last_arguments(p, g.epilogue);
  return narrow_launches(p, std::move(launch), g);
}

Result<std::vector<LaunchSpec>> prepare_bf16(const Problem& p, const Claim&) {
  return prepare(p, "cpu.gemm_bf16");
}
Result<std::vector<LaunchSpec>> prepare_f16(const Problem& p, const Claim&) {
  return prepare(p, "cpu.gemm_f16");
}

template <auto kPack>
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  kPack(reinterpret_cast<const float*>(source), 1, s.C, s.C, s.M,
        reinterpret_cast<uint16_t*>(target));
  return {};
}

// ---- windows

constexpr int64_t kMostTaps = 128;

// Whether a row of a window is one pixel of the copy: in fewer tiles, and no rounds of them for x
// with many channels.
bool runs(const ConvShape& s) {
  constexpr int64_t kMostChannels = 16;
  const int64_t taps = s.kernel[2];
  return taps > 1 && s.dilation[2] == 1 && s.C <= kMostChannels &&
         depth_tiles(taps * s.C) < taps * depth_tiles(s.C) &&
         ((s.out[2] - 1) * s.stride[2] + taps) * s.C <= kNarrowLine;
}

Reason fit_window(const Problem& p, LastConv& conv) {
  Reason why = check_last_output(p, conv);
  if (!why.fine()) return why;
  const ConvShape& s = conv.shape;
  if (!p.in[0].layout.empty() || !runs(s)) {
    const std::string text = not_channels_last(p.in[0], "input 0", conv.x_ld);
    why.need(text.empty(), "{}", text);
  } else {
    why.need(p.in[0].strides.empty(), "input 0 is row-major and strided");
  }
  why.need(product(s.kernel) > 1 || !reads_inside(s), "the window is one pixel") &&
      why.need(product(s.kernel) <= kMostTaps, "{} taps, need at most {}", product(s.kernel),
               kMostTaps) &&
      why.need(s.G == 1, "{} groups, need 1", s.G) &&
      why.need(s.M > 1 && s.C > 0, "{} channels to {}, need more than one", s.C, s.M);
  return why;
}

void fill_window(const Problem& p, const LastConv& conv, NarrowConvArgs& a) {
  ConvShape& s = a.shape = conv.shape;
  const bool row_major = p.in[0].layout.empty();
  a.x_ld = row_major ? 1 : conv.x_ld;
  a.x_channel = row_major ? product(s.in) : 1;
  a.x_row = s.in[2] * a.x_ld;
  a.x_image = row_major ? product(s.in) * s.C : product(s.in) * a.x_ld;
  a.y_ld = conv.y_ld;
  a.run = 1;
  if (runs(s)) {
    a.run = s.kernel[2];
    a.run_stride = s.stride[2];
    a.run_pad = s.pad[2];
    a.x_width = s.in[2];
    s.C *= a.run;
    s.kernel[2] = s.stride[2] = 1;
    s.pad[2] = 0;
    s.in[2] = s.out[2];
  }
  a.depth = depth_tiles(s.C) * kTileDepth;
  for (int i = 0; i < 3; ++i)
    a.extent[i] = std::max(s.pad[i] + s.in[i],
                           (s.out[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1);
  a.height = tile_height(s.out[2]);
}

// Elements of x in bf16, with what a tile may read behind it.
int64_t pixels_size(const NarrowConvArgs& a) {
  return (a.shape.N * product(a.extent) + a.height * a.shape.stride[2]) * a.depth;
}

// Elements of a panel of weights.
int64_t window_panel(const NarrowConvArgs& a) { return product(a.shape.kernel) * a.depth * kPanel; }

void cut_window(NarrowConvArgs& a) {
  constexpr double kProducts = 1e7;  // of an item
  constexpr int64_t kLeastCols = 64;
  const ConvShape& s = a.shape;
  const int64_t rows = s.out[0] * s.out[1], panels = panels_of(s.M);
  const double products =
      static_cast<double>(rows * s.out[2] * panels) * static_cast<double>(window_panel(a));
  const int64_t wanted = ceil_div(
      static_cast<int64_t>(std::clamp(products * static_cast<double>(s.N) / kProducts, 1.0, 32.0)),
      std::max<int64_t>(s.N, 1));
  a.col_items = panels * window_panel(a) > product(a.extent) * a.depth
                    ? std::min(wanted, ceil_div(s.M, kLeastCols))
                    : 1;
  a.cols = ceil_div(ceil_div(s.M, a.col_items), 2 * kPanel) * 2 * kPanel;
  a.col_items = ceil_div(s.M, a.cols);
  a.rows = ceil_div(rows, std::clamp<int64_t>(ceil_div(wanted, a.col_items), 1, rows));
  a.row_items = ceil_div(rows, a.rows);
}

Claim probe_window(const Problem& p) {
  LastConv conv;
  const Reason why = fit_window(p, conv);
  if (!why.fine()) return why.refusal();
  NarrowConvArgs a{};
  fill_window(p, conv, a);
  const ConvShape& s = a.shape;
  const double padded =
      static_cast<double>(panels_of(s.M) * kPanel * a.depth) / static_cast<double>(s.M * s.C);
  const double copied = 2.0 * static_cast<double>(pixels_size(a));  // bytes
  Claim c =
      claim(conv_flops(p, s) * padded, bytes_of(p) + 2 * copied, 0.25, NumericClass::kReassociated);
  c.packed.push_back({1, Bytes(panels_of(s.M) * window_panel(a) * 2)});
  c.workspace = Bytes(2 * pixels_size(a));
  return c;
}

Result<std::vector<LaunchSpec>> prepare_window(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  fit_window(p, conv);
  NarrowConvArgs args{};
  fill_window(p, conv, args);
  cut_window(args);
  const ConvShape& s = args.shape;
  LaunchSpec round;
  round.entry = "cpu.narrow_pixels";
  round.grid = items(s.N * args.extent[0] * args.extent[1], 1);
  round.arguments = {{Argument::kInput, 0, 0}, {Argument::kWorkspace, 0, 0}};
  round.set_constants(args);
  LaunchSpec launch;
  launch.entry = "cpu.narrow_conv";
  launch.grid = items(s.N * args.row_items * args.col_items, 1);
  launch.arguments = last_arguments(p, args.epilogue);
  launch.arguments[0] = {Argument::kWorkspace, 0, 0};
  launch.set_constants(args);
  launches.push_back(std::move(round));
  launches.push_back(std::move(launch));
  return launches;
}

Status pack_window(const Problem& p, int, const std::byte* source, std::byte* target) {
  LastConv conv{};
  TRY(fill_shape(p, conv.shape));
  NarrowConvArgs a{};
  fill_window(p, conv, a);
  const ConvShape& s = a.shape;
  const auto* w = reinterpret_cast<const float*>(source);
  auto* to = reinterpret_cast<uint16_t*>(target);
  // Channels of a run: (column of the window, channel) of w (M, channel, row, column).
  const int64_t rows = product(s.kernel), taps = rows * a.run, C = s.C / a.run;
  std::vector<float> columns(static_cast<size_t>(s.C * kPanel));
  for (int64_t m = 0; m < s.M; m += kPanel)
    for (int64_t t = 0; t < rows; ++t, to += a.depth * kPanel) {
      const int64_t cols = std::min(kPanel, s.M - m);
      for (int64_t k = 0; k < s.C; ++k)
        for (int64_t j = 0; j < cols; ++j)
          columns[static_cast<size_t>(k * kPanel + j)] =
              w[((m + j) * C + k % C) * taps + t * a.run + k / C];
      pack_bf16(columns.data(), kPanel, 1, s.C, cols, to);
    }
  return {};
}

constexpr Row kRows[] = {
    {"conv", "cpu.conv_bf16", probe_bf16, prepare_bf16, pack<pack_bf16>, true, DType::kBF16},
    {"conv", "cpu.conv_f16", probe, prepare_f16, pack<pack_f16>, true, DType::kF16},
    {"conv", "cpu.conv_window_bf16", probe_window, prepare_window, pack_window, true, DType::kBF16},
};

}  // namespace

std::span<const Row> conv_narrow_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
