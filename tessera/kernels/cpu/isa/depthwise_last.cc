// Convolution of narrow groups (depthwise: of one channel) on channels-last operands: a vector of
// channels of up to kMaxRun output pixels of a row at a time, in registers. A pixel of x is loaded
// once for all taps of a row that meet it; of wider groups once for each channel of a group, which
// is spread over the lanes of its group.
#include "tessera/kernels/cpu/isa/depthwise_last.h"

#include "tessera/kernels/cpu/isa/entries.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kMaxRun = 8;

enum class Activation { kNone, kAtLeast, kClamp, kHardSwish };

// What the first steps of an epilogue do to a run in registers.
struct Finish {
  const float* bias;  // per channel; null: none
  Activation activation;
  float low, high;  // at least, clamp
  float p, q;       // hard swish: x * clamp(p x + q, 0, 1)
  int steps;        // so many of the epilogue are done by this
};

Finish finish_of(const BoundEpilogue& e) {
  constexpr float kInfinity = __builtin_inff();
  Finish f{nullptr, Activation::kNone, -kInfinity, kInfinity, 0, 0, 0};
  const auto next = [&](Fused fused) {
    return f.steps < e.count && e.steps[f.steps].fused == fused ? &e.steps[f.steps++] : nullptr;
  };
  if (const BoundStep* s = next(Fused::kAddCols)) f.bias = s->operand;
  const BoundStep* low = next(Fused::kMaxScalar);
  const BoundStep* high = next(Fused::kMinScalar);
  if (low) f.low = low->scalar;
  if (high) f.high = high->scalar;
  if (low || high) {
    f.activation = high ? Activation::kClamp : Activation::kAtLeast;
  } else if (const BoundStep* s = next(Fused::kHardSwish)) {
    f.activation = Activation::kHardSwish;
    f.p = s->params[0];
    f.q = s->params[1];
  }
  return f;
}

// A vector of channels of a pixel of x; null: outside, zeros.
struct Pixel {
  const float* at;
  Vec v;
};

// Spreads channel k of each group over the group's lanes.
class Spread {
 public:
  // For vectors that begin at a channel of a group that leaves `phase` over m.
  Spread(int64_t m, int64_t phase) {
    for (int l = 0; l < kLanes; ++l) from_[l] = static_cast<int32_t>((phase + l) / m * m - phase);
  }
#if defined(__AVX512F__)
  Vec of(const Pixel& x, int, int64_t k) const {
    const __m512i from =
        _mm512_add_epi32(_mm512_load_si512(from_), _mm512_set1_epi32(static_cast<int>(k)));
    return _mm512_maskz_permutexvar_ps(0xffff, from, x.v);
  }
#elif defined(__AVX2__)
  Vec of(const Pixel& x, int, int64_t k) const {
    const __m256i from =
        _mm256_add_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(from_)),
                         _mm256_set1_epi32(static_cast<int>(k)));
    return _mm256_permutevar8x32_ps(x.v, from);
  }
#else
  Vec of(const Pixel& x, int lanes, int64_t k) const {
    Vec v{};
    for (int l = 0; x.at && l < lanes; ++l) v[l] = x.at[from_[l] + k];
    return v;
  }
#endif

 private:
  alignas(64) int32_t from_[kLanes];
};

// `lanes` channels of a run of pixels, neighbours in a row.
struct Run {
  const float* x;         // of the first tap of the first pixel, which may lie outside
  int64_t x_ld, x_row;    // floats to the next pixel, to the next row of taps
  int64_t column, width;  // of that tap; pixels of a row of x
  const float* w;         // (row of taps, channel of a group, tap, kChannelBlock)
  int64_t rows, taps;     // rows of taps inside; taps of a row
  int64_t stride, dilation;
  int64_t depth;  // channels of a group
  const Spread* spread;
  float* y;
  int64_t y_ld;
  int lanes;
  int64_t channel;
  const Finish* finish;
};

