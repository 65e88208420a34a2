// Pooling on channels-last operands: a vector of channels of up to kRun windows of a row at a time,
// in registers.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/epilogue.h"
#include "tessera/kernels/cpu/pool_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kRun = 4;

struct Max {
  static constexpr float kStart = -__builtin_inff();
  // NaN wins.
  TESSERA_INLINE Vec fold(Vec a, Vec b) { return b != b ? b : max_of(b, a); }
};
struct Sum {
  static constexpr float kStart = 0;
  TESSERA_INLINE Vec fold(Vec a, Vec b) { return a + b; }
};

// Indices i in [first, last) with 0 <= i * step + offset < size.
struct Inside {
  int64_t first, last;
};
Inside inside(int64_t count, int64_t step, int64_t offset, int64_t size) {
  const int64_t first = offset >= 0 ? 0 : least(count, (-offset + step - 1) / step);
  const int64_t room = size - offset;
  return {first, most(first, room <= 0 ? 0 : least(count, (room + step - 1) / step))};
}

// Windows of neighbours in a row, `lanes` channels.
struct Windows {
  const float* x;              // of the first tap of the first window, which may lie outside
  int64_t x_tap, x_next;       // floats to the next tap of a row, to the next window
  int64_t x_row, x_plane;      // to the next row and plane of taps
  int64_t planes, rows, taps;  // planes and rows of taps that are inside; taps of a row
  int64_t column, tap_columns, next_columns, width;  // of x; columns to the next tap, window
  float* y;
  int64_t y_ld;
  const float* scale;  // per window; null: 1
  int lanes;
};

template <class Fold, int T, bool kWhole>
void windows(const Windows& r) {
  const Part part(r.lanes);
  Vec sum[T];
  TESSERA_UNROLL
  for (int t = 0; t < T; ++t) sum[t] = splat(Fold::kStart);
  for (int64_t d = 0; d < r.planes; ++d)
    for (int64_t h = 0; h < r.rows; ++h) {
      const float* row = r.x + d * r.x_plane + h * r.x_row;
      for (int64_t k = 0; k < r.taps; ++k) {
        const float* at = row + k * r.x_tap;
        int64_t column = r.column + k * r.tap_columns;
        TESSERA_UNROLL
        for (int t = 0; t < T; ++t, at += r.x_next, column += r.next_columns) {
          if constexpr (kWhole)
            sum[t] = Fold::fold(sum[t], load(at));
          else if (static_cast<uint64_t>(column) < static_cast<uint64_t>(r.width))
            sum[t] = Fold::fold(sum[t], part.load(at));
        }
      }
    }
  float* y = r.y;
  TESSERA_UNROLL
  for (int t = 0; t < T; ++t, y += r.y_ld) {
    if (r.scale) sum[t] /= splat(r.scale[t]);
    if (kWhole)
      store(y, sum[t]);
    else
      part.store(y, sum[t]);
  }
}

using WindowsFn = void (*)(const Windows&);
template <class Fold>
constexpr WindowsFn kFns[kRun + 1][2] = {{nullptr, nullptr},
                                         {windows<Fold, 1, false>, windows<Fold, 1, true>},
                                         {windows<Fold, 2, false>, windows<Fold, 2, true>},
                                         {windows<Fold, 3, false>, windows<Fold, 3, true>},
                                         {windows<Fold, 4, false>, windows<Fold, 4, true>}};

// Taps of window `o` along an axis that count in an average.
int64_t counted(const PoolArgs& a, int axis, int64_t o) {
  const int64_t start = o * a.stride[axis];
  const Inside i = a.count_padding
                       ? inside(a.kernel[axis], a.dilation[axis], start,
                                a.in[axis] + a.pad[axis] + a.pad_end[axis])
                       : inside(a.kernel[axis], a.dilation[axis], start - a.pad[axis], a.in[axis]);
  return i.last - i.first;
}

// Channels [c0, c1) of an output row of an image.
template <class Fold>
void output_row(const PoolLastArgs& args, const float* x, int64_t row, int64_t c0, int64_t c1,
                float* y) {
  const PoolArgs& a = args.pool;
  const int64_t od = row / a.out[1], oh = row % a.out[1];
  const int64_t d0 = od * a.stride[0] - a.pad[0], h0 = oh * a.stride[1] - a.pad[1];
  const Inside ds = inside(a.kernel[0], a.dilation[0], d0, a.in[0]),
               hs = inside(a.kernel[1], a.dilation[1], h0, a.in[1]);
  const bool averages = a.kind == PoolKind::kAverage;
  const int64_t lead = averages ? counted(a, 0, od) * counted(a, 1, oh) : 0;
  float scale[kRun];
  Windows r;
  r.x_tap = a.dilation[2] * args.x_ld;
  r.x_next = a.stride[2] * args.x_ld;
  r.x_row = a.dilation[1] * a.in[2] * args.x_ld;
  r.x_plane = a.dilation[0] * a.in[1] * a.in[2] * args.x_ld;
  r.planes = ds.last - ds.first;
  r.rows = hs.last - hs.first;
  r.taps = a.kernel[2];
  r.tap_columns = a.dilation[2];
  r.next_columns = a.stride[2];
  r.width = a.in[2];
  r.y_ld = args.y_ld;
  r.scale = averages ? scale : nullptr;
  const int64_t plane = d0 + ds.first * a.dilation[0], first_row = h0 + hs.first * a.dilation[1];
  for (int64_t o = 0; o < a.out[2]; o += kRun) {
    const int64_t count = least<int64_t>(kRun, a.out[2] - o);
    for (int64_t t = 0; averages && t < count; ++t)
      scale[t] = static_cast<float>(lead * counted(a, 2, o + t));
    r.column = o * a.stride[2] - a.pad[2];
    const bool whole =
        r.column >= 0 &&
        r.column + (count - 1) * a.stride[2] + (a.kernel[2] - 1) * a.dilation[2] < a.in[2];
    const float* from = x + ((plane * a.in[1] + first_row) * a.in[2] + r.column) * args.x_ld;
    for (int64_t c = c0; c < c1; c += kLanes) {
      r.x = from + c;
      r.y = y + (row * a.out[2] + o) * args.y_ld + c;
      r.lanes = static_cast<int>(least<int64_t>(kLanes, c1 - c));
      kFns<Fold>[count][whole && r.lanes == kLanes](r);
    }
  }
}

}  // namespace

void pool_last(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const PoolLastArgs*>(launch->constants);
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  float* y = static_cast<float*>(launch->ranges[1].data);
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  const int64_t in = a.pool.in[0] * a.pool.in[1] * a.pool.in[2],
                all = a.pool.out[0] * a.pool.out[1];
  for (uint32_t i = first; i < first + count; ++i) {
    int64_t rest = i;
    const int64_t channels = rest % a.channel_items;
    rest /= a.channel_items;
    const int64_t rows = rest % a.row_items, n = rest / a.row_items;
    const int64_t c0 = channels * a.channels, c1 = least(a.all_channels, c0 + a.channels);
    const float* image = x + n * in * a.x_ld;
    float* to = y + n * all * a.pool.out[2] * a.y_ld;
    for (int64_t row = rows * a.rows; row < least(all, (rows + 1) * a.rows); ++row) {
      (a.pool.kind == PoolKind::kMax ? output_row<Max> : output_row<Sum>)(a, image, row, c0, c1,
                                                                          to);
      if (epilogue.count > 0)
        apply_rows(epilogue, 0, (n * all + row) * a.pool.out[2], c0, a.pool.out[2], c1 - c0,
                   to + row * a.pool.out[2] * a.y_ld + c0, a.y_ld);
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
