// Convolutions: conv (strips of im2col columns times packed weights), depthwise (taps over padded
// rows).
#include "tessera/kernels/cpu/conv_args.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/gemm.h"
#include "tessera/kernels/cpu/isa/short_copy.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kRowBlock =
    32 * kPanelRows;  // output channels whose weights stay in the cache with a strip

int64_t product(const int64_t* v) { return v[0] * v[1] * v[2]; }

// Columns of one panel that a tap reads from one input row: targets [at, at + count), sources from
// `offset`, in a channel.
struct Segment {
  int64_t at, count, offset;
};

// What tap (kd, kh, kw) contributes to the columns of output pixels [p0, p0 + cols), without what
// lies in the padding.
int segments_of(const ConvShape& s, const int64_t* tap, int64_t p0, int64_t cols, Segment* list) {
  int count = 0;
  int64_t w = p0 % s.out[2], h = p0 / s.out[2] % s.out[1], d = p0 / (s.out[2] * s.out[1]);
  const int64_t shift = tap[2] * s.dilation[2] - s.pad[2];
  for (int64_t x = 0; x < cols;) {
    const int64_t run = least(cols - x, s.out[2] - w);
    const int64_t id = d * s.stride[0] - s.pad[0] + tap[0] * s.dilation[0];
    const int64_t ih = h * s.stride[1] - s.pad[1] + tap[1] * s.dilation[1];
    if (id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1]) {
      // Windows o in [w, w + run) with 0 <= o * stride + shift < size.
      const int64_t first = most(w, shift >= 0 ? 0 : (-shift + s.stride[2] - 1) / s.stride[2]);
      const int64_t room = s.in[2] - shift;
      const int64_t last = least(w + run, room <= 0 ? 0 : (room + s.stride[2] - 1) / s.stride[2]);
      if (first < last)
        list[count++] = {x + first - w, last - first,
                         (id * s.in[1] + ih) * s.in[2] + first * s.stride[2] + shift};
    }
    x += run;
    w = 0;
    if (++h == s.out[1]) {
      h = 0;
      ++d;
    }
  }
  return count;
}

// Rows [k0, k0 + depth) of the im2col matrix, columns [p0, p1), as panels; k = (tap, channel). x:
// the group's channels.
void pack_windows(const ConvShape& s, const float* x, int64_t p0, int64_t p1, int64_t k0,
                  int64_t depth, float* panels) {
  const int64_t plane = product(s.in), stride = s.stride[2];
  Segment segments[kPanelCols];
  for (int64_t p = p0; p < p1; p += kPanelCols, panels += depth * kPanelCols) {
    const int64_t cols = least(kPanelCols, p1 - p);
    for (int64_t k = k0; k < k0 + depth;) {
      const int64_t t = k / s.C, c0 = k % s.C, channels = least(s.C - c0, k0 + depth - k);
      const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1],
                              t % s.kernel[2]};
      const int count = segments_of(s, tap, p, cols, segments);
      const bool whole = count == 1 && segments[0].count == kPanelCols && stride == 1;
      float* row = panels + (k - k0) * kPanelCols;
      const float* channel = x + c0 * plane;
      for (int64_t c = 0; c < channels; ++c, row += kPanelCols, channel += plane) {
        if (!whole)
          for (int v = 0; v < kPanelCols / kLanes; ++v) store(row + v * kLanes, Vec{});
        for (int i = 0; i < count; ++i) {
          const Segment& g = segments[i];
          if (stride == 1)
            copy_short(row + g.at, channel + g.offset, g.count);
          else
            for (int64_t j = 0; j < g.count; ++j) row[g.at + j] = channel[g.offset + j * stride];
        }
      }
      k += channels;
    }
  }
}

// `rows` rows of w, (row, channel, tap) apart by K, as a panel of k = (tap, channel) in [k0, k0 +
// depth).
void pack_weights(const float* w, int64_t C, int64_t taps, int64_t rows, int64_t k0, int64_t depth,
                  float* panel) {
  if (taps == 1) return pack_rows(w + k0, C, rows, depth, panel);
  for (int64_t k = k0; k < k0 + depth; ++k)
    for (int64_t r = 0; r < rows; ++r)
      panel[(k - k0) * kPanelRows + r] = w[r * C * taps + k % C * taps + k / C];
}

