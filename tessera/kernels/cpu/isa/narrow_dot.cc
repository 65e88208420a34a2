// Products of activations in f32 and weights in bf16 or f16 (narrow.h), summed in f32. Weights are
// widened in registers; pairs of bf16 are multiplied as they are where there is an instruction for
// that, for which activations are rounded: by a launch before, or a block of rows at a time. Units
// of tiles multiply them in whole tiles (narrow_tiles.h).
#include "tessera/kernels/cpu/isa/half.h"
#include "tessera/kernels/cpu/isa/narrow_block.h"
#include "tessera/kernels/cpu/isa/narrow_entries.h"
#if defined(TESSERA_TILES)
#include "tessera/kernels/cpu/isa/narrow_tiles.h"
#endif
#include "tessera/kernels/cpu/isa/products.h"
#include "tessera/kernels/cpu/narrow.h"
#include "tessera/kernels/cpu/peak_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// Elements that an item copies of A, on its stack; its rows and depth.
constexpr int64_t kCopyRows = 144, kCopyDepth = 384;
constexpr int64_t kCopySize = kCopyRows * kCopyDepth;

// The size of the fewest, equal, even parts of at most `bound`.
int64_t part_of(int64_t size, int64_t bound) {
  const int64_t parts = most<int64_t>(1, (size + bound - 1) / bound);
  return most<int64_t>(2, ((size + parts - 1) / parts + 1) / 2 * 2);
}

void copy_row(const float* a, int64_t step, int64_t depth, float* to) {
  for (int64_t k = 0; k < depth; ++k) to[k] = a[k * step];
}

// Rounds to bf16; an odd depth is filled up with 0.
[[maybe_unused]] void copy_row(const float* a, int64_t step, int64_t depth, uint16_t* to) {
  int64_t k = 0;
#if defined(__AVX512BF16__)
  if (step == 1) {
    for (; k + 2 * kLanes <= depth; k += 2 * kLanes)
      _mm512_storeu_si512(to + k, reinterpret_cast<__m512i>(
                                      _mm512_cvtne2ps_pbh(load(a + k + kLanes), load(a + k))));
    for (; k < depth; k += kLanes) {
      const int count = static_cast<int>(least<int64_t>(kLanes, depth - k));
      const __m256bh rounded = _mm512_cvtneps_pbh(Part(count).load(a + k));
      _mm256_mask_storeu_epi16(to + k, static_cast<__mmask16>(0xffffu >> (kLanes - count)),
                               reinterpret_cast<__m256i>(rounded));
    }
  }
#endif
  for (; k < depth; ++k) to[k] = to_bf16(a[k * step]);
  if (depth % 2 != 0) to[depth] = 0;
}

// What items have in common; pointers are those of the batch.
struct Work {
  const NarrowArgs& n;
  const float* a;
  const uint16_t *rounded, *b;  // rounded: null, if items read a
  float* y;
  const BoundEpilogue* epilogue;  // null: none
};

template <class W>
void gemm_item(const Work& w, const Item& item) {
  using A = typename W::A;
  const GemmArgs& g = w.n.gemm;
  const int64_t K = g.products.K, stride = pairs_of(K) * kPairSize,
                rows = most<int64_t>(1, item.m1 - item.m0);
  constexpr int64_t kSize = W::kRounds ? kCopySize : kCopySize / 2;
  alignas(64) A copy[kSize];
  const bool rounded = W::kRounds && w.rounded, copies = W::kRounds ? !rounded : g.a_col != 1;
  // A few rows read all of B once, without another pass over C.
  const int64_t bound = rows <= kMaxTileRows ? kSize / kMaxTileRows : kCopyDepth;
  const int64_t depth_step = part_of(K, bound / 2 * 2);
  const int64_t row_step =
      copies ? least<int64_t>(rows, kSize / depth_step) : least<int64_t>(rows, kCopyRows);
  const uint16_t* panels = w.b + item.n0 / kPanel * stride;
  for (int64_t k = 0; k == 0 || k < K; k += depth_step) {
    const int64_t depth = least(depth_step, K - k), ld = 2 * pairs_of(K),
                  lda = rounded  ? ld
                        : copies ? depth_step
                                 : g.a_row;
    for (int64_t m = item.m0; m < item.m1; m += row_step) {
      const int64_t count = least(row_step, item.m1 - m);
      const float* from = w.a + m * g.a_row + k * g.a_col;
      if (copies)
        for (int64_t r = 0; r < count; ++r)
          copy_row(from + r * g.a_row, g.a_col, depth, copy + r * lda);
      const A* left = copy;
      if constexpr (!W::kRounds) {
        if (!copies) left = from;
      } else if (rounded) {
        left = w.rounded + m * ld + k;
      }
      block_product<W>({.rows = count,
                        .cols = item.n1 - item.n0,
                        .depth = depth,
                        .a = left,
                        .lda = lda,
                        .b = panels + k / 2 * kPairSize,
                        .panel_stride = stride,
                        .c = w.y + m * g.y_row + item.n0,
                        .ldc = g.y_row,
                        .accumulate = k > 0,
                        .epilogue = k + depth >= K ? w.epilogue : nullptr,
                        .row = item.batch * g.products.M + m,
                        .col = item.n0});
    }
  }
}

