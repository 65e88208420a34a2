// conv(x, w, bias?) in f32 on channels-last operands, 1, 2, 4 or 8 channels of a group: row
// cpu.depthwise_last.
#include <algorithm>

#include "tessera/kernels/cpu/conv_last.h"
#include "tessera/kernels/cpu/families.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kWidest = 8;

Claim probe(const Problem& p) {
  LastConv conv;
  Reason why = check_last(p, conv);
  if (!why.fine()) return why.refusal();
  const ConvShape& s = conv.shape;
  why.need(s.C == s.M && s.M <= kWidest && kChannelBlock % std::max<int64_t>(s.M, 1) == 0,
           "{} channels of a group in and {} out, need the same power of two up to {}", s.C, s.M,
           kWidest);
  why.need(s.kernel[0] == 1 && s.in[0] == 1 && s.out[0] == 1, "three spatial axes, need 1 or 2");
  if (!why.fine()) return why.refusal();
  Claim c = claim(conv_flops(p, s), activation_bytes(p), 0.6, NumericClass::kReassociated);
  c.packed.push_back({1, Bytes(ceil_div(s.G * s.M, kChannelBlock) * kChannelBlock * s.C *
                               product(s.kernel) * int64_t{sizeof(float)})});
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.anchor_result().count() == 0) return launches;
  LastConv conv;
  check_last(p, conv);
  const ConvShape& s = conv.shape;
  DepthwiseLastArgs args{};
  args.shape = s;
  args.x_ld = conv.x_ld;
  args.y_ld = conv.y_ld;
  // Of so many channels the rows of x that an output row reads stay in L1; more items by rows.
  constexpr int64_t kRowFloats = 6 << 10, kLeastChannels = 64, kLeastRows = 4;
  constexpr double kItemFlops = 4e5;
  const int64_t all = s.G * s.M;
  const int64_t row_floats = std::max<int64_t>(1, s.kernel[1] * s.in[2]);
  args.channel_items =
      std::max<int64_t>(1, all / std::max(kRowFloats / row_floats, kLeastChannels));
  args.channels = ceil_div(ceil_div(all, args.channel_items), kChannelBlock) * kChannelBlock;
  args.channel_items = ceil_div(all, args.channels);
  const int64_t target =
      std::clamp<int64_t>(static_cast<int64_t>(conv_flops(p, s) / kItemFlops), 1, 64);
  const int64_t wanted = ceil_div(target, s.N * args.channel_items);
  args.rows = ceil_div(s.out[1], std::clamp<int64_t>(wanted, 1, ceil_div(s.out[1], kLeastRows)));
  args.row_items = ceil_div(s.out[1], args.rows);
  LaunchSpec launch;
  launch.entry = "cpu.depthwise_last";
  launch.grid = items(s.N * args.row_items * args.channel_items, 1);
  launch.arguments = last_arguments(p, args.epilogue);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// (channel of y, channel of the group, row of taps, tap) -> (block, row, channel of the group, tap,
// channel of the block); channels beyond are zero
Status pack(const Problem& p, int, const std::byte* source, std::byte* target) {
  ConvShape s{};
  TRY(fill_shape(p, s));
  const auto* w = reinterpret_cast<const float*>(source);
  auto* packed = reinterpret_cast<float*>(target);
  const int64_t rows = s.kernel[1], taps = s.kernel[2], all = s.G * s.M;
  for (int64_t m = 0; m < all; m += kChannelBlock)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < s.C; ++c)
        for (int64_t t = 0; t < taps; ++t, packed += kChannelBlock)
          for (int64_t i = 0; i < kChannelBlock; ++i)
            packed[i] = m + i < all ? w[(((m + i) * s.C + c) * rows + r) * taps + t] : 0.0f;
  return {};
}

constexpr Row kRows[] = {{"conv", "cpu.depthwise_last", probe, prepare, pack, true}};

}  // namespace

std::span<const Row> conv_last_depthwise_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