struct ConvItem {
  const float *x, *w, *bias;  // x and w of the group; bias of output channel m0, or null
  float* y;                   // of output channel m0
  int64_t m0, m1, p0, p1;
};

void conv_item(const ConvArgs& a, const ConvItem& item) {
  const ConvShape& s = a.shape;
  alignas(64) float strip[kDepth * kStrip];
  alignas(64) float fresh[kDepth * kPanelRows];
  const int64_t taps = product(s.kernel), K = taps * s.C, P = product(s.out);
  const bool plain = taps == 1 && product(s.stride) == 1 && P == product(s.in) &&
                     s.pad[0] + s.pad[1] + s.pad[2] == 0;
  for (int64_t k0 = 0; k0 == 0 || k0 < K; k0 += kDepth) {
    const int64_t depth = least(kDepth, K - k0);
    if (plain)
      pack_cols(item.x + k0 * P + item.p0, P, item.p1 - item.p0, depth, strip);
    else
      pack_windows(s, item.x, item.p0, item.p1, k0, depth, strip);
    for (int64_t block = item.m0; block < item.m1; block += kRowBlock) {
      const int64_t end = least(item.m1, block + kRowBlock);
      const auto one = [&](int64_t m, int64_t p, const float* panel) {
        panel_product(least(kPanelRows, end - m), least(kPanelCols, item.p1 - p), depth, panel,
                      strip + (p - item.p0) * depth, kPanelCols, item.y + (m - item.m0) * P + p, P,
                      k0 > 0, item.bias && k0 == 0 ? item.bias + (m - item.m0) : nullptr);
      };
      if (a.w_packed) {
        for (int64_t p = item.p0; p < item.p1; p += kPanelCols)
          for (int64_t m = block; m < end; m += kPanelRows)
            one(m, p, item.w + m * K + k0 * kPanelRows);
      } else {
        for (int64_t m = block; m < end; m += kPanelRows) {
          pack_weights(item.w + m * K, s.C, taps, least(kPanelRows, end - m), k0, depth, fresh);
          for (int64_t p = item.p0; p < item.p1; p += kPanelCols) one(m, p, fresh);
        }
      }
    }
  }
}

// Padded input rows [r0, r1) of a plane, each as stride[2] phases of `pitch` floats.
void pad_rows(const DepthwiseArgs& a, const float* x, int64_t r0, int64_t r1, float* band) {
  const ConvShape& s = a.shape;
  const int64_t phases = s.stride[2], length = phases * a.pitch;
  for (int64_t r = r0; r < r1; ++r, band += length) {
    const int64_t row = r - s.pad[1];
    __builtin_memset(band, 0, static_cast<size_t>(length) * sizeof(float));
    if (row < 0 || row >= s.in[1]) continue;
    const float* from = x + row * s.in[2];
    if (phases == 1)
      __builtin_memcpy(band + s.pad[2], from,
                       static_cast<size_t>(least(s.in[2], a.pitch - s.pad[2])) * sizeof(float));
    else
      for (int64_t c = 0; c < least(phases, s.in[2]); ++c) {
        const int64_t at = (c + s.pad[2]) / phases,
                      count = least((s.in[2] - c + phases - 1) / phases, a.pitch - at);
        float* to = band + (c + s.pad[2]) % phases * a.pitch + at;
        for (int64_t i = 0; i < count; ++i) to[i] = from[c + i * phases];
      }
  }
}