template <int T>
TESSERA_INLINE void finish(const Run& r, const Part& part, Vec (&sum)[T]) {
  const Finish& f = *r.finish;
  switch (f.activation) {
    case Activation::kNone:
      break;
    case Activation::kAtLeast:
      TESSERA_UNROLL
      for (int t = 0; t < T; ++t) sum[t] = max_of(splat(f.low), sum[t]);
      break;
    case Activation::kClamp:
      TESSERA_UNROLL
      for (int t = 0; t < T; ++t) sum[t] = min_of(splat(f.high), max_of(splat(f.low), sum[t]));
      break;
    case Activation::kHardSwish:
      TESSERA_UNROLL
      for (int t = 0; t < T; ++t)
        sum[t] *= min_of(splat(1.0f), max_of(Vec{}, splat(f.p) * sum[t] + splat(f.q)));
      break;
  }
  float* y = r.y;
  if (r.lanes == kLanes) {
    TESSERA_UNROLL
    for (int t = 0; t < T; ++t, y += r.y_ld) store(y, sum[t]);
  } else {
    TESSERA_UNROLL
    for (int t = 0; t < T; ++t, y += r.y_ld) part.store(y, sum[t]);
  }
}

template <int T>
TESSERA_INLINE void begin(const Run& r, const Part& part, Vec (&sum)[T]) {
  const float* bias = r.finish->bias;
  const Vec start = bias ? part.load(bias + r.channel) : Vec{};
  TESSERA_UNROLL
  for (int t = 0; t < T; ++t) sum[t] = start;
}

// Keeps a value in a register: loads are not repeated for each use.
TESSERA_INLINE Vec held(Vec v) {
#if defined(__aarch64__)
  __asm__ volatile("" : "+w"(v));
#else
  __asm__ volatile("" : "+v"(v));
#endif
  return v;
}

template <bool kWhole>
TESSERA_INLINE Pixel pixel_at(const Run& r, const Part& part, const float* at, int64_t column) {
  if constexpr (kWhole) return {at, held(load(at))};
  const bool outside = static_cast<uint64_t>(column) >= static_cast<uint64_t>(r.width);
  if (__builtin_expect(outside, 0)) return {nullptr, Vec{}};
  return {at, part.load(at)};
}

// K taps of a row, neighbours, at a stride of S. Whole: all lanes are there and no tap of the run
// is outside.
template <int K, int S>
struct Shallow {
  template <int T, bool kWhole>
  static void run(const Run& r) {
    const Part part(r.lanes);
    Vec sum[T];
    begin(r, part, sum);
    const float *x = r.x, *w = r.w;
    for (int64_t i = 0; i < r.rows; ++i, x += r.x_row, w += K * kChannelBlock) {
      Vec tap[K];
      TESSERA_UNROLL
      for (int t = 0; t < K; ++t) tap[t] = load(w + t * kChannelBlock);
      const float* at = x;
      TESSERA_UNROLL
      for (int j = 0; j < (T - 1) * S + K; ++j, at += r.x_ld) {
        const Vec v = pixel_at<kWhole>(r, part, at, r.column + j).v;
        TESSERA_UNROLL
        for (int t = 0; t < T; ++t)
          if (j - t * S >= 0 && j - t * S < K) sum[t] += tap[j - t * S] * v;
      }
    }
    finish(r, part, sum);
  }
};

