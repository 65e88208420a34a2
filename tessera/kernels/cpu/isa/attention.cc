// attention_append, attention_keys, attention: see attention_args.h.
//
// For a block of queries, keys come in blocks: products q k^T by tiles, then their weights p and
//   y = y 2^(m - m') + p v;  at the end y / l
#include "tessera/kernels/cpu/isa/attention_rows.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/pack.h"
#include "tessera/kernels/cpu/isa/tile_product.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// keys (T, E) -> (panel, e, key), values (T, F) -> (panel, t, f)
void pack(const AttentionArgs& a, const float* k, const float* v, float* to) {
  pack_block(k, 1, a.k[2], a.T, a.E, to);
  if (a.values_size > 0) pack_block(v, a.v[2], 1, a.F, a.T, to + a.keys_size);
}

struct Queries {
  const float *q, *keys, *values;
  int64_t value_stride, value_step;  // panels of the values, and their rows
  float* y;
  int64_t s0, rows;
};

// Queries that see the same keys of a block: rows [first, last).
struct Group {
  int64_t first, last, keys;
};

// Calls body for all rows, or, where causality cuts the block, for few at a time.
template <class Body>
TESSERA_INLINE void each_group(const Scoring& c, const Queries& item, int64_t t0, int64_t keys,
                               Body body) {
  constexpr int64_t kRows = tile_rows(kTileCols);
  if (c.seen(item.s0) - t0 >= keys) return body(Group{0, item.rows, keys});
  for (int64_t r = 0; r < item.rows; r += kRows) {
    const int64_t last = least(item.rows, r + kRows);
    const int64_t seen = least(keys, c.seen(item.s0 + last - 1) - t0);
    if (seen > 0) body(Group{r, last, seen});
  }
}

// Adds to y (rows, width) and the sums.
void weighted_values(const AttentionArgs& a, const Scoring& c, const Queries& item, int64_t end,
                     int64_t width, float* y, Running* running) {
  alignas(64) float x[kQueryBlock * kKeyBlock];
  for (int64_t t0 = 0; t0 < end; t0 += kKeyBlock) {
    const int64_t block = least(kKeyBlock, end - t0);
    each_group(
        c, item, t0, block, [&](const Group& g) __attribute__((always_inline)) {
          if (hides_all(c, item.s0 + g.first, g.last - g.first, t0, g.keys)) return;
          Block product{};
          product.rows = g.last - g.first;
          product.cols = panels_of(g.keys) * kPanel;
          product.depth = a.E;
          product.a = item.q + g.first * a.q[2];
          product.lda = a.q[2];
          product.b = item.keys + t0 * a.E;
          product.panel_stride = a.E * kPanel;
          product.c = x + g.first * kKeyBlock;
          product.ldc = kKeyBlock;
          block_product(product);
          for (int64_t r = g.first; r < g.last; ++r) {
            float* row = x + r * kKeyBlock;
            const int64_t s = item.s0 + r;
            const int64_t seen = most<int64_t>(0, least(g.keys, c.seen(s) - t0));
            if (seen > 0) {
              const float factor = weigh(c, s, t0, seen, row, running[r]);
              if (factor != 1.0f)
                for (int64_t f = 0; f < width; f += kLanes)
                  store(y + r * width + f, load(y + r * width + f) * factor);
            }
            for (int64_t j = seen; j < g.keys; ++j) row[j] = 0.0f;
          }
          product.cols = width;
          product.depth = g.keys;
          product.a = product.c;
          product.lda = kKeyBlock;
          product.b = item.values + t0 * item.value_step;
          product.panel_stride = item.value_stride;
          product.b_step = item.value_step;
          product.c = y + g.first * width;
          product.ldc = width;
          product.accumulate = true;
          block_product(product);
        });
  }
}

void query_block(const AttentionArgs& a, const Scoring& c, const Queries& item) {
  alignas(64) float y[kQueryBlock * kMaxHeadSize];
  Running running[kQueryBlock];
  for (int64_t r = 0; r < item.rows; ++r) running[r] = {kHidden, 0};
  const int64_t width = panels_of(a.F) * kPanel, end = c.seen(item.s0 + item.rows - 1);
  for (int64_t i = 0; i < item.rows * width; i += kLanes) store(y + i, Vec{});
  weighted_values(a, c, item, end, width, y, running);
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

void attention_append(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AppendArgs*>(launch->constants);
  const RowRanges ranges(a.rows, launch->ranges);
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const RowsOf rows = ranges.at(i / a.K, i % a.K);
    rows.write(0, a.rows.P + a.rows.T);
  }
}

void attention_keys(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* k = static_cast<const float*>(launch->ranges[0].data);
  const auto* v = static_cast<const float*>(launch->ranges[1].data);
  auto* workspace = static_cast<float*>(launch->ranges[2].data);
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t b = i / a.K, h = i % a.K;
    pack(a, k + b * a.k[0] + h * a.k[1], v + b * a.v[0] + h * a.v[1],
         workspace + i * (a.keys_size + a.values_size));
  }
}

void attention(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* q = static_cast<const float*>(launch->ranges[0].data);
  const auto* v = static_cast<const float*>(launch->ranges[1].data);
  const auto* workspace = static_cast<const float*>(launch->ranges[2].data);
  auto* y = static_cast<float*>(launch->ranges[3].data);
  const Extras extras = extras_of(a, launch->ranges + 4);
  const int64_t blocks = (a.S + a.rows - 1) / a.rows;
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t s0 = i % blocks * a.rows, h = i / blocks % a.H, b = i / blocks / a.H;
    const int64_t g = h / (a.H / a.K);
    const float* own = workspace + (b * a.K + g) * (a.keys_size + a.values_size);
    const bool packed = a.values_size > 0;
    const Queries item{q + b * a.q[0] + h * a.q[1] + s0 * a.q[2],
                       own,
                       packed ? own + a.keys_size : v + b * a.v[0] + g * a.v[1],
                       packed ? a.T * kPanel : kPanel,
                       packed ? kPanel : a.v[2],
                       y + b * a.y[0] + h * a.y[1] + s0 * a.y[2],
                       s0,
                       least(a.rows, a.S - s0)};
    query_block(a, scoring_of(a, extras, b, h), item);
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
