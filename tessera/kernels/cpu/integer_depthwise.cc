// conv_integer with one channel per group, channels-last: row cpu.integer_depthwise.
#include <algorithm>

#include "tessera/kernels/cpu/conv_shape.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/integer.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kMaxTaps = 256;

int64_t blocks_of(const ConvShape& s) { return ceil_div(s.G, kIntegerChannels); }
int64_t quads_of(const ConvShape& s) { return ceil_div(product(s.kernel), kQuad); }

Reason check(const Problem& p, IntegerDepthwiseArgs& a) {
  ConvShape& s = a.shape;
  Reason why = check_integer_conv(p, 2, s);
  if (!why.fine()) return why;
  why.need(s.C == 1 && s.M == 1, "{} channels of a group in and {} out, need 1", s.C, s.M);
  why.need(product(s.kernel) <= kMaxTaps, "{} taps, need at most {}", product(s.kernel), kMaxTaps);
  if (!why.fine()) return why;
  why = check_integer(p, s.G);
  const std::string refusal =
      no_integer_result(p, {.dims = p.anchor_result().dims, .channels_last = true});
  why.need(refusal.empty(), "{}", refusal);
  for (auto [o, name, ld] :
       {std::tuple{&p.in[0], "input 0", &a.x_ld}, std::tuple{&p.out[0], "output 0", &a.y_ld}})
    if (why.fine()) {
      const std::string text = not_channels_last(*o, name, *ld);
      why.need(text.empty(), "{}", text);
    }
  return why;
}

Claim probe(const Problem& p) {
  IntegerDepthwiseArgs args{};
  const Reason why = check(p, args);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = args.shape;
  // Channels are taken by blocks, taps by quads.
  constexpr int64_t kBlock = 4 * kIntegerChannels;
  constexpr double kBehind = 12;
  const double g = static_cast<double>(std::max<int64_t>(s.G, 1)),
               padded = static_cast<double>(ceil_div(s.G, kBlock) * kBlock),
               sums = static_cast<double>(p.anchor_result().count()) * padded / g;
  Claim c = claim(2 * sums * (static_cast<double>(quads_of(s) * kQuad) + kBehind), bytes_of(p), 0.7,
                  integer_class(p));
  c.packed.push_back({1, Bytes(blocks_of(s) * kIntegerChannels * (quads_of(s) * kQuad + 4))});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  IntegerDepthwiseArgs args{};
  check(p, args);
  const ConvShape& s = args.shape;
  constexpr int64_t kItemProducts = 400000;
  const int64_t row = s.out[2] * s.G * product(s.kernel);
  args.rows = std::clamp<int64_t>(kItemProducts / std::max<int64_t>(row, 1), 1, s.out[1]);
  args.row_items = ceil_div(s.out[1], args.rows);
  args.channels = ceil_div(s.G, 64) * 64;
  args.channel_items = 1;
  LaunchSpec launch;
  launch.entry = "cpu.integer_depthwise";
  launch.grid = items(s.N * args.row_items * args.channel_items, 1);
  launch.arguments = {
      {Argument::kInput, 0, 0}, {Argument::kPacked, 0, 0}, {Argument::kOutput, 0, 0}};
  make_integer(p, {.dims = p.anchor_result().dims, .channels_last = true}, launch.arguments,
               args.terms, args.result);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// (g, tap) -> (block, quad of taps, group of the block, tap of the quad), then the sums.
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  IntegerDepthwiseArgs args{};
  check(p, args);
  const ConvShape& s = args.shape;
  IntegerPack signs{};
  set_signs(p, signs);
  const int64_t taps = product(s.kernel), quads = quads_of(s), blocks = blocks_of(s);
  const auto* w = reinterpret_cast<const uint8_t*>(source);
  auto* packed = reinterpret_cast<uint8_t*>(target);
  const int64_t block = quads * kQuad * kIntegerChannels;
  auto* sums = reinterpret_cast<int32_t*>(packed + blocks * block);
  std::fill_n(packed, blocks * block, uint8_t{0});
  std::fill_n(sums, blocks * kIntegerChannels, 0);
  for (int64_t g = 0; g < s.G; ++g)
    for (int64_t t = 0; t < taps; ++t) {
      const auto byte = static_cast<uint8_t>(w[g * taps + t] + signs.moved);
      packed[g / kIntegerChannels * block + t / kQuad * kQuad * kIntegerChannels +
             g % kIntegerChannels * kQuad + t % kQuad] = byte;
      sums[g] += signs.stored_signed ? static_cast<int8_t>(byte) : int32_t{byte};
    }
  return {};
}

constexpr Row kRows[] = {{"conv_integer", "cpu.integer_depthwise", probe, prepare, pack, true}};

}  // namespace

std::span<const Row> integer_depthwise_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
