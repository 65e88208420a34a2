// Convolution on channels-last operands: for a tile of pixels and channels, the sum over the taps
// of products that read the pixels where they lie. Taps in the padding are left out; where only
// some pixels of a tile are, those read zeros.
#include "tessera/kernels/cpu/conv_last_args.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/tiling.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kMaxTerms = 64;                        // of one sum: more taps are added to y
constexpr int64_t kBlockFloats = int64_t{80} << 10;  // of B that a sum reads: they stay in L2

int64_t product(const int64_t* v) { return v[0] * v[1] * v[2]; }

struct Item {
  const ConvLastArgs& a;
  const float* x;      // of the image and group
  const float* w;      // of the group
  const float* zeros;  // C of them
  float* y;            // of the image and group
  const BoundEpilogue& epilogue;
  int64_t row, col;  // of the image's first pixel and the group's first channel in the result
};

struct Pixel {
  int64_t d, h, w;
};

Pixel pixel_at(const ConvShape& s, int64_t p) {
  return {p / (s.out[1] * s.out[2]), p / s.out[2] % s.out[1], p % s.out[2]};
}

// The terms of taps [t0, t1) for `rows` pixels from `p` on.
struct Terms {
  Term list[kMaxTerms];
  const float* rows[kMaxTerms][kMaxTileRows];
  int64_t count;
};

// The pixels of a tile are neighbours in one row: a tap that lies inside for all of them is read
// with a constant stride.
void row_terms(const Item& item, Pixel p, int rows, int64_t t0, int64_t t1, const float* b,
               Terms& terms) {
  const ConvLastArgs& a = item.a;
  const ConvShape& s = a.shape;
  terms.count = 0;
  int64_t tap[3] = {};
  if (t0 > 0) {
    tap[0] = t0 / (s.kernel[1] * s.kernel[2]);
    tap[1] = t0 / s.kernel[2] % s.kernel[1];
    tap[2] = t0 % s.kernel[2];
  }
  for (int64_t t = t0; t < t1; ++t, b += s.C * kPanel) {
    const int64_t d = p.d * s.stride[0] - s.pad[0] + tap[0] * s.dilation[0],
                  h = p.h * s.stride[1] - s.pad[1] + tap[1] * s.dilation[1],
                  w = p.w * s.stride[2] - s.pad[2] + tap[2] * s.dilation[2];
    if (++tap[2] == s.kernel[2]) {
      tap[2] = 0;
      if (++tap[1] == s.kernel[1]) tap[1] = 0, ++tap[0];
    }
    const int64_t last = w + (rows - 1) * s.stride[2];
    if (d < 0 || d >= s.in[0] || h < 0 || h >= s.in[1] || last < 0 || w >= s.in[2]) continue;
    const float* from = item.x + ((d * s.in[1] + h) * s.in[2] + w) * a.x_ld;
    Term& term = terms.list[terms.count];
    term = {from, nullptr, b, s.C};
    if (w < 0 || last >= s.in[2]) {
      const float** table = terms.rows[terms.count];
      for (int r = 0; r < rows; ++r) {
        const int64_t at = w + r * s.stride[2];
        table[r] = at < 0 || at >= s.in[2] ? item.zeros : from + r * s.stride[2] * a.x_ld;
      }
      term.rows = table;
    }
    ++terms.count;
  }
}

// Any pixels.
void table_terms(const Item& item, Pixel first, int rows, int64_t t0, int64_t t1, const float* b,
                 Terms& terms) {
  const ConvLastArgs& a = item.a;
  const ConvShape& s = a.shape;
  terms.count = 0;
  for (int64_t t = t0; t < t1; ++t, b += s.C * kPanel) {
    const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1],
                            t % s.kernel[2]};
    Pixel p = first;
    bool any = false;
    const float** table = terms.rows[terms.count];
    for (int r = 0; r < rows; ++r) {
      const int64_t d = p.d * s.stride[0] - s.pad[0] + tap[0] * s.dilation[0],
                    h = p.h * s.stride[1] - s.pad[1] + tap[1] * s.dilation[1],
                    w = p.w * s.stride[2] - s.pad[2] + tap[2] * s.dilation[2];
      const bool in = d >= 0 && d < s.in[0] && h >= 0 && h < s.in[1] && w >= 0 && w < s.in[2];
      table[r] = in ? item.x + ((d * s.in[1] + h) * s.in[2] + w) * a.x_ld : item.zeros;
      any |= in;
      if (++p.w == s.out[2]) {
        p.w = 0;
        if (++p.h == s.out[1]) p.h = 0, ++p.d;
      }
    }
    if (any) terms.list[terms.count++] = {nullptr, table, b, s.C};
  }
}

// Channels [m, m + cols) of a plane's pixels.
struct Block {
  const Item& item;
  int64_t m, cols;
  const float* b;  // of the first tap
  int64_t t0, t1;  // taps that are summed

