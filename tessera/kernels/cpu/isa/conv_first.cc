// Convolution of few channels: the rows of x under some output rows are gathered, padded and with
// their channels innermost, so that a row of taps is one term whose depth is taps times channels.
#include "tessera/kernels/cpu/conv_last_args.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/tiling.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// (channel, column) -> (column, channel)
void interleave(const float* x, int64_t x_c, int64_t C, int64_t w, int64_t columns, float* to) {
  for (; w < columns; ++w)
    for (int64_t c = 0; c < C; ++c) to[w * C + c] = x[c * x_c + w];
}

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadU __attribute__((vector_size(16), aligned(4), may_alias));

// The same of three channels, four columns at a time.
void interleave_three(const float* x, int64_t x_c, int64_t columns, float* to) {
  int64_t w = 0;
  for (; w + 4 <= columns; w += 4) {
    const Quad a = *reinterpret_cast<const QuadU*>(x + w),
               b = *reinterpret_cast<const QuadU*>(x + x_c + w),
               c = *reinterpret_cast<const QuadU*>(x + 2 * x_c + w);
    const Quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               bc = __builtin_shufflevector(b, c, 1, 5, 2, 6),
               ca = __builtin_shufflevector(c, a, 2, 7, 3, 3);
    QuadU* out = reinterpret_cast<QuadU*>(to + 3 * w);
    out[0] = __builtin_shufflevector(ab, c, 0, 1, 4, 2);
    out[1] = __builtin_shufflevector(bc, a, 0, 1, 6, 2);
    out[2] = __builtin_shufflevector(ca, b, 0, 1, 7, 2);
  }
  interleave(x, x_c, 3, w, columns, to);
}

// The first columns of a row of x.
void gather(const ConvFirstArgs& a, const float* x, int64_t columns, float* to) {
  const int64_t C = a.shape.C;
  if (a.x_w == C && a.x_c == 1) {
    __builtin_memcpy(to, x, static_cast<size_t>(columns * C) * sizeof(float));
    return;
  }
  if (a.x_w == 1)
    return C == 3 ? interleave_three(x, a.x_c, columns, to)
                  : interleave(x, a.x_c, C, 0, columns, to);
  for (int64_t w = 0; w < columns; ++w)
    for (int64_t c = 0; c < C; ++c) to[w * C + c] = x[c * a.x_c + w * a.x_w];
}

// Rows [h0, h1) of the image's padded rows, of which row 0 is the first row of x.
void gather_rows(const ConvFirstArgs& a, const float* x, int64_t h0, int64_t h1, float* rows) {
  const ConvShape& s = a.shape;
  const int64_t length = a.columns * s.C;
  // Column `left` of a gathered row is the first that lies in x.
  const int64_t left = least(a.columns, most<int64_t>(0, s.pad[2])),
                skipped = most<int64_t>(0, -s.pad[2]),
                inside = most<int64_t>(0, least(a.columns - left, s.in[2] - skipped));
  for (int64_t h = h0; h < h1; ++h, rows += length) {
    const bool row_inside = h >= 0 && h < s.in[1] && inside > 0;
    const int64_t begin = row_inside ? left * s.C : length,
                  end = row_inside ? (left + inside) * s.C : length;
    for (int64_t i = 0; i < begin; ++i) rows[i] = 0;
    if (row_inside) gather(a, x + (h * s.in[2] + skipped) * a.x_w, inside, rows + begin);
    for (int64_t i = end; i < length; ++i) rows[i] = 0;
  }
}

struct Item {
  const ConvFirstArgs& a;
  const float* rows;  // gathered; of the item's first output row
  const float* w;
  float* y;     // of the item's first output row
  int64_t row;  // of the same pixel in the epilogue's operands
  const BoundEpilogue& epilogue;
};

// Channels [m, m + cols) of `count` output rows.
void channels(const Item& item, int64_t count, int64_t m, int64_t cols) {
  const ConvFirstArgs& a = item.a;
  const ConvShape& s = a.shape;
  const int64_t depth = s.kernel[2] * s.C, panel_stride = s.kernel[1] * depth * kPanel;
  const float* b = item.w + m / kPanel * panel_stride + m % kPanel;
  const int64_t highest = tile_rows(cols), tiles = (s.out[2] + highest - 1) / highest,
                low = s.out[2] / tiles, higher = s.out[2] - low * tiles;
  constexpr int64_t kTerms = 16;
  Term terms[kTerms];
  for (int64_t o = 0; o < count; ++o)
    for (int64_t k0 = 0; k0 < s.kernel[1]; k0 += kTerms) {
      const int64_t k1 = least(s.kernel[1], k0 + kTerms);
      int64_t w = 0;
      for (int64_t i = 0; i < tiles; ++i) {
        const int rows = static_cast<int>(low + (i < higher));
        for (int64_t k = k0; k < k1; ++k)
          terms[k - k0] = {item.rows + (o * s.stride[1] + k * s.dilation[1]) * a.columns * s.C +
                               w * s.stride[2] * s.C,
                           nullptr, b + k * depth * kPanel, depth};
        const int64_t pixel = o * s.out[2] + w;
        tile_product({.rows = rows,
                      .cols = static_cast<int>(cols),
                      .terms = terms,
                      .count = k1 - k0,
                      .lda = s.stride[2] * s.C,
                      .panel_stride = panel_stride,
                      .c = item.y + pixel * a.y_ld + m,
                      .ldc = a.y_ld,
                      .accumulate = k0 > 0,
                      .epilogue = k1 == s.kernel[1] ? &item.epilogue : nullptr,
                      .row = item.row + pixel,
                      .col = m});
        w += rows;
      }
    }
}

}  // namespace

void conv_first(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ConvFirstArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  float* y = static_cast<float*>(launch->ranges[2].data);
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  alignas(64) float rows[kFirstFloats];
  for (uint32_t i = first; i < first + count; ++i) {
    const int64_t n = i / a.row_items, o0 = i % a.row_items * a.rows,
                  o1 = least(s.out[1], o0 + a.rows), h0 = o0 * s.stride[1] - s.pad[1];
    const int64_t x_image = s.in[1] * s.in[2] * (a.x_w == 1 ? s.C : a.x_w);
    gather_rows(a, x + n * x_image, h0,
                h0 + (o1 - o0 - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1, rows);
    const int64_t pixel = (n * s.out[1] + o0) * s.out[2];
    const Item item{a, rows, w, y + pixel * a.y_ld, pixel, epilogue};
    each_width(0, s.M, s.out[2],
               [&](int64_t m, int64_t cols) { channels(item, o1 - o0, m, cols); });
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