// The same for groups of several channels.
template <int K, int S>
struct Deep {
  template <int T, bool kWhole>
  static void run(const Run& r) {
    const Part part(r.lanes);
    Vec sum[T];
    begin(r, part, sum);
    constexpr int kPixels = (T - 1) * S + K;
    const float *x = r.x, *w = r.w;
    for (int64_t i = 0; i < r.rows; ++i, x += r.x_row) {
      Pixel pixel[kPixels];
      TESSERA_UNROLL
      for (int j = 0; j < kPixels; ++j)
        pixel[j] = pixel_at<kWhole>(r, part, x + j * r.x_ld, r.column + j);
      for (int64_t k = 0; k < r.depth; ++k, w += K * kChannelBlock) {
        Vec tap[K];
        TESSERA_UNROLL
        for (int t = 0; t < K; ++t) tap[t] = load(w + t * kChannelBlock);
        TESSERA_UNROLL
        for (int j = 0; j < kPixels; ++j) {
          const Vec v = r.spread->of(pixel[j], r.lanes, k);
          TESSERA_UNROLL
          for (int t = 0; t < T; ++t)
            if (j - t * S >= 0 && j - t * S < K) sum[t] += tap[j - t * S] * v;
        }
      }
    }
    finish(r, part, sum);
  }
};

// Any taps.
template <bool kDeep>
struct Plain {
  template <int T, bool kWhole>
  static void run(const Run& r) {
    const Part part(r.lanes);
    Vec sum[T];
    begin(r, part, sum);
    const float* w = r.w;
    for (int64_t i = 0; i < r.rows; ++i)
      for (int64_t k = 0; k < (kDeep ? r.depth : 1); ++k)
        for (int64_t j = 0; j < r.taps; ++j, w += kChannelBlock) {
          const Vec tap = load(w);
          int64_t column = r.column + j * r.dilation;
          const float* at = r.x + i * r.x_row + j * r.dilation * r.x_ld;
          TESSERA_UNROLL
          for (int t = 0; t < T; ++t, column += r.stride, at += r.stride * r.x_ld) {
            const Pixel pixel = pixel_at<kWhole>(r, part, at, column);
            sum[t] += tap * (kDeep ? r.spread->of(pixel, r.lanes, k) : pixel.v);
          }
        }
    finish(r, part, sum);
  }
};

using RunFn = void (*)(const Run&);

// By length of the run, and whether it is whole.
struct Runs {
  RunFn fn[kMaxRun + 1][2];
};

template <class Taps>
constexpr Runs kRuns = {{{nullptr, nullptr},
                         {Taps::template run<1, false>, Taps::template run<1, true>},
                         {Taps::template run<2, false>, Taps::template run<2, true>},
                         {Taps::template run<3, false>, Taps::template run<3, true>},
                         {Taps::template run<4, false>, Taps::template run<4, true>},
                         {Taps::template run<5, false>, Taps::template run<5, true>},
                         {Taps::template run<6, false>, Taps::template run<6, true>},
                         {Taps::template run<7, false>, Taps::template run<7, true>},
                         {Taps::template run<8, false>, Taps::template run<8, true>}}};

const Runs& runs_for(const ConvShape& s) {
  const bool deep = s.C > 1, close = s.dilation[2] == 1;
  const auto taps = [&](int64_t kernel, int64_t stride) {
    return close && s.kernel[2] == kernel && s.stride[2] == stride;
  };
  if (taps(3, 1)) return deep ? kRuns<Deep<3, 1>> : kRuns<Shallow<3, 1>>;
  if (taps(3, 2)) return deep ? kRuns<Deep<3, 2>> : kRuns<Shallow<3, 2>>;
  if (deep) return kRuns<Plain<true>>;
  if (taps(5, 1)) return kRuns<Shallow<5, 1>>;
  if (taps(5, 2)) return kRuns<Shallow<5, 2>>;
  if (taps(7, 1)) return kRuns<Shallow<7, 1>>;
  return kRuns<Plain<false>>;
}

struct Item {
  const DepthwiseBlock& b;
  const Runs& runs;
  const Spread* spreads;  // for vectors at an even and at an odd number of vectors
  const Finish& finish;
};

