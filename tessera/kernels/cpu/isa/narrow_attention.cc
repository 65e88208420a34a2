// narrow_keys, narrow_attention: as attention_keys and attention, with products of bf16 (queries,
// keys, values and weights are rounded), sums and softmax in f32.
#include "tessera/kernels/cpu/dot_args.h"
#include "tessera/kernels/cpu/isa/attention_rows.h"
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

// What multiplies rows (rows, depth) of bf16 with panels.
#if defined(TESSERA_TILES)
class Multiplier {
 public:
  explicit Multiplier(int64_t height) : height_(height) { configure_narrow(unit_, height); }
  ~Multiplier() { unit_.release(); }

  // Rows that go together.
  int64_t group() const { return 2 * height_; }
  // Elements of rounded rows before row r, which begins a group.
  int64_t at(int64_t r, int64_t depth) const { return r * depth_tiles(depth) * kTileDepth; }
  void round(const float* from, int64_t ld, int64_t rows, int64_t depth, uint16_t* to) {
    for (int64_t r = 0; r < rows; r += height_)
      round_tiles(from + r * ld, ld, 1, least(height_, rows - r), depth, height_,
                  to + at(r, depth));
  }
  void multiply(const uint16_t* a, int64_t rows, int64_t depth, const uint16_t* b, int64_t panel,
                int64_t cols, float* c, int64_t ldc, bool accumulate) {
    const int64_t tiles = depth_tiles(depth);
    narrow_tiles(unit_, {.rows = rows,
                         .cols = cols,
                         .height = height_,
                         .depth = tiles,
                         .a = a,
                         .a_row = tiles * height_ * kTileDepth,
                         .b = b,
                         .panel = panel,
                         .accumulate = accumulate,
                         .place = {c, ldc, nullptr, 0, 0}});
  }

 private:
  TESSERA_TILES unit_;
  int64_t height_;
};
#else
class Multiplier {
 public:
  explicit Multiplier(int64_t) {}
  int64_t group() const { return kMaxTileRows; }
  int64_t at(int64_t r, int64_t depth) const { return r * depth_tiles(depth) * kTileDepth; }
  void round(const float* from, int64_t ld, int64_t rows, int64_t depth, uint16_t* to) {
    for (int64_t r = 0; r < rows; ++r, from += ld, to += at(1, depth)) {
      for (int64_t k = 0; k < depth; ++k) to[k] = to_bf16(from[k]);
      for (int64_t k = depth; k < at(1, depth); ++k) to[k] = 0;
    }
  }
  void multiply(const uint16_t* a, int64_t rows, int64_t depth, const uint16_t* b, int64_t panel,
                int64_t cols, float* c, int64_t ldc, bool accumulate) {
    NarrowBlock<Bf16Rounded> block{};
    block.rows = rows;
    block.cols = cols;
    block.depth = at(1, depth);
    block.a = a;
    block.lda = at(1, depth);
    block.b = b;
    block.panel_stride = panel;
    block.c = c;
    block.ldc = ldc;
    block.accumulate = accumulate;
    block_product(block);
  }
};
#endif

// Keys (T, E), `ld` floats apart, to panels of 16 of them: (panel, e / 2, key, e % 2).
void pack_keys(const float* k, int64_t ld, int64_t T, int64_t E, uint16_t* to) {
  const int64_t pairs = pairs_of(E);
  alignas(64) uint32_t row[kMaxHeadSize / 2];
  auto* row16 = reinterpret_cast<uint16_t*>(row);
  for (int64_t t = 0; t < panels_of(T) * kPanel; ++t, k += ld) {
    for (int64_t e = 0; e < 2 * pairs; ++e) row16[e] = t < T && e < E ? to_bf16(k[e]) : uint16_t{0};
    uint16_t* panel = to + t / kPanel * pairs * kPairSize + t % kPanel * 2;
    for (int64_t p = 0; p < pairs; ++p) __builtin_memcpy(panel + p * kPairSize, row + p, 4);
  }
}

// Values (T, F) to panels of 16 columns: (panel, t / 2, f, t % 2).
void pack_values(const float* v, int64_t ld, int64_t T, int64_t F, uint16_t* to) {
  const int64_t pairs = pairs_of(T);
  for (int64_t f = 0; f < F; f += kPanel) {
    const int64_t width = least(kPanel, F - f);
    for (int64_t p = 0; p < pairs; ++p, to += kPairSize) {
      const float* from = v + 2 * p * ld + f;
      alignas(64) float rows[2][kPanel] = {};
      for (int64_t i = 0; i < least<int64_t>(2, T - 2 * p); ++i)
        __builtin_memcpy(rows[i], from + i * ld, static_cast<size_t>(width) * sizeof(float));
      alignas(64) uint32_t both[kPanel];
      for (int64_t j = 0; j < kPanel; ++j)
        both[j] = uint32_t{to_bf16(rows[0][j])} | uint32_t{to_bf16(rows[1][j])} << 16;
      __builtin_memcpy(to, both, sizeof both);
    }
  }
}

