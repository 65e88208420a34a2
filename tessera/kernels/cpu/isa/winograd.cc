// Winograd convolution on channels-last operands: for a block of tiles the transformed input, a
// vector of channels at a time; for some channels of M one product per point; then the transformed
// result with its epilogue.
#include "tessera/kernels/cpu/winograd_args.h"

#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/fuse.h"
#include "tessera/kernels/cpu/isa/tile_product.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kIn = static_cast<int>(kWinogradIn), kOut = static_cast<int>(kWinogradOut);
constexpr float kP = kWinogradP, kQ = kWinogradQ, kP2 = kP * kP, kQ2 = kQ * kQ;

// d = B^T d: row i holds the coefficients of the product of (x - point) over all other points.
TESSERA_INLINE void transform_in(Vec& d0, Vec& d1, Vec& d2, Vec& d3, Vec& d4, Vec& d5) {
  const Vec even_p = d4 - kQ2 * d2, odd_p = d3 - kQ2 * d1;
  const Vec even_q = d4 - kP2 * d2, odd_q = d3 - kP2 * d1;
  d0 = kP2 * kQ2 * d0 - (kP2 + kQ2) * d2 + d4;
  d5 = kP2 * kQ2 * d1 - (kP2 + kQ2) * d3 + d5;
  d1 = even_p + kP * odd_p;
  d2 = even_p - kP * odd_p;
  d3 = even_q + kQ * odd_q;
  d4 = even_q - kQ * odd_q;
}

// A^T m: row j holds the j-th powers of the points.
TESSERA_INLINE void transform_out(Vec& m0, Vec& m1, Vec& m2, Vec& m3, Vec m4, Vec m5) {
  const Vec sum_p = m1 + m2, difference_p = m1 - m2, sum_q = m3 + m4, difference_q = m3 - m4;
  m0 = m0 + sum_p + sum_q;
  m1 = kP * difference_p + kQ * difference_q;
  m2 = kP2 * sum_p + kQ2 * sum_q;
  m3 = kP2 * kP * difference_p + kQ2 * kQ * difference_q + m5;
}

struct Place4 {
  int64_t n, h, w;  // image, first output row and column
};
Place4 tile_at(const WinogradArgs& a, int64_t tile) {
  const int64_t per_image = a.tile_rows * a.tile_cols, within = tile % per_image;
  return {tile / per_image, within / a.tile_cols * kOut, within % a.tile_cols * kOut};
}

// `lanes` channels of a tile to `v`, points `stride` apart.
template <bool kWhole>
TESSERA_INLINE void tile_in(const WinogradArgs& a, const float* x, int64_t h, int64_t w, int lanes,
                            float* v) {
  const ConvShape& s = a.shape;
  const Part part(lanes);
  Vec d[kIn][kIn];
  TESSERA_UNROLL
  for (int i = 0; i < kIn; ++i) {
    const float* row = x + i * s.in[2] * a.x_ld;
    TESSERA_UNROLL
    for (int j = 0; j < kIn; ++j) {
      if constexpr (kWhole) {
        d[i][j] = load(row + j * a.x_ld);
      } else {
        const bool inside = static_cast<uint64_t>(h + i) < static_cast<uint64_t>(s.in[1]) &&
                            static_cast<uint64_t>(w + j) < static_cast<uint64_t>(s.in[2]);
        d[i][j] = inside ? part.load(row + j * a.x_ld) : Vec{};
      }
    }
    transform_in(d[i][0], d[i][1], d[i][2], d[i][3], d[i][4], d[i][5]);
  }
  TESSERA_UNROLL
  for (int j = 0; j < kIn; ++j) {
    transform_in(d[0][j], d[1][j], d[2][j], d[3][j], d[4][j], d[5][j]);
    TESSERA_UNROLL
    for (int i = 0; i < kIn; ++i) store(v + (i * kIn + j) * a.x_stride, d[i][j]);
  }
}

// Tiles [t0, t1) of all channels.
void transform_input(const WinogradArgs& a, const float* x, int64_t t0, int64_t t1, float* v) {
  const ConvShape& s = a.shape;
  const int64_t depth = (s.C + kPanel - 1) / kPanel * kPanel;
  for (int64_t t = t0; t < t1; ++t, v += depth) {
    const Place4 at = tile_at(a, t);
    const int64_t h = at.h - s.pad[1], w = at.w - s.pad[2];
    const bool inside = h >= 0 && h + kIn <= s.in[1] && w >= 0 && w + kIn <= s.in[2];
    const float* from = x + ((at.n * s.in[1] + h) * s.in[2] + w) * a.x_ld;
    for (int64_t c = 0; c < s.C; c += kLanes) {
      const int lanes = static_cast<int>(least<int64_t>(kLanes, s.C - c));
      if (inside && lanes == kLanes)
        tile_in<true>(a, from + c, h, w, lanes, v + c);
      else
        tile_in<false>(a, from + c, h, w, lanes, v + c);
    }
  }
}

