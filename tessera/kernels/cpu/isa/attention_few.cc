// attention_few, attention_join: see attention_args.h. All queries that share a key head go over
// its keys and values together, each of which is read once, where it lies.
#include "tessera/kernels/cpu/isa/attention_rows.h"
#include "tessera/kernels/cpu/isa/entries.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kBlock = 64;    // keys at a time: they and their values stay in the first cache
constexpr int64_t kKeys = 4;      // in registers
constexpr int64_t kTogether = 4;  // queries that are multiplied by a key in registers
constexpr int64_t kQueries = 32;  // that go over the keys together

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadU __attribute__((vector_size(16), aligned(4), may_alias));

// The sums of the lanes of 4 vectors.
TESSERA_INLINE Quad sums_of(const Vec (&v)[kKeys]) {
#if defined(__x86_64__)
  __m128 q[kKeys];
  TESSERA_UNROLL
  for (int i = 0; i < kKeys; ++i) {
#if defined(__AVX512F__)
    const __m256 half =
        _mm512_maskz_extractf32x8_ps(0xff, v[i], 0) + _mm512_maskz_extractf32x8_ps(0xff, v[i], 1);
    q[i] = _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#elif defined(__AVX2__)
    q[i] = _mm256_castps256_ps128(v[i]) + _mm256_extractf128_ps(v[i], 1);
#else
    q[i] = v[i];
#endif
  }
  const __m128 ab = _mm_unpacklo_ps(q[0], q[1]) + _mm_unpackhi_ps(q[0], q[1]),
               cd = _mm_unpacklo_ps(q[2], q[3]) + _mm_unpackhi_ps(q[2], q[3]);
  return _mm_movelh_ps(ab, cd) + _mm_movehl_ps(cd, ab);
#else
  return Quad{sum_lanes(v[0]), sum_lanes(v[1]), sum_lanes(v[2]), sum_lanes(v[3])};
#endif
}

// Rows of keys or values.
struct Run {
  const float* at;
  int64_t stride;
  const float* operator[](int64_t i) const { return at + i * stride; }
};

// x (R, kBlock) = products of R queries with `count` keys; up to kKeys - 1 columns beyond are
// written.
template <int R>
void products(const float* const* q, const Run& keys, int64_t count, int64_t E, float* x) {
  for (int64_t j = 0; j < count; j += kKeys) {
    const float* key[kKeys];
    for (int64_t i = 0; i < kKeys; ++i) key[i] = keys[least(j + i, count - 1)];
    Vec sum[R][kKeys] = {};
    each_vector<float>(
        0, E, [&](auto lanes, int64_t e) __attribute__((always_inline)) {
          Vec k[kKeys];
          TESSERA_UNROLL
          for (int64_t i = 0; i < kKeys; ++i) k[i] = lanes.load(key[i] + e);
          TESSERA_UNROLL
          for (int r = 0; r < R; ++r) {
            const Vec query = lanes.load(q[r] + e);
            TESSERA_UNROLL
            for (int64_t i = 0; i < kKeys; ++i) sum[r][i] += query * k[i];
          }
        });
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) *reinterpret_cast<QuadU*>(x + r * kBlock + j) = sums_of(sum[r]);
  }
}

// V vectors of columns of y (R, kMaxHeadSize) = y times the factors of its rows + weights x (R,
// kBlock) times `count` values.
template <int R, int V, class Lanes>
TESSERA_INLINE void add_columns(const float* x, const Run& values, int64_t count,
                                const float* factors, float* y, int64_t f, Lanes lanes) {
  Vec sum[R][V];
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int v = 0; v < V; ++v)
      sum[r][v] = load(y + r * kMaxHeadSize + f + v * kLanes) * factors[r];
  }
  for (int64_t j = 0; j < count; ++j) {
    Vec value[V];
    TESSERA_UNROLL
    for (int v = 0; v < V; ++v) value[v] = lanes.load(values[j] + f + v * kLanes);
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec p = splat(x[r * kBlock + j]);
      TESSERA_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] += p * value[v];
    }
  }
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int v = 0; v < V; ++v) store(y + r * kMaxHeadSize + f + v * kLanes, sum[r][v]);
  }
}

// A query, where its result goes, and its sums so far.
struct Query {
  const float* q;
  float* y;
  int64_t s;
  Scoring scoring;
  Running running;
};

// R queries and the keys [t0, t0 + count).
template <int R>
void step(const AttentionArgs& a, Query* queries, const Run& keys, const Run& values, int64_t t0,
          int64_t count, float* y) {
  constexpr int kVecs = kLanes == 16 ? 4 : 2;
  alignas(64) float x[R * kBlock];
  float factors[R];
  const float* q[R];
  for (int r = 0; r < R; ++r) q[r] = queries[r].q;
  products<R>(q, keys, count, a.E, x);
  for (int r = 0; r < R; ++r) {
    Query& query = queries[r];
    const int64_t seen = most<int64_t>(0, least(count, query.scoring.seen(query.s) - t0));
    float* row = x + r * kBlock;
    factors[r] = seen > 0 ? weigh(query.scoring, query.s, t0, seen, row, query.running) : 1.0f;
    for (int64_t j = seen; j < count; ++j) row[j] = 0.0f;
  }
  int64_t f = 0;
  for (; f + kVecs * kLanes <= a.F; f += kVecs * kLanes)
    add_columns<R, kVecs>(x, values, count, factors, y, f, WholeVector{});
  each_vector<float>(
      f, a.F, [&](auto lanes, int64_t at) __attribute__((always_inline)) {
        add_columns<R, 1>(x, values, count, factors, y, at, lanes);
      });
}