template <int V>
void depthwise_run(const float* band, const int64_t* offsets, const float* w, int taps, float bias,
                   float* y, int64_t count) {
  Vec sum[V];
  for (int v = 0; v < V; ++v) sum[v] = splat(bias);
  for (int t = 0; t < taps; ++t) {
    const Vec factor = splat(w[t]);
    for (int v = 0; v < V; ++v) sum[v] += factor * load(band + offsets[t] + v * kLanes);
  }
  for (int v = 0; v < V; ++v) {
    if ((v + 1) * kLanes <= count) {
      store(y + v * kLanes, sum[v]);
    } else {
      alignas(64) float edge[kLanes];
      store(edge, sum[v]);
      for (int i = 0; i < kLanes; ++i)
        if (v * kLanes + i < count) y[v * kLanes + i] = edge[i];
    }
  }
}

void depthwise_plane(const DepthwiseArgs& a, const float* x, const float* w, float bias, float* y) {
  const ConvShape& s = a.shape;
  alignas(64) float band[kBandFloats + 4 * kLanes];
  const int64_t phases = s.stride[2], length = phases * a.pitch;
  int64_t offsets[kMaxTaps];
  for (int64_t h = 0; h < s.kernel[1]; ++h)
    for (int64_t c = 0; c < s.kernel[2]; ++c) {
      const int64_t column = c * s.dilation[2];
      offsets[h * s.kernel[2] + c] =
          h * s.dilation[1] * length + column % phases * a.pitch + column / phases;
    }
  const int taps = static_cast<int>(s.kernel[1] * s.kernel[2]);
  for (int64_t o = 0; o < s.out[1]; o += a.band) {
    const int64_t rows = least(a.band, s.out[1] - o), first = o * s.stride[1];
    pad_rows(a, x, first, first + (rows - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1,
             band);
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = band + r * s.stride[1] * length;
      float* to = y + (o + r) * s.out[2];
      for (int64_t c = 0; c < s.out[2]; c += 4 * kLanes) {
        const int64_t count = least<int64_t>(4 * kLanes, s.out[2] - c);
        const int64_t vecs = (count + kLanes - 1) / kLanes;
        (vecs == 1   ? depthwise_run<1>
         : vecs == 2 ? depthwise_run<2>
         : vecs == 3 ? depthwise_run<3>
                     : depthwise_run<4>)(from + c, offsets, w, taps, bias, to + c, count);
      }
    }
  }
}

}  // namespace

void conv(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ConvArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  const float* bias = a.has_bias ? static_cast<const float*>(launch->ranges[2].data) : nullptr;
  float* y = static_cast<float*>(launch->ranges[a.has_bias ? 3 : 2].data);
  const int64_t K = product(s.kernel) * s.C, P = product(s.out);
  const int64_t w_group =
      a.w_packed ? (s.M + kPanelRows - 1) / kPanelRows * kPanelRows * K : s.M * K;
  for (uint32_t i = first; i < first + count; ++i) {
    int64_t rest = i;
    const int64_t strip = rest % a.strips;
    rest /= a.strips;
    const int64_t block = rest % a.m_items;
    rest /= a.m_items;
    const int64_t g = rest % s.G, n = rest / s.G;
    ConvItem item;
    item.m0 = block * a.m_step;
    item.m1 = least(s.M, item.m0 + a.m_step);
    item.p0 = strip * a.strip;
    item.p1 = least(P, item.p0 + a.strip);
    item.x = x + (n * s.G + g) * s.C * product(s.in);
    item.w = w + g * w_group;
    item.bias = bias ? bias + g * s.M + item.m0 : nullptr;
    item.y = y + ((n * s.G + g) * s.M + item.m0) * P;
    conv_item(a, item);
  }
}

void depthwise(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const DepthwiseArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  const float* bias = a.has_bias ? static_cast<const float*>(launch->ranges[2].data) : nullptr;
  float* y = static_cast<float*>(launch->ranges[a.has_bias ? 3 : 2].data);
  const int64_t taps = product(s.kernel), channels = s.G * s.M;
  const int64_t end = least(s.N * channels, (int64_t{first} + count) * a.planes);
  for (int64_t plane = int64_t{first} * a.planes; plane < end; ++plane) {
    const int64_t channel = plane % channels;
    depthwise_plane(a, x + plane / s.M * product(s.in), w + channel * taps,
                    bias ? bias[channel] : 0.0f, y + plane * product(s.out));
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