// R neighbours of a row of output pixels, `lanes` channels.
template <int R>
TESSERA_INLINE void store_row(const BoundEpilogue& e, int64_t row, int64_t col, int lanes,
                              Vec (&sum)[R][1], float* y, int64_t y_ld) {
  const Part part(lanes);
  const Place<R, 1> place{part, lanes == kLanes};
  for (int i = 0; i < e.fused; ++i) {
    const BoundStep& s = e.steps[i];
    fuse<R, 1>(s, s.operand + offset_in(s, row, col), place, sum);
  }
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) place.store_at(y + r * y_ld, 0, sum[r][0]);
}

// Products of a tile, `lanes` channels from `col` on, to output pixels from (h, w) on.
void tile_out(const WinogradArgs& a, const BoundEpilogue& e, const float* products,
              const Place4& at, int64_t col, int lanes, float* y) {
  const ConvShape& s = a.shape;
  Vec m[kIn][kIn];
  TESSERA_UNROLL
  for (int j = 0; j < kIn; ++j) {
    TESSERA_UNROLL
    for (int i = 0; i < kIn; ++i) m[i][j] = load(products + (i * kIn + j) * a.y_stride);
    transform_out(m[0][j], m[1][j], m[2][j], m[3][j], m[4][j], m[5][j]);
  }
  Vec out[kOut][kOut][1];
  TESSERA_UNROLL
  for (int i = 0; i < kOut; ++i) {
    transform_out(m[i][0], m[i][1], m[i][2], m[i][3], m[i][4], m[i][5]);
    TESSERA_UNROLL
    for (int j = 0; j < kOut; ++j) out[i][j][0] = m[i][j];
  }
  const int64_t rows = least<int64_t>(kOut, s.out[1] - at.h),
                columns = least<int64_t>(kOut, s.out[2] - at.w);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t pixel = (at.n * s.out[1] + at.h + i) * s.out[2] + at.w;
    float* to = y + pixel * a.y_ld + col;
    if (columns == kOut) {
      store_row<kOut>(e, pixel, col, lanes, out[i], to, a.y_ld);
    } else {
      for (int64_t j = 0; j < columns; ++j) {
        Vec one[1][1] = {{out[i][j][0]}};
        store_row<1>(e, pixel + j, col, lanes, one, to + j * a.y_ld, a.y_ld);
      }
    }
  }
}

// Channels [m, m + cols) of tiles [t0, t1).
void transform_output(const WinogradArgs& a, const BoundEpilogue& e, const float* products,
                      int64_t t0, int64_t t1, int64_t m, int64_t cols, float* y) {
  const ConvShape& s = a.shape;
  for (int64_t t = t0; t < t1; ++t, products += a.width) {
    const Place4 at = tile_at(a, t);
    for (int64_t c = 0; c < cols; c += kLanes)
      tile_out(a, e, products + c, at, m + c, static_cast<int>(least<int64_t>(kLanes, cols - c)),
               y);
    if (e.fused == e.count) continue;
    const int64_t rows = least<int64_t>(kOut, s.out[1] - at.h),
                  columns = least<int64_t>(kOut, s.out[2] - at.w);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t pixel = (at.n * s.out[1] + at.h + i) * s.out[2] + at.w;
      apply_rows(e, e.fused, pixel, m, columns, cols, y + pixel * a.y_ld + m, a.y_ld);
    }
  }
}

}  // namespace

void winograd(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const WinogradArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  float* y = static_cast<float*>(launch->ranges[2].data);
  float* v = static_cast<float*>(launch->ranges[a.workspace].data) + first * a.region;
  float* products = v + kWinogradPoints * a.x_stride;
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  const int64_t all = s.N * a.tile_rows * a.tile_cols;
  const int64_t depth = (s.C + kPanel - 1) / kPanel * kPanel, weights = packed_size(s.C, s.M);
  int64_t transformed = -1;  // the first tile of the block in v
  for (uint32_t i = first; i < first + count; ++i) {
    const int64_t begin = i / a.col_items * a.tiles, end = least(all, begin + a.tiles),
                  m0 = i % a.col_items * a.cols, m1 = least(s.M, m0 + a.cols);
    for (int64_t t0 = begin; t0 < end; t0 += a.block) {
      const int64_t t1 = least(end, t0 + a.block);
      if (transformed != t0) transform_input(a, x, t0, t1, v);
      transformed = t0;
      for (int64_t m = m0; m < m1; m += a.width) {
        const int64_t cols = least(a.width, m1 - m);
        for (int64_t point = 0; point < kWinogradPoints; ++point)
          block_product({.rows = t1 - t0,
                         .cols = (cols + kLanes - 1) / kLanes * kLanes,
                         .depth = s.C,
                         .a = v + point * a.x_stride,
                         .lda = depth,
                         .b = w + point * weights + m * s.C,
                         .panel_stride = s.C * kPanel,
                         .c = products + point * a.y_stride,
                         .ldc = a.width,
                         .accumulate = false,
                         .epilogue = nullptr,
                         .row = 0,
                         .col = 0});
        transform_output(a, epilogue, products, t0, t1, m, cols, y);
      }
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
