// conv(x, w, bias?) in f32 on channels-last operands: row cpu.conv_last.
#include "tessera/kernels/cpu/conv_last.h"

#include <algorithm>

#include "tessera/kernels/cpu/epilogue.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu {
namespace {

ResultShape result_shape(const Problem& p) {
  return {.dims = p.anchor_result().dims, .channels_last = true};
}

Claim probe(const Problem& p) {
  LastConv conv;
  const Reason why = check_last(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.shape;
  const double m = static_cast<double>(std::max<int64_t>(s.M, 1));
  const double k = static_cast<double>(std::max<int64_t>(s.C * product(s.kernel), 1));
  // Beginning and ending a tile, and each tap, take as long as some steps of its sum; columns come
  // in panels.
  const double steps = 3 + 2 * static_cast<double>(product(s.kernel));
  const double waste = static_cast<double>(panels_of(s.M) * kPanel) / m * (k + steps) / k;
  Claim c = claim(conv_flops(p, s) * waste, bytes_of(p), 0.9, NumericClass::kReassociated);
  c.packed.push_back(
      {1, Bytes((s.G * packed_size(s.C * product(s.kernel), s.M) + s.C) * int64_t{sizeof(float)})});
  return c;
}

// Cuts the work into items: by columns if the weights are the larger part of what is read, so that
// each is read once, else by pixels.
void cut(const Problem& p, ConvLastArgs& a) {
  const ConvShape& s = a.shape;
  constexpr int64_t kTileCols = 3 * kPanel, kLeastPixels = 8;
  constexpr double kItemFlops = 2e6, kStripBytes = 256 << 10;
  const int64_t P = product(s.out);
  const int64_t target =
      std::clamp<int64_t>(static_cast<int64_t>(conv_flops(p, s) / kItemFlops), 1, 32);
  const int64_t wanted = ceil_div(target, std::max<int64_t>(s.N * s.G, 1));
  const int64_t groups = ceil_div(s.M, kTileCols);
  const double x_bytes = static_cast<double>(product(s.in) * s.C) * 4;
  const double w_bytes = static_cast<double>(product(s.kernel) * s.C * s.M) * 4;
  int64_t strips = 1;
  a.col_items = 1;
  if (w_bytes > x_bytes) a.col_items = std::min(wanted, groups);
  strips = std::max(ceil_div(wanted, a.col_items), static_cast<int64_t>(x_bytes / kStripBytes));
  strips = std::clamp<int64_t>(strips, 1, ceil_div(P, kLeastPixels));
  a.cols = ceil_div(ceil_div(s.M, a.col_items), kPanel) * kPanel;
  a.col_items = ceil_div(s.M, a.cols);
  a.pixels = ceil_div(P, strips);
  if (a.pixels > s.out[2])
    a.pixels = ceil_div(a.pixels, s.out[2]) * s.out[2];
  else if (a.pixels > kLeastPixels)
    a.pixels = ceil_div(a.pixels, kLeastPixels) * kLeastPixels;
  a.pixel_items = ceil_div(P, a.pixels);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  check_last(p, conv);
  ConvLastArgs args{};
  args.shape = conv.shape;
  args.x_ld = conv.x_ld;
  args.y_ld = conv.y_ld;
  ConvShape& s = args.shape;
  args.flat = is_flat(s);
  if (args.flat) flatten(s);
  cut(p, args);
  LaunchSpec launch;
  launch.entry = "cpu.conv_last";
  launch.grid = items(s.N * s.G * args.pixel_items * args.col_items, 1);
  launch.arguments = last_arguments(p, args.epilogue);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// The weights, then zeros that stand for padding.
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  float* end =
      pack_taps(s, reinterpret_cast<const float*>(source), reinterpret_cast<float*>(target));
  std::fill(end, end + s.C, 0.0f);
  return {};
}

constexpr Row kRows[] = {{"conv", "cpu.conv_last", probe, prepare, pack, true}};

}  // namespace

Reason check_last(const Problem& p, LastConv& conv) {
  Reason why = check_last_output(p, conv);
  if (!why.fine()) return why;
  const std::string text = not_channels_last(p.in[0], "input 0", conv.x_ld);
  why.need(text.empty(), "{}", text);
  return why;
}

Reason check_last_output(const Problem& p, LastConv& conv) {
  Reason why = check_conv(p, conv.shape);
  why.need(p.in[1].constant, "the weights are not constant") &&
      why.need(p.in[1].layout.empty() && p.in[1].strides.empty(), "the weights are not row-major");
  if (why.fine() && p.has(2))
    why.need(p.in[2].layout.empty() && p.in[2].strides.empty(), "the bias is strided");
  if (why.fine()) {
    const std::string text = not_channels_last(p.out[0], "output 0", conv.y_ld);
    why.need(text.empty(), "{}", text);
  }
  if (why.fine()) {
    const std::string text = no_epilogue(p, result_shape(p));
    why.need(text.empty(), "{}", text);
  }
  why.need(!p.has(2) || p.steps.size() < kMaxEpilogue, "a bias and {} steps, need at most {}",
           p.steps.size(), kMaxEpilogue);
  return why;
}

std::vector<Argument> last_arguments(const Problem& p, Epilogue& epilogue) {
  std::vector<Argument> list{
      {Argument::kInput, 0, 0}, {Argument::kPacked, 0, 0}, {Argument::kOutput, 0, 0}};
  make_epilogue(p, result_shape(p), list, epilogue);
  if (!p.has(2)) return list;
  std::move_backward(epilogue.steps, epilogue.steps + epilogue.count,
                     epilogue.steps + epilogue.count + 1);
  ++epilogue.count;
  epilogue.steps[0] = {.function = Function::kAdd,
                       .broadcast = Broadcast::kCols,
                       .range = static_cast<int32_t>(list.size()),
                       .swapped = 0,
                       .ld = 0,
                       .params = {}};
  list.push_back({Argument::kInput, 2, 0});
  return list;
}

float* pack_taps(const ConvShape& s, const float* w, float* packed) {
  const int64_t taps = product(s.kernel), K = taps * s.C;
  for (int64_t g = 0; g < s.G; ++g, w += s.M * K)
    for (int64_t m = 0; m < s.M; m += kPanel)
      for (int64_t t = 0; t < taps; ++t, packed += s.C * kPanel)
        pack_panels(w + m * K + t, taps, K, s.C, std::min(kPanel, s.M - m), packed);
  return packed;
}

double activation_bytes(const Problem& p) {
  double sum = bytes_of(p);
  return sum - bytes_of(p.in[1]);
}

std::span<const Row> conv_last_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
