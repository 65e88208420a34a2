// Convolution of channels-last pixels in bf16: for a tile of pixels of a row and channels, the sum
// over the taps of products that read the pixels where they lie, in a copy that has the padding.
#include "tessera/kernels/cpu/conv_last_args.h"
#include "tessera/kernels/cpu/isa/half.h"
#include "tessera/kernels/cpu/isa/narrow_entries.h"
#if defined(TESSERA_TILES)
#include "tessera/kernels/cpu/isa/narrow_tiles.h"
#else
#include "tessera/kernels/cpu/isa/narrow_block.h"
#endif
#include "tessera/kernels/cpu/narrow.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kMostTaps = 128;

int64_t product(const int64_t* v) { return v[0] * v[1] * v[2]; }

// `count` neighbours to bf16, then zeros up to `depth`.
void round_pixel(const float* from, int64_t count, int64_t depth, uint16_t* to) {
#if defined(TESSERA_TILES)
  for (int64_t k = 0; k < depth; k += kTileDepth)
    round_run(from + k, least(kTileDepth, count - k), to + k);
#else
  int64_t k = 0;
#if defined(__AVX512BF16__)
  for (; k + 2 * kLanes <= count; k += 2 * kLanes)
    _mm512_storeu_si512(to + k, reinterpret_cast<__m512i>(
                                    _mm512_cvtne2ps_pbh(load(from + k + kLanes), load(from + k))));
#endif
  for (; k < count; ++k) to[k] = to_bf16(from[k]);
  for (; k < depth; ++k) to[k] = 0;
#endif
}

// A row of x with its padding.
void copy_pixels(const NarrowConvArgs& a, const float* x, uint16_t* to) {
  const ConvShape& s = a.shape;
  const int64_t w0 = s.pad[2], w1 = least(a.extent[2], s.pad[2] + s.in[2]);
  __builtin_memset(to, 0, static_cast<size_t>(w0 * a.depth) * 2);
  for (int64_t w = w0; w < w1; ++w)
    round_pixel(x + (w - w0) * a.x_ld, s.C, a.depth, to + w * a.depth);
  __builtin_memset(to + w1 * a.depth, 0, static_cast<size_t>((a.extent[2] - w1) * a.depth) * 2);
}

// What each output column reads of a row of x.
void copy_runs(const NarrowConvArgs& a, const float* x, uint16_t* to) {
  uint16_t line[kNarrowLine];
  const int64_t C = a.shape.C / a.run, width = (a.extent[2] - 1) * a.run_stride + a.run,
                end = least(a.x_width, width - a.run_pad);
  __builtin_memset(line, 0, static_cast<size_t>(width * C) * 2);
  for (int64_t c = 0; c < C; ++c)
    for (int64_t w = 0; w < end; ++w)
      line[(w + a.run_pad) * C + c] = to_bf16(x[w * a.x_ld + c * a.x_channel]);
  for (int64_t w = 0; w < a.extent[2]; ++w, to += a.depth) {
    __builtin_memcpy(to, line + w * a.run_stride * C, static_cast<size_t>(a.shape.C) * 2);
    __builtin_memset(to + a.shape.C, 0, static_cast<size_t>(a.depth - a.shape.C) * 2);
  }
}

// What the blocks of an item have in common.
struct Rows {
  const NarrowConvArgs& a;
  const uint16_t* x;  // of the image
  const uint16_t* w;  // of the first column
  int64_t panel;      // elements from a panel to the next
  float* y;           // of the image and the first column
  int64_t cols;
  int64_t taps[kMostTaps];  // elements from a window's first pixel to each of its pixels
  int64_t count;
  const BoundEpilogue* epilogue;  // null: none
  int64_t row, col;               // of the image's first pixel in the result

  // Elements from the image's first pixel to what the first pixel of row r reads first.
  int64_t at(int64_t r) const {
    const ConvShape& s = a.shape;
    const int64_t d = r / s.out[1] * s.stride[0], h = r % s.out[1] * s.stride[1];
    return (d * a.extent[1] + h) * a.extent[2] * a.depth;
  }
};

int64_t taps_of(const NarrowConvArgs& a, int64_t* taps) {
  const ConvShape& s = a.shape;
  int64_t count = 0;
  for (int64_t d = 0; d < s.kernel[0]; ++d)
    for (int64_t h = 0; h < s.kernel[1]; ++h)
      for (int64_t w = 0; w < s.kernel[2]; ++w)
        taps[count++] = ((d * s.dilation[0] * a.extent[1] + h * s.dilation[1]) * a.extent[2] +
                         w * s.dilation[2]) *
                        a.depth;
  return count;
}

#if defined(TESSERA_TILES)

// A tile of pixels of one row.
struct PixelTile {
  int64_t x;      // elements from the image's first pixel
  int64_t pixel;  // of the plane
  int64_t count;
};

template <bool kLow, bool kWide>
void pixel_pair(TESSERA_TILES& unit, const Rows& o, const PixelTile* tiles, int64_t n,
                const float* start) {
  alignas(64) float sums[kPairSums];
  const NarrowConvArgs& a = o.a;
  const int64_t cols = least(o.cols - n, kPairCols), depth = a.depth / kTileDepth,
                pitch = a.shape.stride[2] * a.depth * 2;
  begin_sums<kLow, kWide>(unit, start, 0, a.height);
  const uint16_t* w = o.w + n / kPanel * o.panel;
  for (int64_t t = 0; t < o.count; ++t, w += depth * kPanelTile)
    add_tiles<kLow, kWide>(unit,
                           {o.x + tiles[0].x + o.taps[t],
                            kLow ? o.x + tiles[1].x + o.taps[t] : nullptr, w, w + o.panel, depth},
                           pitch, kTileDepth);
  end_sums<kLow, kWide>(unit, sums, kPairCols * 4, a.height);
  for (int i = 0; i < (kLow ? 2 : 1); ++i)
    finish_narrow(
        {o.y + tiles[i].pixel * a.y_ld + n, a.y_ld, o.epilogue, o.row + tiles[i].pixel, o.col + n},
        start != nullptr, sums + i * a.height * kPairCols, tiles[i].count, cols);
}