#if defined(TESSERA_TILES)
// Of A's rows that are multiplied with all of B's columns before the next: so many, and so much of
// their depth, that two panels of B stay in the first cache and all that they meet in the second.
constexpr int64_t kRowsNear = 512, kDepthNear = 384 / kTileDepth, kDepthAtOnce = 512 / kTileDepth;

// The tiles of the fewest, equal parts of at most `bound`.
int64_t tiles_of(int64_t tiles, int64_t bound) {
  const int64_t parts = (tiles + bound - 1) / bound;
  return (tiles + parts - 1) / parts;
}

void tiles_item(TESSERA_TILES& unit, const Work& w, const Item& item) {
  alignas(64) uint16_t copy[kCopySize];
  const GemmArgs& g = w.n.gemm;
  const int64_t h = w.n.height, tiles = depth_tiles(g.products.K), tile = h * kTileDepth,
                panel = tiles * kPanelTile, pair = 2 * h;
  const uint16_t* panels = w.b + item.n0 / kPanel * panel;
  const bool few = item.m1 - item.m0 <= pair;
  const int64_t depth_step =
      tiles <= kDepthAtOnce || (few && w.rounded)
          ? tiles
          : tiles_of(tiles, few ? kCopySize / (pair * kTileDepth) : kDepthNear);
  const int64_t near =
      w.rounded ? kRowsNear : least(kRowsNear, kCopySize / (depth_step * kTileDepth));
  const int64_t row_step = near / pair * pair;
  for (int64_t m = item.m0; m < item.m1; m += row_step)
    for (int64_t k = 0; k < tiles; k += depth_step) {
      const int64_t depth = least(depth_step, tiles - k), rows = least(row_step, item.m1 - m);
      if (!w.rounded)
        for (int64_t r = 0; r < rows; r += h)
          round_tiles(w.a + (m + r) * g.a_row + k * kTileDepth * g.a_col, g.a_row, g.a_col,
                      least(h, rows - r), least(depth * kTileDepth, g.products.K - k * kTileDepth),
                      h, copy + r / h * depth * tile);
      narrow_tiles(unit, {.rows = rows,
                          .cols = item.n1 - item.n0,
                          .height = h,
                          .depth = depth,
                          .a = w.rounded ? w.rounded + (m / h * tiles + k) * tile : copy,
                          .a_row = (w.rounded ? tiles : depth) * tile,
                          .b = panels + k * kPanelTile,
                          .panel = panel,
                          .accumulate = k > 0,
                          .place = {.c = w.y + m * g.y_row + item.n0,
                                    .ldc = g.y_row,
                                    .epilogue = k + depth >= tiles ? w.epilogue : nullptr,
                                    .row = item.batch * g.products.M + m,
                                    .col = item.n0}});
    }
}
#endif

template <class OfItem>
void run(const tessera_launch* launch, uint32_t first, uint32_t count, const OfItem& of_item) {
  const auto& n = *static_cast<const NarrowArgs*>(launch->constants);
  const Products& s = n.gemm.products;
  const BoundEpilogue epilogue = bind(n.gemm.epilogue, launch);
  const auto* rounded =
      n.rounded < 0 ? nullptr : static_cast<const uint16_t*>(launch->ranges[n.rounded].data);
  for (uint32_t i = first; i < first + count; ++i) {
    const Item item = item_at(s, i);
    of_item(Work{n, static_cast<const float*>(launch->ranges[0].data) + item.a,
                 rounded ? rounded + item.batch * rounded_size(s.M, s.K, n.height) : nullptr,
                 static_cast<const uint16_t*>(launch->ranges[1].data) + item.b,
                 static_cast<float*>(launch->ranges[2].data) + item.y,
                 epilogue.count > 0 ? &epilogue : nullptr},
            item);
  }
}

}  // namespace

