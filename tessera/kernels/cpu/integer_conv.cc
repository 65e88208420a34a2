// conv_integer(x, w, x_zero?, w_zero?, bias?) and the steps behind it, on channels-last results:
// row cpu.integer_conv.
#include <algorithm>

#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/integer.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kMaxTaps = 1024;
constexpr int64_t kFewChannels = 8;  // of a row-major x
constexpr double kProducts = 4e6;    // of an item, about ten microseconds
constexpr int64_t kTileCols = 64;

struct Conv {
  IntegerConvArgs args{};
  IntegerPack pack{};
};

// Whether all windows lie inside of x.
bool inside(const ConvShape& s) {
  for (int i = 0; i < 3; ++i)
    if (s.pad[i] > 0 ||
        (s.out[i] - 1) * s.stride[i] - s.pad[i] + (s.kernel[i] - 1) * s.dilation[i] >= s.in[i])
      return false;
  return true;
}

int64_t copied_bytes(const ConvShape& s, const int64_t* block) {
  int64_t bytes = s.C;
  for (int i = 0; i < 3; ++i)
    bytes *= (block[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1;
  return bytes;
}

// Sets where pixels lie.
Reason place(const Problem& p, IntegerConvArgs& a) {
  Reason why;
  const ConvShape& s = a.shape;
  const Operand& x = p.in[0];
  const int64_t rank = x.rank();
  int64_t ld = 0;
  const std::string last = not_channels_last(x, "input 0", ld);
  if (last.empty()) {
    a.x_channel = 1;
    a.x_step[2] = ld;
    a.x_step[1] = s.in[2] * a.x_step[2];
    a.x_step[0] = s.in[1] * a.x_step[1];
    a.x_batch = s.in[0] * a.x_step[0];
  } else {
    why.need(x.layout.empty() && s.C * s.G <= kFewChannels, "{}", last);
    if (!why.fine()) return why;
    const Dims strides = x.strides.empty() ? op::strides_of(x.dims) : x.strides;
    a.x_batch = strides[0];
    a.x_channel = strides[1];
    a.x_step[2] = strides[static_cast<size_t>(rank) - 1];
    a.x_step[1] = rank > 3 ? strides[static_cast<size_t>(rank) - 2] : 0;
    a.x_step[0] = rank > 4 ? strides[2] : 0;
  }
  const std::string text = not_channels_last(p.out[0], "output 0", a.y_ld);
  why.need(text.empty(), "{}", text);
  return why;
}

// Weights: (M, C, taps).
void set_pack(const Problem& p, const IntegerConvArgs& a, IntegerPack& pack) {
  const ConvShape& s = a.shape;
  const int64_t taps = product(s.kernel), row = a.merged ? s.kernel[2] : 1;
  pack = {.terms = taps / row,
          .term_stride = row,
          .outer = row,
          .outer_stride = 1,
          .inner = s.C,
          .inner_stride = taps,
          .columns = s.M,
          .column_stride = s.C * taps,
          .moved = 0,
          .stored_signed = 0};
  set_signs(p, pack);
}

Reason check(const Problem& p, Conv& conv) {
  IntegerConvArgs& a = conv.args;
  ConvShape& s = a.shape;
  Reason why = check_integer_conv(p, 3, s);
  if (!why.fine()) return why;
  why = check_integer(p, s.M * s.G);
  const std::string refusal =
      no_integer_result(p, {.dims = p.anchor_result().dims, .channels_last = true});
  why.need(refusal.empty(), "{}", refusal);
  if (why.fine()) why = place(p, a);
  why.need(product(s.kernel) <= kMaxTaps, "{} taps, need at most {}", product(s.kernel), kMaxTaps);
  if (!why.fine()) return why;
  // Taps of a row are neighbours, in a copy at the latest.
  a.merged = s.kernel[2] > 1 && s.dilation[2] == 1;
  a.copies = !inside(s) || a.x_channel != 1 || (a.merged && a.x_step[2] != s.C);
  constexpr int64_t kOne[3] = {1, 1, 1};
  why.need(!a.copies || copied_bytes(s, kOne) <= kIntegerCopy,
           "a window spans {} bytes, need at most {}", copied_bytes(s, kOne), kIntegerCopy);
  set_pack(p, a, conv.pack);
  return why;
}

Claim probe(const Problem& p) {
  Conv conv;
  const Reason why = check(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.args.shape;
  // What is behind a sum, and its beginning, take as long as so many products.
  constexpr double kBehind = 48;
  const double m = static_cast<double>(std::max<int64_t>(s.M, 1)),
               padded = static_cast<double>(panels_of(s.M) * kPanel),
               sums = static_cast<double>(p.anchor_result().count()) * padded / m,
               k = static_cast<double>(s.C * product(s.kernel));
  Claim c = claim(2 * sums * (k + kBehind), bytes_of(p), 1, integer_class(p));
  c.packed.push_back({1, Bytes(s.G * packed_bytes(conv.pack) + kTileSlack)});
  return c;
}

// Blocks of whole rows, or of parts of one row.
void cut(const Problem& p, IntegerConvArgs& a) {
  const ConvShape& s = a.shape;
  const int64_t P = product(s.out);
  const auto wanted = static_cast<int64_t>(std::clamp(conv_flops(p, s) / 2 / kProducts, 1.0, 32.0) /
                                           static_cast<double>(s.N * s.G)) +
                      1;
  const int64_t x_bytes = product(s.in) * s.C, w_bytes = product(s.kernel) * s.C * s.M;
  a.col_items = w_bytes > x_bytes ? std::min(wanted, ceil_div(s.M, kTileCols)) : 1;
  a.cols = ceil_div(ceil_div(s.M, a.col_items), kPanel) * kPanel;
  a.col_items = ceil_div(s.M, a.cols);
  const int64_t pixels =
      std::clamp<int64_t>(ceil_div(P, ceil_div(wanted, a.col_items)), 1, kIntegerPixels);
  auto fits = [&] { return !a.copies || copied_bytes(s, a.block) <= kIntegerCopy; };
  a.block[0] = a.block[1] = 1;
  a.block[2] = std::min(s.out[2], std::max<int64_t>(pixels, std::min<int64_t>(s.out[2], 64)));
  while (a.block[2] > 1 && !fits()) a.block[2] = ceil_div(a.block[2], 2);
  if (a.block[2] == s.out[2]) {
    a.block[1] = std::clamp<int64_t>(pixels / s.out[2], 1, s.out[1]);
    while (a.block[1] > 1 && !fits()) --a.block[1];
  }
  if (a.block[2] == s.out[2] && a.block[1] == s.out[1]) {
    a.block[0] = std::clamp<int64_t>(pixels / (s.out[1] * s.out[2]), 1, s.out[0]);
    while (a.block[0] > 1 && !fits()) --a.block[0];
  }
  for (int i = 0; i < 3; ++i) a.blocks[i] = ceil_div(s.out[i], a.block[i]);
  // Of about the same size.
  for (int i = 0; i < 3; ++i) a.block[i] = ceil_div(s.out[i], a.blocks[i]);
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  Conv conv;
  check(p, conv);
  IntegerConvArgs& args = conv.args;
  ConvShape& s = args.shape;
  if (is_flat(s) && !args.copies) flatten(s);
  cut(p, args);
  LaunchSpec launch;
  launch.entry = "cpu.integer_conv";
  launch.grid =
      items(s.N * s.G * args.blocks[0] * args.blocks[1] * args.blocks[2] * args.col_items, 1);
  launch.arguments = {
      {Argument::kInput, 0, 0}, {Argument::kPacked, 0, 0}, {Argument::kOutput, 0, 0}};
  make_integer(p, {.dims = p.anchor_result().dims, .channels_last = true}, launch.arguments,
               args.terms, args.result);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  Conv conv;
  check(p, conv);
  const ConvShape& s = conv.args.shape;
  const auto* w = reinterpret_cast<const uint8_t*>(source);
  auto* packed = reinterpret_cast<uint8_t*>(target);
  for (int64_t g = 0; g < s.G; ++g)
    pack_integer(conv.pack, w + g * s.M * conv.pack.column_stride,
                 packed + g * packed_bytes(conv.pack));
  return {};
}

constexpr Row kRows[] = {{"conv_integer", "cpu.integer_conv", probe, prepare, pack, true}};

}  // namespace

std::span<const Row> integer_conv_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