// Rows [r0, r1) of the plane.
void rows_product(TESSERA_TILES& unit, const Rows& o, int64_t r0, int64_t r1) {
  alignas(64) float start[kPairCols];
  const NarrowConvArgs& a = o.a;
  const int64_t width = a.shape.out[2], across = (width + a.height - 1) / a.height,
                all = (r1 - r0) * across;
  const auto tile_at = [&](int64_t i) {
    const int64_t r = r0 + i / across, w = i % across * a.height;
    return PixelTile{o.at(r) + w * a.shape.stride[2] * a.depth, r * width + w,
                     least(a.height, width - w)};
  };
  const auto pair = [&](int64_t i, int64_t n) {
    const PixelTile tiles[2] = {tile_at(i), tile_at(least(i + 1, all - 1))};
    const int64_t cols = least(kPairCols, o.cols - n);
    const float* from = start_of(o.epilogue, o.col + n, cols, start);
    if (i + 1 < all)
      (cols > kPanel ? pixel_pair<true, true> : pixel_pair<true, false>)(unit, o, tiles, n, from);
    else
      (cols > kPanel ? pixel_pair<false, true> : pixel_pair<false, false>)(unit, o, tiles, n, from);
  };
  // As narrow_tiles.
  constexpr int64_t kElementsNear = int64_t{512} << 10;
  if (panels_of(o.cols) * o.panel <= kElementsNear) {
    for (int64_t i = 0; i < all; i += 2)
      for (int64_t n = 0; n < o.cols; n += kPairCols) pair(i, n);
  } else {
    for (int64_t n = 0; n < o.cols; n += kPairCols)
      for (int64_t i = 0; i < all; i += 2) pair(i, n);
  }
}

#else

struct NoUnit {
  void release() {}
};

// A row and a tap at a time.
void rows_product(NoUnit&, const Rows& o, int64_t r0, int64_t r1) {
  const NarrowConvArgs& a = o.a;
  for (int64_t r = r0; r < r1; ++r)
    for (int64_t t = 0; t < o.count; ++t) {
      const int64_t pixel = r * a.shape.out[2];
      NarrowBlock<Bf16Rounded> block{};
      block.rows = a.shape.out[2];
      block.cols = o.cols;
      block.depth = a.depth;
      block.a = o.x + o.at(r) + o.taps[t];
      block.lda = a.shape.stride[2] * a.depth;
      block.b = o.w + t * a.depth * kPanel;
      block.panel_stride = o.panel;
      block.c = o.y + pixel * a.y_ld;
      block.ldc = a.y_ld;
      block.accumulate = t > 0;
      block.epilogue = t + 1 == o.count ? o.epilogue : nullptr;
      block.row = o.row + pixel;
      block.col = o.col;
      block_product(block);
    }
}

#endif

}  // namespace

void narrow_pixels(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const NarrowConvArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const auto* x = static_cast<const float*>(launch->ranges[0].data);
  auto* to = static_cast<uint16_t*>(launch->ranges[1].data);
  const int64_t row = a.extent[2] * a.depth;
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t n = i / (a.extent[0] * a.extent[1]), d = i / a.extent[1] % a.extent[0] - s.pad[0],
                  h = i % a.extent[1] - s.pad[1];
    uint16_t* pixels = to + i * row;
    if (d < 0 || d >= s.in[0] || h < 0 || h >= s.in[1])
      __builtin_memset(pixels, 0, static_cast<size_t>(row) * 2);
    else
      (a.run == 1 ? copy_pixels : copy_runs)(a, x + n * a.x_image + (d * s.in[1] + h) * a.x_row,
                                             pixels);
  }
}

void narrow_conv(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const NarrowConvArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const auto* x = static_cast<const uint16_t*>(launch->ranges[0].data);
  const auto* w = static_cast<const uint16_t*>(launch->ranges[1].data);
  auto* y = static_cast<float*>(launch->ranges[2].data);
  const BoundEpilogue epilogue = bind(a.epilogue, launch);
  const int64_t P = product(s.out), image = product(a.extent) * a.depth,
                panel = product(s.kernel) * a.depth * kPanel;
#if defined(TESSERA_TILES)
  TESSERA_TILES unit;
  configure_narrow(unit, a.height);
#else
  NoUnit unit;
#endif
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t m = i % a.col_items * a.cols, r = i / a.col_items % a.row_items * a.rows,
                  n = i / a.col_items / a.row_items;
    Rows o{a,
           x + n * image,
           w + m / kPanel * panel,
           panel,
           y + n * P * a.y_ld + m,
           least(a.cols, s.M - m),
           {},
           0,
           epilogue.count > 0 ? &epilogue : nullptr,
           n * P,
           m};
    o.count = taps_of(a, o.taps);
    rows_product(unit, o, r, least(s.out[0] * s.out[1], r + a.rows));
  }
  unit.release();
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
