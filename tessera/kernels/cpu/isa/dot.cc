// Matrix products in f32: gemm (tiles over panels or rows of b), gemv (few rows times vectors that
// lie as rows do).
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/pack.h"
#include "tessera/kernels/cpu/isa/products.h"
#include "tessera/kernels/cpu/isa/tile_product.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// Blocks: A's rows of one depth stay in the L2 cache while B's columns pass, and a tile's panels
// while A's rows pass. What an item packs is on its stack.
constexpr int64_t kRowBlock = 144;
constexpr int64_t kPanelDepth = 768;
constexpr int64_t kPackDepth = 256, kPackCols = 128;
constexpr int64_t kCopyRows = 24, kCopyDepth = 384;

// The size of the fewest, equal parts of at most `bound`.
int64_t part_of(int64_t size, int64_t bound) {
  const int64_t parts = most<int64_t>(1, (size + bound - 1) / bound);
  return most<int64_t>(1, (size + parts - 1) / parts);
}

// What the blocks of an item have in common; pointers are those of the batch.
struct Work {
  const GemmArgs& g;
  const float *a, *b;
  float* y;
  const BoundEpilogue* epilogue;
  int64_t row;  // of the result, of y's row 0
};

// Rows [m0, m1), columns [n0, n0 + cols) for rows [k0, k0 + depth) of B, which are at `b`. A's rows
// are read in place, or where their elements are no neighbours, from a copy. `ahead`: the panels
// that come next; may be null.
void multiply(const Work& w, int64_t m0, int64_t m1, int64_t n0, int64_t cols, int64_t k0,
              int64_t depth, const float* b, int64_t panel_stride, int64_t b_step,
              const float* ahead) {
  alignas(64) float copy[kCopyRows * kCopyDepth];
  const GemmArgs& g = w.g;
  const bool last = k0 + depth >= g.products.K;
  const bool copies = g.a_col != 1;
  const int64_t step = part_of(m1 - m0, copies ? kCopyRows : kRowBlock);
  for (int64_t m = m0; m < m1; m += step) {
    const int64_t rows = least(step, m1 - m);
    const float* a = w.a + m * g.a_row + k0 * g.a_col;
    if (copies)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t r = 0; r < rows; ++r) copy[r * depth + k] = a[r * g.a_row + k * g.a_col];
    block_product({.rows = rows,
                   .cols = cols,
                   .depth = depth,
                   .a = copies ? copy : a,
                   .lda = copies ? depth : g.a_row,
                   .b = b,
                   .panel_stride = panel_stride,
                   .b_step = b_step,
                   .c = w.y + m * g.y_row + n0,
                   .ldc = g.y_row,
                   .accumulate = k0 > 0,
                   .epilogue = last ? w.epilogue : nullptr,
                   .row = w.row + m,
                   .col = n0,
                   .ahead = ahead && m + rows < m1 ? b : ahead});
  }
}

// Columns [n0, n1), packed block by block.
void multiply_strided(const Work& w, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  alignas(64) float panels[kPackDepth * kPackCols];
  const GemmArgs& g = w.g;
  const int64_t K = g.products.K, step = part_of(K, kPackDepth);
  for (int64_t n = n0; n < n1; n += kPackCols) {
    const int64_t cols = least(kPackCols, n1 - n);
    for (int64_t k = 0; k == 0 || k < K; k += step) {
      const int64_t depth = least(step, K - k);
      pack_block(w.b + k * g.b_row + n * g.b_col, g.b_row, g.b_col, cols, depth, panels);
      multiply(w, m0, m1, n, cols, k, depth, panels, depth * kPanel, kPanel, nullptr);
    }
  }
}

void gemm_item(const Work& w, const Item& item) {
  const GemmArgs& g = w.g;
  const int64_t K = g.products.K, n0 = item.n0;
  if (g.right == RightSide::kStrided) return multiply_strided(w, item.m0, item.m1, n0, item.n1);
  // What a single tile reads once is not worth another pass over C.
  const bool whole = g.a_col == 1 && item.m1 - item.m0 <= kMaxTileRows;
  const int64_t step =
      whole ? most<int64_t>(K, 1) : part_of(K, g.a_col == 1 ? kPanelDepth : kCopyDepth);
  const bool rows = g.right == RightSide::kRows;
  // Columns of rows of B must be whole vectors: the last few are packed.
  const int64_t n1 = rows ? n0 + (item.n1 - n0) / kPanel * kPanel : item.n1;
  if (rows) {
    for (int64_t k = 0; k == 0 || k < K; k += step)
      multiply(w, item.m0, item.m1, n0, n1 - n0, k, least(step, K - k), w.b + k * g.b_row + n0,
               kPanel, g.b_row, nullptr);
  } else {
    const float* b = w.b + n0 * K;
    for (int64_t k = 0; k == 0 || k < K; k += step)
      multiply(w, item.m0, item.m1, n0, n1 - n0, k, least(step, K - k), b + k * kPanel, K * kPanel,
               kPanel, k + step < K ? b + (k + step) * kPanel : b + (n1 - n0) * K);
  }
  if (n1 < item.n1) multiply_strided(w, item.m0, item.m1, n1, item.n1);
}

