// Depthwise convolution of 8-bit integers on channels-last operands. Of four vectors of bytes, one
// per tap, the lanes are interleaved to quads of taps, of which one instruction adds four products
// per channel. Interleaving goes by lanes of 16 bytes: the sums of a block of channels are put in
// order behind the last tap.
#include "tessera/kernels/cpu/isa/integer_entries.h"
#include "tessera/kernels/cpu/isa/integer_tile.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kMaxQuads = 64;
constexpr int kRun = 4;             // pixels at a time
constexpr int kBlock = 4 * kLanes;  // channels at a time, a vector of bytes
constexpr int kParts = kLanes / 4;  // lanes of 16 bytes

typedef uint8_t Bytes __attribute__((vector_size(kBlock)));
typedef uint8_t Part16 __attribute__((vector_size(16)));

TESSERA_INLINE Bytes load_bytes(const uint8_t* p) {
  Bytes v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// The first `count` bytes, 1 to kBlock, of a vector; the others are 0.
class FirstBytes {
 public:
#if defined(__AVX512F__)
  explicit FirstBytes(int64_t count) : mask_(~uint64_t{0} >> (kBlock - count)) {}
  Bytes load(const uint8_t* p) const {
    return reinterpret_cast<Bytes>(_mm512_maskz_loadu_epi8(mask_, p));
  }

 private:
  __mmask64 mask_;
#else
  explicit FirstBytes(int64_t count) : count_(static_cast<size_t>(count)) {}
  Bytes load(const uint8_t* p) const {
    Bytes v{};
    __builtin_memcpy(&v, p, count_);
    return v;
  }

 private:
  size_t count_;
#endif
};

#if defined(__AVX512F__)
#define TESSERA_INTERLEAVE(bits, half) \
  reinterpret_cast<Bytes>(             \
      _mm512_unpack##half##_epi##bits(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)))
#elif defined(__AVX2__)
#define TESSERA_INTERLEAVE(bits, half) \
  reinterpret_cast<Bytes>(             \
      _mm256_unpack##half##_epi##bits(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)))
#elif defined(__x86_64__)
#define TESSERA_INTERLEAVE(bits, half) \
  reinterpret_cast<Bytes>(             \
      _mm_unpack##half##_epi##bits(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)))
#endif
#if defined(TESSERA_INTERLEAVE)
TESSERA_INLINE Bytes bytes_low(Bytes a, Bytes b) { return TESSERA_INTERLEAVE(8, lo); }
TESSERA_INLINE Bytes bytes_high(Bytes a, Bytes b) { return TESSERA_INTERLEAVE(8, hi); }
TESSERA_INLINE Bytes pairs_low(Bytes a, Bytes b) { return TESSERA_INTERLEAVE(16, lo); }
TESSERA_INLINE Bytes pairs_high(Bytes a, Bytes b) { return TESSERA_INTERLEAVE(16, hi); }
#else
TESSERA_INLINE Bytes bytes_low(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
TESSERA_INLINE Bytes bytes_high(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
TESSERA_INLINE Bytes pairs_low(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
}
TESSERA_INLINE Bytes pairs_high(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30,
                                 31);
}
#endif

// Weights of a quad of taps for a vector's channels: lane l of vector q holds channels 16 l + 4 q
// and so on, as interleaving leaves them. `block`: bytes between blocks of kIntegerChannels.
struct QuadWeights {
  VecI v[4];
  TESSERA_INLINE QuadWeights of(const uint8_t* w, int64_t block, int parts) {
    QuadWeights q;
    alignas(64) uint8_t lanes[4][kBlock];
    for (int l = 0; l < kParts; ++l)
      for (int i = 0; i < 4; ++i) {
        const uint8_t* from = w + (l < parts ? l : 0) * block + i * 16;
        __builtin_memcpy(lanes[i] + l * 16, from, 16);
      }
    for (int i = 0; i < 4; ++i) q.v[i] = load_ints(lanes[i]);
    return q;
  }
};

// `pixels` neighbours of a row, up to kRun, for kBlock channels. at: of the taps, quads * kQuad of
// them, for each pixel.
struct Run {
  const uint8_t* const (*at)[kMaxQuads * kQuad];
  int64_t quads;
  const QuadWeights* w;
  int64_t channel;  // from the tap's first
  const int32_t* start;
  int32_t* sums;    // (pixel, kBlock)
  int32_t* x_sums;  // the same; null: not wanted
  int64_t count;    // channels, up to kBlock
};

// Sums in the order of channels, plus `start` if not null.
TESSERA_INLINE void put(const VecI (&from)[4], const int32_t* start, int32_t* to) {
  VecI sums[4];
#if defined(__AVX512F__)
  __m512i v[4], halves[4];
  for (int i = 0; i < 4; ++i) v[i] = reinterpret_cast<__m512i>(from[i]);
  for (int i = 0; i < 2; ++i) {
    halves[i] = _mm512_maskz_shuffle_i32x4(0xffff, v[2 * i], v[2 * i + 1], 0x44);
    halves[2 + i] = _mm512_maskz_shuffle_i32x4(0xffff, v[2 * i], v[2 * i + 1], 0xee);
  }
  for (int i = 0; i < 2; ++i) {
    sums[2 * i] = reinterpret_cast<VecI>(
        _mm512_maskz_shuffle_i32x4(0xffff, halves[2 * i], halves[2 * i + 1], 0x88));
    sums[2 * i + 1] = reinterpret_cast<VecI>(
        _mm512_maskz_shuffle_i32x4(0xffff, halves[2 * i], halves[2 * i + 1], 0xdd));
  }
#else
  alignas(64) int32_t lanes[4 * kLanes];
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < kParts; ++l)
      __builtin_memcpy(lanes + l * 16 + i * 4, reinterpret_cast<const char*>(&from[i]) + l * 16,
                       16);
  for (int i = 0; i < 4; ++i) sums[i] = load_ints(lanes + i * kLanes);
#endif
  for (int i = 0; i < 4; ++i)
    store_ints(to + i * kLanes, start ? sums[i] + load_ints(start + i * kLanes) : sums[i]);
}

template <bool kSigned, bool kWhole>
void sum_taps(const Run& r, int pixels) {
  const FirstBytes first(r.count);
  for (int p = 0; p < pixels; ++p) {
    VecI sum[4], x_sum[4] = {};
    for (int i = 0; i < 4; ++i) sum[i] = VecI{};
    for (int64_t q = 0; q < r.quads; ++q) {
      const uint8_t* const* tap = r.at[p] + q * kQuad;
      Bytes x[kQuad];
      TESSERA_UNROLL
      for (int k = 0; k < kQuad; ++k)
        x[k] = kWhole ? load_bytes(tap[k] + r.channel) : first.load(tap[k] + r.channel);
      const Bytes ab_low = bytes_low(x[0], x[1]), ab_high = bytes_high(x[0], x[1]),
                  cd_low = bytes_low(x[2], x[3]), cd_high = bytes_high(x[2], x[3]);
      const Bytes quads[4] = {pairs_low(ab_low, cd_low), pairs_high(ab_low, cd_low),
                              pairs_low(ab_high, cd_high), pairs_high(ab_high, cd_high)};
      TESSERA_UNROLL
      for (int i = 0; i < 4; ++i) {
        const auto both = Quads<kSigned>::of(reinterpret_cast<VecI>(quads[i]));
        sum[i] = add_products(sum[i], both, Quads<!kSigned>::of(r.w[q].v[i]));
        if (r.x_sums)
          x_sum[i] = add_products(x_sum[i], both, Quads<!kSigned>::of(splat_int(0x01010101)));
      }
    }
    put(sum, r.start, r.sums + p * kBlock);
    if (r.x_sums) put(x_sum, nullptr, r.x_sums + p * kBlock);
  }
}

struct Item {
  const IntegerDepthwiseArgs& a;
  const BoundInteger& bound;
  const uint8_t* x;  // of the image
  const uint8_t* w;
  const int32_t* w_sums;
  const uint8_t* zeros;  // kBlock times the zero point of x
  char* y;               // of the image
  int64_t row;           // of the image's first pixel in the result
};

// Output row `h`, channels [c, c + count). `offsets`: of the taps.
void row_of(const Item& item, int64_t h, int64_t c, int64_t count, const QuadWeights* weights,
            const int64_t* offsets, const int32_t* start, const int32_t* zeros, bool any,
            const IntegerColumns* columns) {
  const IntegerDepthwiseArgs& a = item.a;
  const ConvShape& s = a.shape;
  const int64_t taps = s.kernel[1] * s.kernel[2], quads = (taps + kQuad - 1) / kQuad;
  const int64_t y0 = h * s.stride[1] - s.pad[1], reach = (s.kernel[2] - 1) * s.dilation[2];
  const bool rows_inside = y0 >= 0 && y0 + (s.kernel[1] - 1) * s.dilation[1] < s.in[1];
  const uint8_t* at[kRun][kMaxQuads * kQuad];
  alignas(64) int32_t sums[kRun * kBlock], x_sums[kRun * kBlock];
  for (int64_t v = 0; v < s.out[2]; v += kRun) {
    const int pixels = static_cast<int>(least<int64_t>(kRun, s.out[2] - v));
    for (int p = 0; p < pixels; ++p) {
      const int64_t x0 = (v + p) * s.stride[2] - s.pad[2];
      const uint8_t* from = item.x + (y0 * s.in[2] + x0) * a.x_ld;
      if (rows_inside && x0 >= 0 && x0 + reach < s.in[2]) {
        for (int64_t t = 0; t < taps; ++t) at[p][t] = from + offsets[t];
      } else {
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t y = y0 + t / s.kernel[2] * s.dilation[1],
                        x = x0 + t % s.kernel[2] * s.dilation[2];
          const bool inside = y >= 0 && y < s.in[1] && x >= 0 && x < s.in[2];
          at[p][t] = inside ? from + offsets[t] : item.zeros - c;
        }
      }
      for (int64_t t = taps; t < quads * kQuad; ++t) at[p][t] = item.zeros - c;
    }
    const Run run{at, quads, weights, c, start, sums, any ? x_sums : nullptr, count};
    const bool whole = count == kBlock;
    if (item.bound.x_signed)
      (whole ? sum_taps<true, true> : sum_taps<true, false>)(run, pixels);
    else
      (whole ? sum_taps<false, true> : sum_taps<false, false>)(run, pixels);
    if (any) {
      // Taps beyond the kernel have read the zero point, too.
      const uint32_t more =
          static_cast<uint32_t>(quads * kQuad - taps) * static_cast<uint32_t>(item.bound.x_zero);
      for (int p = 0; p < pixels; ++p)
        for (int64_t k = 0; k < kBlock; ++k) {
          uint32_t& sum = reinterpret_cast<uint32_t&>(sums[p * kBlock + k]);
          sum -= (static_cast<uint32_t>(x_sums[p * kBlock + k]) - more) *
                 static_cast<uint32_t>(zeros[k]);
        }
    }
    for (int64_t k = 0; k < count; k += kIntegerCols)
      finish_sums(item.bound, columns[k / kIntegerCols], sums + k, kBlock, nullptr,
                  {.rows = pixels,
                   .cols = static_cast<int>(least<int64_t>(kIntegerCols, count - k)),
                   .row = item.row + h * s.out[2] + v,
                   .col = c + k,
                   .y = item.y + ((h * s.out[2] + v) * a.y_ld + c + k) * bytes_of(item.bound.type),
                   .ld = a.y_ld});
  }
}

void channels(const Item& item, int64_t h0, int64_t h1, int64_t c, int64_t count) {
  const ConvShape& s = item.a.shape;
  const int64_t taps = s.kernel[1] * s.kernel[2], quads = (taps + kQuad - 1) / kQuad;
  const int64_t block = quads * kQuad * kIntegerChannels;
  QuadWeights weights[kMaxQuads];
  const int parts = static_cast<int>((count + kIntegerChannels - 1) / kIntegerChannels);
  for (int64_t q = 0; q < quads; ++q)
    weights[q] = QuadWeights::of(
        item.w + c / kIntegerChannels * block + q * kQuad * kIntegerChannels, block, parts);
  alignas(64) int32_t start[kBlock] = {}, zeros[kBlock] = {};
  bool any = false;
  IntegerColumns all[(kBlock + kIntegerCols - 1) / kIntegerCols];
  for (int64_t k = 0; k < count; k += kIntegerCols) {
    IntegerColumns& columns = all[k / kIntegerCols];
    const int64_t cols = least<int64_t>(kIntegerCols, count - k);
    set_columns(item.bound, c + k, cols, item.w_sums + c + k, taps, columns);
    __builtin_memcpy(start + k, columns.start, static_cast<size_t>(cols) * 4);
    __builtin_memcpy(zeros + k, columns.zeros, static_cast<size_t>(cols) * 4);
    any |= columns.any;
    columns.any = false;  // subtracted by taps
  }
  int64_t offsets[kMaxQuads * kQuad];  // of the taps, from the first
  for (int64_t t = 0; t < taps; ++t)
    offsets[t] =
        (t / s.kernel[2] * s.dilation[1] * s.in[2] + t % s.kernel[2] * s.dilation[2]) * item.a.x_ld;
  for (int64_t h = h0; h < h1; ++h)
    row_of(item, h, c, count, weights, offsets, start, zeros, any, all);
}

}  // namespace

void integer_depthwise(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const IntegerDepthwiseArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const BoundInteger bound = bind_integer(a.terms, a.result, launch);
  alignas(64) uint8_t zeros[kBlock];
  __builtin_memset(zeros, static_cast<uint8_t>(bound.x_zero), sizeof zeros);
  const auto* x = static_cast<const uint8_t*>(launch->ranges[0].data);
  const auto* w = static_cast<const uint8_t*>(launch->ranges[1].data);
  auto* y = static_cast<char*>(launch->ranges[2].data);
  const int64_t P = s.out[1] * s.out[2];
  const int64_t quads = (s.kernel[1] * s.kernel[2] + kQuad - 1) / kQuad;
  const int64_t blocks = (s.G + kIntegerChannels - 1) / kIntegerChannels;
  const auto* sums =
      reinterpret_cast<const int32_t*>(w + blocks * quads * kQuad * kIntegerChannels);
  for (uint32_t i = first; i < first + count; ++i) {
    int64_t rest = i;
    const int64_t c0 = rest % a.channel_items * a.channels;
    rest /= a.channel_items;
    const int64_t h0 = rest % a.row_items * a.rows, n = rest / a.row_items;
    const int64_t h1 = least(s.out[1], h0 + a.rows), c1 = least(s.G, c0 + a.channels);
    const Item item{.a = a,
                    .bound = bound,
                    .x = x + n * s.in[1] * s.in[2] * a.x_ld,
                    .w = w,
                    .w_sums = sums,
                    .zeros = zeros,
                    .y = y + n * P * a.y_ld * bytes_of(bound.type),
                    .row = n * P};
    for (int64_t c = c0; c < c1; c += kBlock)
      channels(item, h0, h1, c, least<int64_t>(kBlock, c1 - c));
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
