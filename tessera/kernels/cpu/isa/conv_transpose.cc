// Transposed convolution: a product of weights (m, tap; channel) and pixels, each row added to
// where its tap lands.
#include "tessera/kernels/cpu/conv_args.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/gemm.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

int64_t product(const int64_t* v) { return v[0] * v[1] * v[2]; }

// Adds `values`, one for each of the pixels [p0, p0 + count) of x, to the plane y, where tap t of
// each pixel lands.
void add_tap(const ConvShape& s, const float* values, int64_t t, int64_t p0, int64_t count,
             float* y) {
  const int64_t kd = t / (s.kernel[1] * s.kernel[2]), kh = t / s.kernel[2] % s.kernel[1],
                kw = t % s.kernel[2];
  const int64_t shift = kw * s.dilation[2] - s.pad[2], step = s.stride[2];
  int64_t w = p0 % s.in[2], h = p0 / s.in[2] % s.in[1], d = p0 / (s.in[2] * s.in[1]);
  for (int64_t x = 0; x < count;) {
    const int64_t run = least(count - x, s.in[2] - w);
    const int64_t od = d * s.stride[0] + kd * s.dilation[0] - s.pad[0],
                  oh = h * s.stride[1] + kh * s.dilation[1] - s.pad[1];
    if (od >= 0 && od < s.out[0] && oh >= 0 && oh < s.out[1]) {
      const int64_t first = most(w, shift >= 0 ? 0 : (-shift + step - 1) / step),
                    room = s.out[2] - shift;
      const int64_t last = least(w + run, room <= 0 ? 0 : (room + step - 1) / step);
      float* to = y + (od * s.out[1] + oh) * s.out[2] + shift;
      for (int64_t i = first; i < last; ++i) to[i * step] += values[x + i - w];
    }
    x += run;
    w = 0;
    if (++h == s.in[1]) {
      h = 0;
      ++d;
    }
  }
}

// Rows [r0, r0 + rows) of the weights, r = (m, tap), as a panel of channels [k0, k0 + depth).
void pack_taps(const float* w, int64_t row_count, int64_t r0, int64_t rows, int64_t k0,
               int64_t depth, float* panel) {
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t r = 0; r < rows; ++r) panel[k * kPanelRows + r] = w[(k0 + k) * row_count + r0 + r];
}

// x, w: of the group; y: of channel m0 of the group.
void transpose_item(const ConvTransposeArgs& a, const float* x, const float* w, const float* bias,
                    int64_t m0, int64_t m1, float* y) {
  const ConvShape& s = a.shape;
  alignas(64) float strip[kDepth * kStrip];
  alignas(64) float fresh[kDepth * kPanelRows];
  alignas(64) float rows_of_taps[kPanelRows * kStrip];
  const int64_t taps = product(s.kernel), P = product(s.in), out = product(s.out),
                row_count = s.M * taps;
  for (int64_t m = m0; m < m1; ++m)
    for (int64_t i = 0; i < out; ++i) y[(m - m0) * out + i] = bias ? bias[m] : 0.0f;
  for (int64_t p0 = 0; p0 < P; p0 += kStrip) {
    const int64_t cols = least(kStrip, P - p0);
    for (int64_t k0 = 0; k0 < s.C; k0 += kDepth) {
      const int64_t depth = least(kDepth, s.C - k0);
      pack_cols(x + k0 * P + p0, P, cols, depth, strip);
      // Panels are those of all rows of the group; at its ends, an item takes only the rows that
      // are its own.
      for (int64_t r = m0 * taps / kPanelRows * kPanelRows; r < m1 * taps; r += kPanelRows) {
        const int64_t rows = least(kPanelRows, row_count - r);
        const float* panel = w + r * s.C + k0 * kPanelRows;
        if (!a.w_packed) {
          pack_taps(w, row_count, r, rows, k0, depth, fresh);
          panel = fresh;
        }
        for (int64_t p = 0; p < cols; p += kPanelCols)
          panel_product(rows, least(kPanelCols, cols - p), depth, panel, strip + p * depth,
                        kPanelCols, rows_of_taps + p, kStrip, false, nullptr);
        for (int64_t i = most(r, m0 * taps); i < least(r + rows, m1 * taps); ++i)
          add_tap(s, rows_of_taps + (i - r) * kStrip, i % taps, p0, cols,
                  y + (i / taps - m0) * out);
      }
    }
  }
}

}  // namespace

void conv_transpose(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ConvTransposeArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  const float* bias = a.has_bias ? static_cast<const float*>(launch->ranges[2].data) : nullptr;
  float* y = static_cast<float*>(launch->ranges[a.has_bias ? 3 : 2].data);
  const int64_t row_count = s.M * product(s.kernel);
  const int64_t w_group =
      s.C * (a.w_packed ? (row_count + kPanelRows - 1) / kPanelRows * kPanelRows : row_count);
  for (uint32_t i = first; i < first + count; ++i) {
    const int64_t block = i % a.m_items, g = i / a.m_items % s.G, n = i / a.m_items / s.G;
    const int64_t m0 = block * a.m_step, m1 = least(s.M, m0 + a.m_step);
    transpose_item(a, x + (n * s.G + g) * s.C * product(s.in), w + g * w_group,
                   bias ? bias + g * s.M : nullptr, m0, m1,
                   y + ((n * s.G + g) * s.M + m0) * product(s.out));
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
