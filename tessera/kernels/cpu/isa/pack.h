// Packing of activations, a block at a time.
#pragma once

#include "tessera/kernels/cpu/isa/vec.h"
#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadU __attribute__((vector_size(16), aligned(4), may_alias));

// Rows of 4 from columns of 4, in place.
TESSERA_INLINE void transpose(Quad (&q)[4]) {
  const Quad ab_low = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5),
             ab_high = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7),
             cd_low = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5),
             cd_high = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
  q[0] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  q[1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  q[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  q[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

// kLanes / 4 runs of 4 floats, `stride` apart.
TESSERA_INLINE Vec load_quads(const float* p, int64_t stride) {
#if defined(__AVX512F__)
  Vec v = _mm512_zextps128_ps512(_mm_loadu_ps(p));
  v = _mm512_maskz_insertf32x4(0xffff, v, _mm_loadu_ps(p + stride), 1);
  v = _mm512_maskz_insertf32x4(0xffff, v, _mm_loadu_ps(p + 2 * stride), 2);
  return _mm512_maskz_insertf32x4(0xffff, v, _mm_loadu_ps(p + 3 * stride), 3);
#elif defined(__AVX2__)
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + stride), 1);
#else
  (void)stride;
  return load(p);
#endif
}

// As above, in each group of 4 lanes.
#if defined(__AVX512F__)
#define TESSERA_UNPACK(part, a, b) _mm512_maskz_unpack##part##_ps(0xffff, a, b)
#define TESSERA_SHUFFLE(a, b, order) _mm512_maskz_shuffle_ps(0xffff, a, b, order)
#elif defined(__AVX2__)
#define TESSERA_UNPACK(part, a, b) _mm256_unpack##part##_ps(a, b)
#define TESSERA_SHUFFLE(a, b, order) _mm256_shuffle_ps(a, b, order)
#endif
#if defined(TESSERA_UNPACK)
TESSERA_INLINE void transpose(Vec (&v)[4]) {
  constexpr int kLow = 0x44, kHigh = 0xee;
  const Vec ab_low = TESSERA_UNPACK(lo, v[0], v[1]), ab_high = TESSERA_UNPACK(hi, v[0], v[1]),
            cd_low = TESSERA_UNPACK(lo, v[2], v[3]), cd_high = TESSERA_UNPACK(hi, v[2], v[3]);
  v[0] = TESSERA_SHUFFLE(ab_low, cd_low, kLow);
  v[1] = TESSERA_SHUFFLE(ab_low, cd_low, kHigh);
  v[2] = TESSERA_SHUFFLE(ab_high, cd_high, kLow);
  v[3] = TESSERA_SHUFFLE(ab_high, cd_high, kHigh);
}
#undef TESSERA_UNPACK
#undef TESSERA_SHUFFLE
#endif

// One panel of `cols` columns whose elements (k) are neighbours, `stride` floats apart. Columns
// beyond stay as they are.
[[maybe_unused]] static void pack_columns(const float* b, int64_t stride, int64_t cols,
                                          int64_t depth, float* panel) {
  int64_t j = 0;
  for (; j + kLanes <= cols; j += kLanes) {
    const float* from = b + j * stride;
    float* to = panel + j;
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      Vec v[4];
      TESSERA_UNROLL
      for (int i = 0; i < 4; ++i) v[i] = load_quads(from + i * stride + k, 4 * stride);
      transpose(v);
      TESSERA_UNROLL
      for (int i = 0; i < 4; ++i) store(to + (k + i) * kPanel, v[i]);
    }
    for (; k < depth; ++k)
      for (int i = 0; i < kLanes; ++i) to[k * kPanel + i] = from[i * stride + k];
  }
  for (; j + 4 <= cols; j += 4) {
    const float* from = b + j * stride;
    float* to = panel + j;
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      Quad q[4];
      for (int i = 0; i < 4; ++i) q[i] = *reinterpret_cast<const QuadU*>(from + i * stride + k);
      transpose(q);
      for (int i = 0; i < 4; ++i) *reinterpret_cast<QuadU*>(to + (k + i) * kPanel) = q[i];
    }
    for (; k < depth; ++k)
      for (int i = 0; i < 4; ++i) to[k * kPanel + i] = from[i * stride + k];
  }
  for (; j < cols; ++j)
    for (int64_t k = 0; k < depth; ++k) panel[k * kPanel + j] = b[j * stride + k];
}

// One panel of `cols` columns that are neighbours, rows `stride` floats apart.
[[maybe_unused]] static void pack_rows_of(const float* b, int64_t stride, int64_t cols,
                                          int64_t depth, float* panel) {
  if (cols == kPanel) {
    for (int64_t k = 0; k < depth; ++k)
      for (int v = 0; v < kPanel / kLanes; ++v)
        store(panel + k * kPanel + v * kLanes, load(b + k * stride + v * kLanes));
    return;
  }
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t j = 0; j < cols; ++j) panel[k * kPanel + j] = b[k * stride + j];
}

// b (depth, cols), elements row and col floats apart, as panels of `depth` rows each; columns
// beyond are 0.
[[maybe_unused]] static void pack_block(const float* b, int64_t row, int64_t col, int64_t cols,
                                        int64_t depth, float* panels) {
  for (int64_t n = 0; n < cols; n += kPanel, panels += depth * kPanel) {
    const int64_t width = least(kPanel, cols - n);
    const float* from = b + n * col;
    if (width < kPanel)
      for (int64_t i = 0; i < depth * kPanel; ++i) panels[i] = 0.0f;
    if (col == 1) {
      pack_rows_of(from, row, width, depth, panels);
    } else if (row == 1) {
      pack_columns(from, col, width, depth, panels);
    } else {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < width; ++j) panels[k * kPanel + j] = from[k * row + j * col];
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
