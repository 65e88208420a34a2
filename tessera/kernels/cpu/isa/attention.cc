// attention_keys, attention, attention_few: see attention_args.h.
//
// For a block of queries, keys come in blocks: scores = q k^T by tiles, then with the running
// maximum m and sum l of each row
//   m' = max(m, max scores);  p = exp(scores - m');  l = l exp(m - m') + sum p;
//   y = y exp(m - m') + p v;  at the end y / l
#include "tessera/kernels/cpu/attention_args.h"

#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/isa/rows.h"
#include "tessera/kernels/cpu/isa/tile_product.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadU __attribute__((vector_size(16), aligned(4), may_alias));

constexpr float kHidden = -__builtin_inff();

// 4 rows of `from`, `stride` apart, as 4 columns of `to`, kPanel apart.
TESSERA_INLINE void turn(const float* from, int64_t stride, float* to) {
  Quad r[4];
  for (int i = 0; i < 4; ++i) r[i] = *reinterpret_cast<const QuadU*>(from + i * stride);
  const Quad a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
             b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7),
             c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
             d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  const Quad out[4] = {
      __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
      __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) *reinterpret_cast<QuadU*>(to + i * kPanel) = out[i];
}

// keys (T, E) -> (panel, e, key)
void pack_keys(const float* k, int64_t stride, int64_t T, int64_t E, float* panels) {
  for (int64_t t0 = 0; t0 < T; t0 += kPanel, panels += E * kPanel) {
    const int64_t keys = least(kPanel, T - t0);
    int64_t t = 0;
    for (; t + 4 <= keys; t += 4) {
      const float* from = k + (t0 + t) * stride;
      int64_t e = 0;
      for (; e + 4 <= E; e += 4) turn(from + e, stride, panels + e * kPanel + t);
      for (; e < E; ++e)
        for (int64_t i = 0; i < 4; ++i) panels[e * kPanel + t + i] = from[i * stride + e];
    }
    for (; t < kPanel; ++t)
      for (int64_t e = 0; e < E; ++e)
        panels[e * kPanel + t] = t < keys ? k[(t0 + t) * stride + e] : 0.0f;
  }
}

// values (T, F) -> (panel, t, f)
void pack_values(const float* v, int64_t stride, int64_t T, int64_t F, float* panels) {
  for (int64_t f0 = 0; f0 < F; f0 += kPanel)
    for (int64_t t = 0; t < T; ++t, panels += kPanel)
      for (int64_t f = 0; f < kPanel; ++f) panels[f] = f0 + f < F ? v[t * stride + f0 + f] : 0.0f;
}

struct Mask {
  AttentionMask kind;
  const void* data;  // of the first row and key
  int64_t row, key;
};

Mask mask_of(const AttentionArgs& a, const void* data, int64_t b, int64_t h) {
  const int64_t at = b * a.mask_strides[0] + h * a.mask_strides[1];
  Mask mask{a.mask, data, a.mask_strides[2], a.mask_strides[3]};
  if (a.mask == AttentionMask::kBool) mask.data = static_cast<const uint8_t*>(data) + at;
  if (a.mask == AttentionMask::kAdded) mask.data = static_cast<const float*>(data) + at;
  return mask;
}

// Cap, mask and causality on the scores of query `s` and keys [t0, t0 + count).
void finish_scores(const AttentionArgs& a, const Mask& mask, int64_t s, int64_t t0, int64_t count,
                   float* scores) {
  if (a.softcap > 0) {
    const float cap = a.softcap, inverse = 1 / cap;
    each_vector<float>(
        0, count, [&](auto lanes, int64_t j) __attribute__((always_inline)) {
          lanes.store(scores + j, cap * tanh_of(lanes.load(scores + j) * inverse));
        });
  }
  if (mask.kind == AttentionMask::kBool) {
    const auto* visible = static_cast<const uint8_t*>(mask.data) + s * mask.row + t0 * mask.key;
    for (int64_t j = 0; j < count; ++j)
      if (!visible[j * mask.key]) scores[j] = kHidden;
  } else if (mask.kind == AttentionMask::kAdded) {
    const float* added = static_cast<const float*>(mask.data) + s * mask.row + t0 * mask.key;
    for (int64_t j = 0; j < count; ++j) scores[j] += added[j * mask.key];
  }
  if (a.causal)
    for (int64_t j = most<int64_t>(0, s + 1 - t0); j < count; ++j) scores[j] = kHidden;
}