void gemm_bf16(const tessera_launch* launch, uint32_t first, uint32_t count) {
#if defined(TESSERA_TILES)
  TESSERA_TILES unit;
  configure_narrow(unit, static_cast<const NarrowArgs*>(launch->constants)->height);
  run(launch, first, count, [&](const Work& w, const Item& item) { tiles_item(unit, w, item); });
  unit.release();
#else
  run(launch, first, count, gemm_item<Bf16>);
#endif
}

void gemm_f16(const tessera_launch* launch, uint32_t first, uint32_t count) {
  run(launch, first, count, gemm_item<F16Widened>);
}

// What multiplications and additions of bf16 reach at most: as peak, of tiles or pairs if there are
// any.
void narrow_peak(const tessera_launch* launch, uint32_t, uint32_t) {
  static_assert(kPeakChains % 4 == 0);
  const auto& a = *static_cast<const PeakArgs*>(launch->constants);
  auto* out = static_cast<float*>(launch->ranges[0].data);
#if defined(TESSERA_TILES)
  TESSERA_TILES unit;
  configure_narrow(unit, kTileRows);
  for (int64_t r = 0; r < a.rounds * kPeakChains; r += 4) {
    unit.template bf16_products<0, 4, 6>();
    unit.template bf16_products<1, 4, 7>();
    unit.template bf16_products<2, 5, 6>();
    unit.template bf16_products<3, 5, 7>();
  }
  unit.release();
  out[1] = static_cast<float>(kTileRows * kPanelTile);
#else
  Vec chain[kPeakChains];
  TESSERA_UNROLL
  for (int c = 0; c < kPeakChains; ++c) chain[c] = splat(0.5f + static_cast<float>(c));
#if defined(__AVX512BF16__)
  constexpr int64_t kProducts = 2 * kLanes;
  const __m512bh x = pairs(_mm512_castps_si512(splat(out[0])));
#else
  constexpr int64_t kProducts = kLanes;
  const Vec x = splat(out[0]);
#endif
  for (int64_t r = 0; r < a.rounds; ++r) {
    TESSERA_UNROLL
    for (int c = 0; c < kPeakChains; ++c)
#if defined(__AVX512BF16__)
      chain[c] = _mm512_dpbf16_ps(chain[c], x, x);
#else
      chain[c] = chain[c] * x + x;
#endif
  }
  float sum = 0;
  TESSERA_UNROLL
  for (int c = 0; c < kPeakChains; ++c) sum += sum_lanes(chain[c]);
  out[0] = sum;
  out[1] = static_cast<float>(kProducts);
#endif
}

void narrow_rows([[maybe_unused]] const tessera_launch* launch, [[maybe_unused]] uint32_t first,
                 [[maybe_unused]] uint32_t count) {
#if defined(TESSERA_TILES) || defined(__AVX512BF16__)
  const auto& n = *static_cast<const NarrowArgs*>(launch->constants);
  const GemmArgs& g = n.gemm;
  const Products& s = g.products;
  const int64_t depth = depth_tiles(s.K) * kTileDepth;
  for (uint32_t i = first; i < first + count; ++i) {
    const Item item = item_at(s, i);
    const float* from =
        static_cast<const float*>(launch->ranges[0].data) + item.a + item.m0 * g.a_row;
    uint16_t* to = static_cast<uint16_t*>(launch->ranges[1].data) +
                   item.batch * rounded_size(s.M, s.K, n.height) + item.m0 * depth;
#if defined(TESSERA_TILES)
    round_tiles(from, g.a_row, g.a_col, item.m1 - item.m0, s.K, n.height, to);
#else
    for (int64_t r = 0; r < item.m1 - item.m0; ++r)
      copy_row(from + r * g.a_row, g.a_col, s.K, to + r * depth);
#endif
  }
#endif
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