// Channels [c0, c1) of output row `row`; y: the row's first pixel.
void output_row(const Item& item, int64_t row, float* y_row) {
  const DepthwiseBlock& b = item.b;
  const ConvShape& s = b.shape;
  const int64_t block = s.kernel[1] * s.kernel[2] * s.C * kChannelBlock,
                h = row * s.stride[1] - s.pad[1];
  // Rows of taps [k0, k1) are inside.
  const int64_t k0 = h >= 0 ? 0 : least(s.kernel[1], (-h + s.dilation[1] - 1) / s.dilation[1]);
  const int64_t k1 =
      h >= s.in[1]
          ? k0
          : most(k0, least(s.kernel[1], (s.in[1] - h + s.dilation[1] - 1) / s.dilation[1]));
  const int64_t runs = (s.out[2] + kMaxRun - 1) / kMaxRun;
  Run r;
  r.x_ld = b.x_ld;
  r.x_row = s.dilation[1] * s.in[2] * b.x_ld;
  r.width = s.in[2];
  r.rows = k1 - k0;
  r.taps = s.kernel[2];
  r.stride = s.stride[2];
  r.dilation = s.dilation[2];
  r.y_ld = b.y_ld;
  r.depth = s.C;
  r.finish = &item.finish;
  for (int64_t i = 0; i < runs; ++i) {
    const int64_t o0 = s.out[2] * i / runs, o1 = s.out[2] * (i + 1) / runs;
    r.column = o0 * s.stride[2] - s.pad[2];
    const bool inside =
        r.column >= 0 &&
        r.column + (o1 - o0 - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] < s.in[2];
    const float* x = b.x + ((h + k0 * s.dilation[1]) * s.in[2] + r.column) * b.x_ld;
    float* y = y_row + o0 * b.y_ld;
    for (r.channel = b.c0; r.channel < b.c1; r.channel += kLanes) {
      const int64_t c = r.channel;
      r.x = x + c;
      r.w = b.w + c / kChannelBlock * block + k0 * s.kernel[2] * s.C * kChannelBlock +
            c % kChannelBlock;
      r.spread = &item.spreads[c / kLanes % 2];
      r.y = y + c;
      r.lanes = static_cast<int>(least<int64_t>(kLanes, b.c1 - c));
      item.runs.fn[o1 - o0][inside && r.lanes == kLanes](r);
    }
  }
}

}  // namespace

void depthwise_block(const DepthwiseBlock& b) {
  const ConvShape& s = b.shape;
  const BoundEpilogue& e = b.epilogue;
  const Finish finish = finish_of(e);
  const Spread spreads[2] = {Spread(s.M, 0), Spread(s.M, kLanes % s.M)};
  const Item item{.b = b, .runs = runs_for(s), .spreads = spreads, .finish = finish};
  float* y = b.y;
  for (int64_t row = b.row0; row < b.row1; ++row, y += s.out[2] * b.y_ld) {
    output_row(item, row, y);
    if (finish.steps < e.count)
      apply_rows(e, finish.steps, (b.image * s.out[1] + row) * s.out[2], b.c0, s.out[2],
                 b.c1 - b.c0, y + b.c0, b.y_ld);
  }
}

void depthwise_last(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const DepthwiseLastArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  float* y = static_cast<float*>(launch->ranges[2].data);
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  for (uint32_t i = first; i < first + count; ++i) {
    int64_t rest = i;
    const int64_t channels = rest % a.channel_items;
    rest /= a.channel_items;
    const int64_t row = rest % a.row_items * a.rows, n = rest / a.row_items;
    depthwise_block({.shape = s,
                     .image = n,
                     .x = x + n * s.in[1] * s.in[2] * a.x_ld,
                     .x_ld = a.x_ld,
                     .w = w,
                     .row0 = row,
                     .row1 = least(s.out[1], row + a.rows),
                     .c0 = channels * a.channels,
                     .c1 = least(s.G * s.M, (channels + 1) * a.channels),
                     .y = y + (n * s.out[1] + row) * s.out[2] * a.y_ld,
                     .y_ld = a.y_ld,
                     .epilogue = epilogue});
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
