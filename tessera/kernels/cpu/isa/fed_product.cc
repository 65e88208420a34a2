// A product whose left side is computed where it is needed: a block of rows of it, by a depthwise
// convolution or by functions of x, stays in the cache until it has been multiplied.
#include "tessera/kernels/cpu/fed_args.h"
#include "tessera/kernels/cpu/isa/depthwise_last.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/fuse.h"
#include "tessera/kernels/cpu/isa/tile_product.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

struct Feed {
  const FedArgs& a;
  const float *x, *taps;
  const BoundEpilogue& before;
};

// The steps that work in registers, on R rows of V vectors, the last of which has `lanes` columns.
template <int R, int V>
void apply_tile(const Feed& f, int64_t row, int64_t col, int lanes, float* to) {
  const Part part(lanes);
  const Place<R, V> place{part, lanes == kLanes};
  const float* from = f.x + row * f.a.x_ld + col;
  Vec sum[R][V];
  TESSERA_EACH(x = place.load_at(from + r * f.a.x_ld, v))
  for (int i = 0; i < f.before.fused; ++i) {
    const BoundStep& s = f.before.steps[i];
    fuse<R, V>(s, s.operand + offset_in(s, row, col), place, sum);
  }
  TESSERA_EACH(place.store_at(to + r * f.a.ld, v, x))
}

template <int R>
void apply_steps(const Feed& f, int64_t row, float* to) {
  constexpr int kVecs = 4;
  int64_t c = 0;
  for (; c + kVecs * kLanes <= f.a.K; c += kVecs * kLanes)
    apply_tile<R, kVecs>(f, row, c, kLanes, to + c);
  for (; c < f.a.K; c += kLanes)
    apply_tile<R, 1>(f, row, c, static_cast<int>(least<int64_t>(kLanes, f.a.K - c)), to + c);
}

// Pixels [p0, p1) of f(x).
void functions(const Feed& f, int64_t p0, int64_t p1, float* block) {
  int64_t p = p0;
  for (; p + 2 <= p1; p += 2) apply_steps<2>(f, p, block + (p - p0) * f.a.ld);
  if (p < p1) apply_steps<1>(f, p, block + (p - p0) * f.a.ld);
  apply_rows(f.before, f.before.fused, p0, 0, p1 - p0, f.a.K, block, f.a.ld);
}

// Rows [r0, r1) of image n.
void depthwise(const Feed& f, int64_t n, int64_t r0, int64_t r1, float* block) {
  const ConvShape& s = f.a.conv;
  for (int64_t c = 0; c < f.a.K; c += f.a.channels)
    depthwise_block({.shape = s,
                     .image = n,
                     .x = f.x + n * s.in[1] * s.in[2] * f.a.x_ld,
                     .x_ld = f.a.x_ld,
                     .w = f.taps,
                     .row0 = r0,
                     .row1 = r1,
                     .c0 = c,
                     .c1 = least(f.a.K, c + f.a.channels),
                     .y = block,
                     .y_ld = f.a.ld,
                     .epilogue = f.before});
}

}  // namespace
#undef TESSERA_EACH

void fed_product(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const FedArgs*>(launch->constants);
  const auto range = [&](int i) { return static_cast<float*>(launch->ranges[i].data); };
  const float* w = range(1);
  float* y = range(2);
  const BoundEpilogue before = bind(a.before, launch), behind = bind(a.behind, launch);
  const Feed feed{a, range(0), a.depthwise ? range(3) : nullptr, before};
  alignas(64) float block[kFedFloats];
  const int64_t end = least<int64_t>(a.all, (int64_t{first} + count) * a.per_item);
  for (int64_t b = int64_t{first} * a.per_item; b < end; ++b) {
    int64_t p0 = b * a.block, p1 = least(a.pixels, p0 + a.block);
    if (a.depthwise) {
      const ConvShape& s = a.conv;
      const int64_t n = b / a.blocks, r0 = b % a.blocks * a.block,
                    r1 = least(s.out[1], r0 + a.block);
      depthwise(feed, n, r0, r1, block);
      p0 = (n * s.out[1] + r0) * s.out[2];
      p1 = (n * s.out[1] + r1) * s.out[2];
    } else {
      functions(feed, p0, p1, block);
    }
    block_product({.rows = p1 - p0,
                   .cols = a.M,
                   .depth = a.K,
                   .a = block,
                   .lda = a.ld,
                   .b = w,
                   .panel_stride = a.K * kPanel,
                   .c = y + p0 * a.y_ld,
                   .ldc = a.y_ld,
                   .accumulate = false,
                   .epilogue = &behind,
                   .row = p0,
                   .col = 0});
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