float largest(const float* x, int64_t count) {
  Vec top[2] = {splat(kHidden), splat(kHidden)};
  int64_t j = 0;
  for (; j + 2 * kLanes <= count; j += 2 * kLanes)
    for (int w = 0; w < 2; ++w) top[w] = max_of(load(x + j + w * kLanes), top[w]);
  each_vector<float>(
      j, count, [&](auto lanes, int64_t i) __attribute__((always_inline)) {
        top[0] = max_of(lanes.load(x + i, top[0]), top[0]);
      });
  return max_lanes(max_of(top[0], top[1]));
}

float exp_one(float x) { return exp2_of(splat(x * kLog2E))[0]; }

// x = exp(x - m); the sum.
float exponentials(float* x, int64_t count, float m) {
  const Vec top = splat(m), hidden = splat(kHidden);
  return static_cast<float>(sum_of<float>(
      count, [&](auto lanes, int64_t j) __attribute__((always_inline)) {
        const Vec e = exp2_of((lanes.load(x + j, hidden) - top) * kLog2E);
        lanes.store(x + j, e);
        return e;
      }));
}

void scale_row(float* x, int64_t count, float factor) {
  for (int64_t j = 0; j < count; ++j) x[j] *= factor;
}

struct Queries {
  const float *q, *keys, *values;
  int64_t value_stride, value_step;  // panels of the values, and their rows
  float* y;
  int64_t s0, rows;
};

void query_block(const AttentionArgs& a, const Mask& mask, const Queries& item) {
  alignas(64) float q[kQueryBlock * kMaxHeadSize];
  alignas(64) float y[kQueryBlock * kMaxHeadSize];
  alignas(64) float scores[kQueryBlock * kKeyBlock];
  float m[kQueryBlock], l[kQueryBlock];
  const int64_t width = panels_of(a.F) * kPanel;
  for (int64_t r = 0; r < item.rows; ++r) {
    for (int64_t e = 0; e < a.E; ++e) q[r * a.E + e] = item.q[r * a.q[2] + e] * a.scale;
    for (int64_t f = 0; f < width; ++f) y[r * width + f] = 0;
    m[r] = kHidden;
    l[r] = 0;
  }
  const int64_t end = a.causal ? least(a.T, item.s0 + item.rows) : a.T;
  for (int64_t t0 = 0; t0 < end; t0 += kKeyBlock) {
    const int64_t keys = least(kKeyBlock, end - t0), padded = panels_of(keys) * kPanel;
    Block product{};
    product.rows = item.rows;
    product.cols = padded;
    product.depth = a.E;
    product.a = q;
    product.lda = a.E;
    product.b = item.keys + t0 * a.E;
    product.panel_stride = a.E * kPanel;
    product.c = scores;
    product.ldc = kKeyBlock;
    block_product(product);
    for (int64_t r = 0; r < item.rows; ++r) {
      float* row = scores + r * kKeyBlock;
      finish_scores(a, mask, item.s0 + r, t0, keys, row);
      const float before = m[r], now = largest(row, keys);
      const float peak = now > before ? now : before;
      if (peak == kHidden) {
        // Nothing to see yet; or not a number, which must be seen.
        float poison = 0;
        for (int64_t j = 0; j < keys; ++j) {
          poison += row[j] == row[j] ? 0 : row[j];
          row[j] = 0;
        }
        l[r] += poison;
        continue;
      }
      const float rescale = before == kHidden ? 0 : exp_one(before - peak);
      l[r] = l[r] * (before == kHidden ? 1 : rescale) + exponentials(row, keys, peak);
      if (before != kHidden && rescale != 1) scale_row(y + r * width, width, rescale);
      m[r] = peak;
    }
    product.cols = width;
    product.depth = keys;
    product.a = scores;
    product.lda = kKeyBlock;
    product.b = item.values + t0 * item.value_step;
    product.panel_stride = item.value_stride;
    product.b_step = item.value_step;
    product.c = y;
    product.ldc = width;
    product.accumulate = true;
    block_product(product);
  }
  for (int64_t r = 0; r < item.rows; ++r) {
    const float factor = 1 / l[r];
    float* to = item.y + r * a.y[2];
    // 0 / 0 where nothing was to be seen.
    for (int64_t f = 0; f < a.F; ++f)
      to[f] = l[r] == 0 ? __builtin_nanf("") : y[r * width + f] * factor;
  }
}

}  // namespace

