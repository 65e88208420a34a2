// Convolution of 8-bit integers: for a tile of pixels and channels, the sum over the terms of
// products that read the pixels where they lie in x, or in a copy with padding of a part of it.
#include "tessera/kernels/cpu/isa/integer_entries.h"
#include "tessera/kernels/cpu/isa/integer_tile.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kMaxTerms = 1024;

int64_t product(const int64_t* v) { return v[0] * v[1] * v[2]; }

// Where the pixels that a block reads lie.
struct Source {
  const uint8_t* x;
  int64_t step[3];  // along in[]
};

// `count` pixels of C channels, packed.
void copy_pixels(const IntegerConvArgs& a, const uint8_t* from, int64_t count, uint8_t* to) {
  const int64_t C = a.shape.C;
  if (a.x_channel == 1 && a.x_step[2] == C) {
    __builtin_memcpy(to, from, static_cast<size_t>(count * C));
  } else if (a.x_channel == 1) {
    for (int64_t p = 0; p < count; ++p)
      __builtin_memcpy(to + p * C, from + p * a.x_step[2], static_cast<size_t>(C));
  } else {
    for (int64_t c = 0; c < C; ++c)
      for (int64_t p = 0; p < count; ++p) to[p * C + c] = from[c * a.x_channel + p * a.x_step[2]];
  }
}

// What the output pixels from `at` on, `size` of them along each axis, read, and all in between.
Source copy(const IntegerConvArgs& a, const uint8_t* x, const int64_t* at, const int64_t* size,
            uint8_t zero, uint8_t* to) {
  const ConvShape& s = a.shape;
  int64_t extent[3], origin[3];
  for (int i = 0; i < 3; ++i) {
    extent[i] = (size[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1;
    origin[i] = at[i] * s.stride[i] - s.pad[i];
  }
  const int64_t row = extent[2] * s.C;
  const Source source{to, {extent[1] * row, row, s.C}};
  const int64_t w0 = least(most<int64_t>(origin[2], 0), s.in[2]),
                w1 = most(w0, least(s.in[2], origin[2] + extent[2]));
  for (int64_t d = 0; d < extent[0]; ++d)
    for (int64_t h = 0; h < extent[1]; ++h, to += row) {
      const int64_t z = origin[0] + d, y = origin[1] + h;
      const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1] && w0 < w1;
      const int64_t before = inside ? (w0 - origin[2]) * s.C : row;
      __builtin_memset(to, zero, static_cast<size_t>(before));
      if (!inside) continue;
      copy_pixels(a, x + z * a.x_step[0] + y * a.x_step[1] + w0 * a.x_step[2], w1 - w0,
                  to + before);
      const int64_t done = before + (w1 - w0) * s.C;
      __builtin_memset(to + done, zero, static_cast<size_t>(row - done));
    }
  return source;
}

int64_t terms_of(const IntegerConvArgs& a, const int64_t* step, int64_t* terms) {
  const ConvShape& s = a.shape;
  int64_t count = 0;
  for (int64_t d = 0; d < s.kernel[0]; ++d)
    for (int64_t h = 0; h < s.kernel[1]; ++h)
      for (int64_t w = 0; w < (a.merged ? 1 : s.kernel[2]); ++w)
        terms[count++] =
            d * s.dilation[0] * step[0] + h * s.dilation[1] * step[1] + w * s.dilation[2] * step[2];
  return count;
}

}  // namespace

void integer_conv(const tessera_launch* launch, uint32_t first, uint32_t count) {
  alignas(64) uint8_t scratch[kIntegerCopy];
  const auto& a = *static_cast<const IntegerConvArgs*>(launch->constants);
  const ConvShape& s = a.shape;
  const BoundInteger bound = bind_integer(a.terms, a.result, launch);
  const auto* x = static_cast<const uint8_t*>(launch->ranges[0].data);
  const auto* w = static_cast<const uint8_t*>(launch->ranges[1].data);
  auto* y = static_cast<char*>(launch->ranges[2].data);
  const int64_t P = product(s.out), depth = s.C * (a.merged ? s.kernel[2] : 1);
  const int64_t term_count = product(s.kernel) / (a.merged ? s.kernel[2] : 1);
  const int64_t panel = term_count * ((depth + kQuad - 1) / kQuad) * kQuad * kPanel;
  const int64_t group = panels_of(s.M) * (panel + kPanel * 4);
  int64_t terms[kMaxTerms], at[kIntegerPixels];
  for (uint32_t i = first; i < first + count; ++i) {
    int64_t rest = i;
    const int64_t cols_at = rest % a.col_items * a.cols;
    rest /= a.col_items;
    int64_t from[3], size[3], pixels = 1;
    for (int k = 2; k >= 0; --k) {
      from[k] = rest % a.blocks[k] * a.block[k];
      rest /= a.blocks[k];
      size[k] = least(a.block[k], s.out[k] - from[k]);
      pixels *= size[k];
    }
    const int64_t g = rest % s.G, n = rest / s.G;
    const uint8_t* image = x + n * a.x_batch + g * s.C * a.x_channel;
    Source source{image, {a.x_step[0], a.x_step[1], a.x_step[2]}};
    if (a.copies) {
      source = copy(a, image, from, size, static_cast<uint8_t>(bound.x_zero), scratch);
    } else {
      for (int k = 0; k < 3; ++k) source.x += (from[k] * s.stride[k] - s.pad[k]) * a.x_step[k];
    }
    const int64_t term_total = terms_of(a, source.step, terms);
    int64_t p = 0;
    for (int64_t d = 0; d < size[0]; ++d)
      for (int64_t h = 0; h < size[1]; ++h)
        for (int64_t v = 0; v < size[2]; ++v)
          at[p++] = d * s.stride[0] * source.step[0] + h * s.stride[1] * source.step[1] +
                    v * s.stride[2] * source.step[2];
    const int64_t pixel = (from[0] * s.out[1] + from[1]) * s.out[2] + from[2];
    const uint8_t* weights = w + g * group;
    const auto* sums = reinterpret_cast<const int32_t*>(weights + panels_of(s.M) * panel);
    integer_block(bound,
                  {.rows = pixels,
                   .cols = least(a.cols, s.M - cols_at),
                   .x = source.x,
                   .at = at,
                   .terms = terms,
                   .count = term_total,
                   .depth = depth,
                   .w = weights + cols_at / kPanel * panel,
                   .panel = panel,
                   .w_sums = sums + cols_at,
                   .row = n * P + pixel,
                   .col = g * s.M + cols_at,
                   .y = y + ((n * P + pixel) * a.y_ld + g * s.M + cols_at) * bytes_of(bound.type),
                   .ld = a.y_ld});
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