// The sums of the lanes of four vectors.
TESSERA_INLINE Quad fold(const Vec (&v)[4]) {
  Quad q[4];
  for (int i = 0; i < 4; ++i) {
    float lanes[kLanes];
    store(lanes, v[i]);
    q[i] = Quad{};
    for (int x = 0; x < kLanes; x += 4) q[i] += *reinterpret_cast<const QuadU*>(lanes + x);
  }
  transpose(q);
  return (q[0] + q[1]) + (q[2] + q[3]);
}

// y (R, 4) = a (R, k) * b (4, k), whose vectors are b_col apart.
template <int R>
void dots(const GemmArgs& g, const float* a, const float* const (&b)[4], float (&y)[R][4]) {
  const int64_t K = g.products.K;
  Vec sum[R][4] = {};
  int64_t k = 0;
  for (; k + kLanes <= K; k += kLanes) {
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec x = load(a + r * g.a_row + k);
      TESSERA_UNROLL
      for (int c = 0; c < 4; ++c) sum[r][c] += x * load(b[c] + k);
    }
  }
  if (k < K) {
    const Part part(static_cast<int>(K - k));
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec x = part.load(a + r * g.a_row + k);
      TESSERA_UNROLL
      for (int c = 0; c < 4; ++c) sum[r][c] += x * part.load(b[c] + k);
    }
  }
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) *reinterpret_cast<QuadU*>(y[r]) = fold(sum[r]);
}

template <int R>
void gemv_rows(const Work& w, const Item& item) {
  const GemmArgs& g = w.g;
  for (int64_t n = item.n0; n < item.n1; n += 4) {
    const int64_t cols = least<int64_t>(4, item.n1 - n);
    const float* b[4];
    for (int c = 0; c < 4; ++c) b[c] = w.b + (n + least<int64_t>(c, cols - 1)) * g.b_col;
    float y[R][4];
    dots<R>(g, w.a, b, y);
    for (int r = 0; r < R; ++r)
      for (int64_t c = 0; c < cols; ++c) w.y[r * g.y_row + n + c] = y[r][c];
  }
  if (w.epilogue)
    apply_rows(*w.epilogue, 0, w.row, item.n0, R, item.n1 - item.n0, w.y + item.n0, g.y_row);
}

void gemv_item(const Work& w, const Item& item) {
  constexpr void (*kRows[kMaxDotRows + 1])(const Work&, const Item&) = {
      nullptr, gemv_rows<1>, gemv_rows<2>, gemv_rows<3>, gemv_rows<4>};
  kRows[w.g.products.M](w, item);
}

void run(const tessera_launch* launch, uint32_t first, uint32_t count,
         void (*one)(const Work&, const Item&)) {
  const auto& g = *static_cast<const GemmArgs*>(launch->constants);
  const BoundEpilogue epilogue = bind(g.epilogue, launch);
  for (uint32_t i = first; i < first + count; ++i) {
    const Item item = item_at(g.products, i);
    one({g, static_cast<const float*>(launch->ranges[0].data) + item.a,
         static_cast<const float*>(launch->ranges[1].data) + item.b,
         static_cast<float*>(launch->ranges[2].data) + item.y,
         epilogue.count > 0 ? &epilogue : nullptr, item.batch * g.products.M},
        item);
  }
}

}  // namespace

void gemm(const tessera_launch* launch, uint32_t first, uint32_t count) {
  run(launch, first, count, gemm_item);
}

// Ranges: b, panels. Work item = one panel.
void pack_b(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& p = *static_cast<const PackArgs*>(launch->constants);
  const auto* b = static_cast<const float*>(launch->ranges[0].data);
  auto* panels = static_cast<float*>(launch->ranges[1].data);
  for (int64_t i = first; i < int64_t{first} + count; ++i)
    pack_block(b + i * kPanel * p.col, p.row, p.col, least(kPanel, p.N - i * kPanel), p.K,
               panels + i * kPanel * p.K);
}

void gemv(const tessera_launch* launch, uint32_t first, uint32_t count) {
  run(launch, first, count, gemv_item);
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