void attention_keys(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* k = static_cast<const float*>(launch->ranges[0].data);
  const auto* v = static_cast<const float*>(launch->ranges[1].data);
  auto* workspace = static_cast<float*>(launch->ranges[2].data);
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t b = i / a.K, h = i % a.K;
    float* to = workspace + i * (a.keys_size + a.values_size);
    pack_keys(k + b * a.k[0] + h * a.k[1], a.k[2], a.T, a.E, to);
    if (a.values_size > 0)
      pack_values(v + b * a.v[0] + h * a.v[1], a.v[2], a.T, a.F, to + a.keys_size);
  }
}

void attention(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* q = static_cast<const float*>(launch->ranges[0].data);
  const auto* v = static_cast<const float*>(launch->ranges[1].data);
  const auto* workspace = static_cast<const float*>(launch->ranges[2].data);
  const int last = a.mask == AttentionMask::kNone ? 3 : 4;
  auto* y = static_cast<float*>(launch->ranges[last].data);
  const int64_t blocks = (a.S + kQueryBlock - 1) / kQueryBlock;
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t s0 = i % blocks * kQueryBlock, h = i / blocks % a.H, b = i / blocks / a.H;
    const int64_t g = h / (a.H / a.K);
    const float* own = workspace + (b * a.K + g) * (a.keys_size + a.values_size);
    Queries item{};
    item.q = q + b * a.q[0] + h * a.q[1] + s0 * a.q[2];
    item.keys = own;
    const bool packed = a.values_size > 0;
    item.values = packed ? own + a.keys_size : v + b * a.v[0] + g * a.v[1];
    item.value_stride = packed ? a.T * kPanel : kPanel;
    item.value_step = packed ? kPanel : a.v[2];
    item.y = y + b * a.y[0] + h * a.y[1] + s0 * a.y[2];
    item.s0 = s0;
    item.rows = least(kQueryBlock, a.S - s0);
    query_block(a, mask_of(a, last == 4 ? launch->ranges[3].data : nullptr, b, h), item);
  }
}

void attention_few(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* q = static_cast<const float*>(launch->ranges[0].data);
  const auto* k = static_cast<const float*>(launch->ranges[1].data);
  const auto* v = static_cast<const float*>(launch->ranges[2].data);
  const int last = a.mask == AttentionMask::kNone ? 3 : 4;
  auto* y = static_cast<float*>(launch->ranges[last].data);
  constexpr int64_t kBlock = 512;
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t h = i % a.H, b = i / a.H, g = h / (a.H / a.K);
    const Mask mask = mask_of(a, last == 4 ? launch->ranges[3].data : nullptr, b, h);
    const float *keys = k + b * a.k[0] + g * a.k[1], *values = v + b * a.v[0] + g * a.v[1];
    for (int64_t s = 0; s < a.S; ++s) {
      const float* query = q + b * a.q[0] + h * a.q[1] + s * a.q[2];
      alignas(64) float scores[kBlock], sum[kMaxHeadSize];
      for (int64_t f = 0; f < a.F; ++f) sum[f] = 0;
      float m = kHidden, l = 0;
      const int64_t end = a.causal ? least(a.T, s + 1) : a.T;
      for (int64_t t0 = 0; t0 < end; t0 += kBlock) {
        const int64_t block = least(kBlock, end - t0);
        for (int64_t j = 0; j < block; ++j) {
          const float* key = keys + (t0 + j) * a.k[2];
          Vec total{};
          int64_t e = 0;
          for (; e + kLanes <= a.E; e += kLanes) total += load(query + e) * load(key + e);
          float rest = 0;
          for (; e < a.E; ++e) rest += query[e] * key[e];
          scores[j] = (sum_lanes(total) + rest) * a.scale;
        }
        finish_scores(a, mask, s, t0, block, scores);
        const float now = largest(scores, block), peak = now > m ? now : m;
        if (peak == kHidden) {
          for (int64_t j = 0; j < block; ++j) l += scores[j] == scores[j] ? 0 : scores[j];
          continue;
        }
        const float rescale = m == kHidden ? 0 : exp_one(m - peak);
        l = l * (m == kHidden ? 1 : rescale) + exponentials(scores, block, peak);
        scale_row(sum, a.F, rescale);
        m = peak;
        for (int64_t j = 0; j < block; ++j) {
          const float* value = values + (t0 + j) * a.v[2];
          const float p = scores[j];
          for (int64_t f = 0; f < a.F; ++f) sum[f] += p * value[f];
        }
      }
      float* to = y + b * a.y[0] + h * a.y[1] + s * a.y[2];
      const float factor = 1 / l;
      for (int64_t f = 0; f < a.F; ++f) to[f] = l == 0 ? __builtin_nanf("") : sum[f] * factor;
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
