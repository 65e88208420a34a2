// Winograd convolution on channels-last operands: for a block of tiles the transformed input, a
// vector of channels at a time; for some channels of M one product per point; then the transformed
// result with its epilogue.
#include "tessera/kernels/cpu/winograd_args.h"

#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/fuse.h"
#include "tessera/kernels/cpu/isa/tile_product.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kIn = static_cast<int>(kWinogradIn);
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

// The first M of m = A^T m: row j holds the j-th powers of the points.
template <int M>
TESSERA_INLINE void transform_out(Vec (&m)[kIn]) {
  static_assert(M == 2 || M == 4);
  const Vec sum_p = m[1] + m[2], difference_p = m[1] - m[2], sum_q = m[3] + m[4],
            difference_q = m[3] - m[4];
  m[0] = m[0] + sum_p + sum_q;
  m[1] = kP * difference_p + kQ * difference_q;
  if constexpr (M == 2) {
    m[1] += m[5];
  } else {
    m[2] = kP2 * sum_p + kQ2 * sum_q;
    m[3] = kP2 * kP * difference_p + kQ2 * kQ * difference_q + m[5];
  }
}

struct Corner {
  int64_t n, h, w;  // image, first output row and column
};
Corner tile_at(const WinogradArgs& a, int64_t tile) {
  const int64_t per_image = a.tile_rows * a.tile_cols, within = tile % per_image;
  return {tile / per_image, within / a.tile_cols * a.out, within % a.tile_cols * a.out};
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

int64_t depth_of(const WinogradArgs& a) { return (a.shape.C + kPanel - 1) / kPanel * kPanel; }

// Tiles [t0, t1) of all channels; `v`: of tile t0.
void transform_input(const WinogradArgs& a, const float* x, int64_t t0, int64_t t1, float* v) {
  const ConvShape& s = a.shape;
  for (int64_t t = t0; t < t1; ++t, v += depth_of(a)) {
    const Corner at = tile_at(a, t);
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

// Products of a tile, `lanes` channels from `col` on, to output pixels from `at` on. Channel 0 of y
// is channel `group` of the result.
template <int M>
void tile_out(const WinogradArgs& a, const BoundEpilogue& e, const float* products,
              const Corner& at, int64_t group, int64_t col, int lanes, float* y) {
  const ConvShape& s = a.shape;
  Vec half[M][kIn];
  TESSERA_UNROLL
  for (int j = 0; j < kIn; ++j) {
    Vec column[kIn];
    TESSERA_UNROLL
    for (int i = 0; i < kIn; ++i) column[i] = load(products + (i * kIn + j) * a.y_stride);
    transform_out<M>(column);
    TESSERA_UNROLL
    for (int i = 0; i < M; ++i) half[i][j] = column[i];
  }
  Vec out[M][M][1];
  TESSERA_UNROLL
  for (int i = 0; i < M; ++i) {
    transform_out<M>(half[i]);
    TESSERA_UNROLL
    for (int j = 0; j < M; ++j) out[i][j][0] = half[i][j];
  }
  const int64_t rows = least<int64_t>(M, s.out[1] - at.h),
                columns = least<int64_t>(M, s.out[2] - at.w);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t pixel = (at.n * s.out[1] + at.h + i) * s.out[2] + at.w;
    float* to = y + pixel * a.y_ld + col;
    if (columns == M) {
      store_row<M>(e, pixel, group + col, lanes, out[i], to, a.y_ld);
    } else {
      for (int64_t j = 0; j < columns; ++j) {
        Vec one[1][1] = {{out[i][j][0]}};
        store_row<1>(e, pixel + j, group + col, lanes, one, to + j * a.y_ld, a.y_ld);
      }
    }
  }
}

// Channels [m, m + cols) of tiles [t0, t1).
void transform_output(const WinogradArgs& a, const BoundEpilogue& e, const float* products,
                      int64_t t0, int64_t t1, int64_t group, int64_t m, int64_t cols, float* y) {
  const ConvShape& s = a.shape;
  const auto out = a.out == 4 ? tile_out<4> : tile_out<2>;
  for (int64_t t = t0; t < t1; ++t, products += a.width) {
    const Corner at = tile_at(a, t);
    for (int64_t c = 0; c < cols; c += kLanes)
      out(a, e, products + c, at, group, m + c, static_cast<int>(least<int64_t>(kLanes, cols - c)),
          y);
    if (e.fused == e.count) continue;
    const int64_t rows = least<int64_t>(a.out, s.out[1] - at.h),
                  columns = least<int64_t>(a.out, s.out[2] - at.w);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t pixel = (at.n * s.out[1] + at.h + i) * s.out[2] + at.w;
      apply_rows(e, e.fused, pixel, group + m, columns, cols, y + pixel * a.y_ld + m, a.y_ld);
    }
  }
}

// Channels [m, m + cols) of the products of `tiles` tiles.
void products_of(const WinogradArgs& a, const float* v, const float* w, int64_t tiles, int64_t m,
                 int64_t cols, float* products) {
  const int64_t C = a.shape.C, weights = packed_size(C, a.shape.M);
  for (int64_t point = 0; point < kWinogradPoints; ++point)
    block_product({.rows = tiles,
                   .cols = (cols + kLanes - 1) / kLanes * kLanes,
                   .depth = C,
                   .a = v + point * a.x_stride,
                   .lda = depth_of(a),
                   .b = w + point * weights + m * C,
                   .panel_stride = C * kPanel,
                   .c = products + point * a.y_stride,
                   .ldc = a.width,
                   .accumulate = false,
                   .epilogue = nullptr,
                   .row = 0,
                   .col = 0});
}

}  // namespace

void winograd_in(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const WinogradArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  float* v = static_cast<float*>(launch->ranges[a.workspace].data);
  const int64_t all = s.N * a.tile_rows * a.tile_cols;
  for (uint32_t i = first; i < first + count; ++i) {
    const int64_t g = i / a.in_items, t0 = i % a.in_items * a.in_tiles;
    transform_input(a, x + g * s.C, t0, least(all, t0 + a.in_tiles),
                    v + g * kWinogradPoints * a.x_stride + t0 * depth_of(a));
  }
}

void winograd(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const WinogradArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  float* y = static_cast<float*>(launch->ranges[2].data);
  float* workspace = static_cast<float*>(launch->ranges[a.workspace].data);
  float* products = workspace + a.shared + first * a.region;
  float* own = products + kWinogradPoints * a.y_stride;  // transformed input, unless shared
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  const int64_t all = s.N * a.tile_rows * a.tile_cols;
  for (uint32_t i = first; i < first + count; ++i) {
    const int64_t g = i / a.col_items / a.tile_items;
    const int64_t begin = i / a.col_items % a.tile_items * a.tiles,
                  end = least(all, begin + a.tiles), m0 = i % a.col_items * a.cols,
                  m1 = least(s.M, m0 + a.cols);
    for (int64_t t0 = begin; t0 < end; t0 += a.block) {
      const int64_t t1 = least(end, t0 + a.block);
      const float* v = workspace + g * kWinogradPoints * a.x_stride + t0 * depth_of(a);
      if (a.shared == 0) {
        transform_input(a, x + g * s.C, t0, t1, own);
        v = own;
      }
      for (int64_t m = m0; m < m1; m += a.width) {
        const int64_t cols = least(a.width, m1 - m);
        products_of(a, v, w + g * kWinogradPoints * packed_size(s.C, s.M), t1 - t0, m, cols,
                    products);
        transform_output(a, epilogue, products, t0, t1, g * s.M, m, cols, y + g * s.M);
      }
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