  void tile(int64_t p, int rows, const Terms& terms) const {
    const ConvLastArgs& a = item.a;
    const int64_t taps = product(a.shape.kernel);
    tile_product({.rows = rows,
                  .cols = static_cast<int>(cols),
                  .terms = terms.list,
                  .count = terms.count,
                  .lda = a.shape.stride[2] * a.x_ld,
                  .panel_stride = taps * a.shape.C * kPanel,
                  .c = item.y + p * a.y_ld + m,
                  .ldc = a.y_ld,
                  .accumulate = t0 > 0,
                  .epilogue = t1 == taps ? &item.epilogue : nullptr,
                  .row = item.row + p,
                  .col = item.col + m});
  }
};

// Pixels [p0, p1): rows of the plane in tiles of about the same height.
void by_rows(const Block& block, int64_t p0, int64_t p1) {
  const ConvShape& s = block.item.a.shape;
  const int64_t highest = tile_rows(block.cols);
  Pixel pixel = pixel_at(s, p0);
  Terms terms;
  for (int64_t p = p0; p < p1;) {
    const int64_t run = least(p1 - p, s.out[2] - pixel.w), tiles = (run + highest - 1) / highest,
                  low = run / tiles, higher = run - low * tiles;
    for (int64_t i = 0; i < tiles; ++i) {
      const int rows = static_cast<int>(low + (i < higher));
      row_terms(block.item, pixel, rows, block.t0, block.t1, block.b, terms);
      block.tile(p, rows, terms);
      p += rows;
      pixel.w += rows;
    }
    pixel.w = 0;
    if (++pixel.h == s.out[1]) pixel.h = 0, ++pixel.d;
  }
}

// One tap at distance 1: pixels of x and y are rows of one product.
void flat(const Item& item, int64_t p0, int64_t p1, int64_t m, int64_t cols, const float* b) {
  const ConvLastArgs& a = item.a;
  block_product({.rows = p1 - p0,
                 .cols = cols,
                 .depth = a.shape.C,
                 .a = item.x + p0 * a.x_ld,
                 .lda = a.x_ld,
                 .b = b,
                 .panel_stride = a.shape.C * kPanel,
                 .c = item.y + p0 * a.y_ld + m,
                 .ldc = a.y_ld,
                 .accumulate = false,
                 .epilogue = &item.epilogue,
                 .row = item.row + p0,
                 .col = item.col + m,
                 .ahead = nullptr});
}

// Tiles of pixels from several short rows.
void by_tables(const Block& block, int64_t p0, int64_t p1) {
  const int64_t highest = tile_rows(block.cols);
  Terms terms;
  for (int64_t p = p0; p < p1; p += highest) {
    const int rows = static_cast<int>(least(highest, p1 - p));
    table_terms(block.item, pixel_at(block.item.a.shape, p), rows, block.t0, block.t1, block.b,
                terms);
    block.tile(p, rows, terms);
  }
}

void channels(const Item& item, int64_t p0, int64_t p1, int64_t m, int64_t cols) {
  const ConvShape& s = item.a.shape;
  const int64_t taps = product(s.kernel);
  const int64_t step =
      most<int64_t>(1, least<int64_t>(kMaxTerms, kBlockFloats / most<int64_t>(1, s.C * cols)));
  const float* b = item.w + m / kPanel * taps * s.C * kPanel + m % kPanel;
  if (item.a.flat) return flat(item, p0, p1, m, cols, b);
  for (int64_t t = 0; t < taps; t += step) {
    const Block block{item, m, cols, b + t * s.C * kPanel, t, least(taps, t + step)};
    (s.out[2] >= tile_rows(cols) / 2 ? by_rows : by_tables)(block, p0, p1);
  }
}

}  // namespace

void conv_last(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ConvLastArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const float* x = static_cast<const float*>(launch->ranges[0].data);
  const float* w = static_cast<const float*>(launch->ranges[1].data);
  float* y = static_cast<float*>(launch->ranges[2].data);
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  const int64_t group = packed_size(product(s.kernel) * s.C, s.M), P = product(s.out);
  for (uint32_t i = first; i < first + count; ++i) {
    int64_t rest = i;
    const int64_t block = rest % a.col_items;
    rest /= a.col_items;
    const int64_t pixels = rest % a.pixel_items;
    rest /= a.pixel_items;
    const int64_t g = rest % s.G, n = rest / s.G;
    const Item item{.a = a,
                    .x = x + n * product(s.in) * a.x_ld + g * s.C,
                    .w = w + g * group,
                    .zeros = w + s.G * group,
                    .y = y + n * P * a.y_ld + g * s.M,
                    .epilogue = epilogue,
                    .row = n * P,
                    .col = g * s.M};
    const int64_t p0 = pixels * a.pixels, p1 = least(P, p0 + a.pixels);
    const int64_t m0 = block * a.cols, m1 = least(s.M, m0 + a.cols);
    each_width(m0, m1, least(p1 - p0, s.out[2]),
               [&](int64_t m, int64_t cols) { channels(item, p0, p1, m, cols); });
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