struct Queries {
  const float* q;
  const uint16_t *keys, *values;
  float* y;
  int64_t s0, rows;
};

void query_block(Multiplier& multiplier, const AttentionArgs& a, const Scoring& c,
                 const Queries& item) {
  constexpr int64_t kTileRowsMore = 16;  // of a tile that is not whole
  constexpr int64_t kRows = kNarrowQueries + kTileRowsMore;
  alignas(64) float y[kNarrowQueries * kMaxHeadSize], x[kNarrowQueries * kNarrowKeys];
  alignas(64) uint16_t q[kRows * kMaxHeadSize], p[kRows * kNarrowKeys];
  Running running[kNarrowQueries];
  const int64_t width = panels_of(a.F) * kPanel, end = c.seen(item.s0 + item.rows - 1),
                group = multiplier.group();
  for (int64_t r = 0; r < item.rows; ++r) running[r] = {kHidden, 0};
  for (int64_t i = 0; i < item.rows * width; i += kLanes) store(y + i, Vec{});
  multiplier.round(item.q, a.q[2], item.rows, a.E, q);
  for (int64_t t0 = 0; t0 < end; t0 += kNarrowKeys) {
    // All rows at once, but where causality cuts the block.
    const int64_t block = least(kNarrowKeys, end - t0),
                  step = c.seen(item.s0) - t0 >= block ? item.rows : group;
    for (int64_t r0 = 0; r0 < item.rows; r0 += step) {
      const int64_t rows = least(step, item.rows - r0),
                    keys = least(block, c.seen(item.s0 + r0 + rows - 1) - t0);
      if (keys <= 0 || hides_all(c, item.s0 + r0, rows, t0, keys)) continue;
      float* scores = x + r0 * kNarrowKeys;
      multiplier.multiply(q + multiplier.at(r0, a.E), rows, a.E,
                          item.keys + t0 / kPanel * pairs_of(a.E) * kPairSize,
                          pairs_of(a.E) * kPairSize, panels_of(keys) * kPanel, scores, kNarrowKeys,
                          false);
      for (int64_t r = 0; r < rows; ++r) {
        float* row = scores + r * kNarrowKeys;
        const int64_t s = item.s0 + r0 + r;
        const int64_t seen = most<int64_t>(0, least(keys, c.seen(s) - t0));
        if (seen > 0) {
          const float factor = weigh(c, s, t0, seen, row, running[r0 + r]);
          float* to = y + (r0 + r) * width;
          if (factor != 1.0f)
            for (int64_t f = 0; f < width; f += kLanes) store(to + f, load(to + f) * factor);
        }
        for (int64_t j = seen; j < keys; ++j) row[j] = 0.0f;
      }
      multiplier.round(scores, kNarrowKeys, rows, keys, p);
      multiplier.multiply(p, rows, keys, item.values + t0 * kPanel, pairs_of(a.T) * kPairSize,
                          width, y + r0 * width, width, true);
    }
  }
  for (int64_t r = 0; r < item.rows; ++r) {
    float* to = item.y + r * a.y[2];
    // NaN where nothing was to be seen.
    const float factor = 1 / running[r].sum;
    each_vector<float>(
        0, a.F, [&](auto lanes, int64_t f) __attribute__((always_inline)) {
          lanes.store(to + f, load(y + r * width + f) * factor);
        });
  }
}

}  // namespace

void narrow_keys(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* k = static_cast<const float*>(launch->ranges[0].data);
  const auto* v = static_cast<const float*>(launch->ranges[1].data);
  auto* workspace = static_cast<uint16_t*>(launch->ranges[2].data);
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t b = i / a.K, h = i % a.K;
    uint16_t* to = workspace + i * (a.keys_size + a.values_size);
    pack_keys(k + b * a.k[0] + h * a.k[1], a.k[2], a.T, a.E, to);
    pack_values(v + b * a.v[0] + h * a.v[1], a.v[2], a.T, a.F, to + a.keys_size);
  }
}

void narrow_attention(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* q = static_cast<const float*>(launch->ranges[0].data);
  const auto* workspace = static_cast<const uint16_t*>(launch->ranges[1].data);
  auto* y = static_cast<float*>(launch->ranges[2].data);
  const Extras extras = extras_of(a, launch->ranges + 3);
  const int64_t blocks = (a.S + a.rows - 1) / a.rows;
  Multiplier multiplier(tile_height(a.rows));
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t s0 = i % blocks * a.rows, h = i / blocks % a.H, b = i / blocks / a.H;
    const int64_t g = h / (a.H / a.K);
    const uint16_t* own = workspace + (b * a.K + g) * (a.keys_size + a.values_size);
    query_block(multiplier, a, scoring_of(a, extras, b, h),
                {q + b * a.q[0] + h * a.q[1] + s0 * a.q[2], own, own + a.keys_size,
                 y + b * a.y[0] + h * a.y[1] + s0 * a.y[2], s0, least(a.rows, a.S - s0)});
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