using StepFn = void (*)(const AttentionArgs&, Query*, const Run&, const Run&, int64_t, int64_t,
                        float*);
constexpr StepFn kSteps[kTogether + 1] = {nullptr, step<1>, step<2>, step<3>, step<4>};

struct Keys {
  int64_t begin, end;
};

// Adds up the values of a run of keys in y (count, kMaxHeadSize); writes keys and values together
// if `write`.
void few(const AttentionArgs& a, Query* queries, int64_t count, const RowsOf& keys,
         const RowsOf& values, const Keys& run, bool write, float* y) {
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    end = most(end, queries[i].scoring.seen(queries[i].s));
    for (int64_t f = 0; f < a.F + kLanes && f < kMaxHeadSize; ++f) y[i * kMaxHeadSize + f] = 0.0f;
  }
  for (int64_t t0 = run.begin, t1 = 0; t0 < run.end; t0 = t1) {
    // The past and what is new are at different places.
    t1 = least(t0 + kBlock, t0 < a.keys.P ? least(a.keys.P, run.end) : run.end);
    if (write && a.keys.written) keys.write(t0, t1);
    if (write && a.values.written) values.write(t0, t1);
    const int64_t seen = least(t1, end) - t0;
    if (seen <= 0 && !write) break;
    for (int64_t i = 0; i < count && seen > 0; i += kTogether) {
      const int64_t together = least(kTogether, count - i);
      kSteps[together](a, queries + i, {keys.at(t0), keys.stride(t0)},
                       {values.at(t0), values.stride(t0)}, t0, seen, y + i * kMaxHeadSize);
    }
  }
}

void multiply(const float* from, float factor, int64_t F, float* to) {
  each_vector<float>(
      0, F, [&](auto lanes, int64_t f) __attribute__((always_inline)) {
        lanes.store(to + f, lanes.load(from + f) * factor);
      });
}

}  // namespace

void attention_few(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* q = static_cast<const float*>(launch->ranges[0].data);
  const RowRanges keys(a.keys, launch->ranges + 1),
      values(a.values, launch->ranges + 1 + keys.count());
  const tessera_range* rest = launch->ranges + 1 + keys.count() + values.count();
  auto* y = static_cast<float*>(rest->data);
  const Extras extras = extras_of(a, rest + 1);
  const int64_t group = a.H / a.K, rows = group * a.S, size = partial_size(a.F);
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t split = i % a.splits, item = i / a.splits, g = item % a.K, b = item / a.K;
    const Keys run{split * a.split_keys, least(a.T, (split + 1) * a.split_keys)};
    // Keys and values are written even if there are no queries.
    for (int64_t r = 0; r == 0 || r < rows; r += kQueries) {
      Query queries[kQueries];
      alignas(64) float sums[kQueries * kMaxHeadSize];
      const int64_t together = least(kQueries, rows - r);
      for (int64_t j = 0; j < together; ++j) {
        const int64_t h = g * group + (r + j) / a.S, s = (r + j) % a.S;
        queries[j] = {
            q + b * a.q[0] + h * a.q[1] + s * a.q[2],
            a.splits > 1 ? y + (i * rows + r + j) * size : y + b * a.y[0] + h * a.y[1] + s * a.y[2],
            s,
            scoring_of(a, extras, b, h),
            {kHidden, 0}};
      }
      few(a, queries, together, keys.at(b, g), values.at(b, g), run, r == 0, sums);
      for (int64_t j = 0; j < together; ++j) {
        const Query& query = queries[j];
        const float* from = sums + j * kMaxHeadSize;
        if (a.splits == 1) {
          // NaN where nothing was to be seen.
          multiply(from, 1 / query.running.sum, a.F, query.y);
          continue;
        }
        query.y[0] = query.running.top;
        query.y[1] = query.running.sum;
        __builtin_memcpy(query.y + 2, from, static_cast<size_t>(a.F) * sizeof(float));
      }
    }
  }
}

void attention_join(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const AttentionArgs*>(launch->constants);
  const auto* parts = static_cast<const float*>(launch->ranges[0].data);
  auto* y = static_cast<float*>(launch->ranges[1].data);
  const int64_t group = a.H / a.K, rows = group * a.S, size = partial_size(a.F);
  for (int64_t i = first; i < int64_t{first} + count; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t h = i % a.K * group + r / a.S, s = r % a.S, b = i / a.K;
      const float* part = parts + (i * a.splits * rows + r) * size;
      float top = kHidden, sum = 0;
      for (int64_t k = 0; k < a.splits; ++k) top = most(top, part[k * rows * size]);
      alignas(64) float total[kMaxHeadSize] = {};
      for (int64_t k = 0; k < a.splits; ++k, part += rows * size) {
        const float factor =
            part[0] == top ? 1.0f : exp2_of(splat(part[0] - (top == kHidden ? 0.0f : top)))[0];
        sum += part[1] * factor;
        each_vector<float>(
            0, a.F, [&](auto lanes, int64_t f) __attribute__((always_inline)) {
              lanes.store(total + f, load(total + f) + lanes.load(part + 2 + f) * factor);
            });
      }
      multiply(total, 1 / sum, a.F, y + b * a.y[0] + h * a.y[1] + s * a.y[2]);
    }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
