// Recurrent layers: a work item runs one sequence in one direction, step by step.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/rnn_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

// y (rows) = bias + m (rows, cols) * v (cols); bias may be null
void product(const float* m, const float* bias, const float* v, int64_t rows, int64_t cols,
             float* y) {
  constexpr int kRows = 4;
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) {
    Vec sum[kRows] = {};
    int64_t c = 0;
    for (; c + kLanes <= cols; c += kLanes) {
      const Vec x = load(v + c);
      for (int i = 0; i < kRows; ++i) sum[i] += load(m + (r + i) * cols + c) * x;
    }
    float total[kRows];
    for (int i = 0; i < kRows; ++i) total[i] = sum_lanes(sum[i]) + (bias ? bias[r + i] : 0.0f);
    for (; c < cols; ++c)
      for (int i = 0; i < kRows; ++i) total[i] += m[(r + i) * cols + c] * v[c];
    for (int i = 0; i < kRows; ++i) y[r + i] = total[i];
  }
  for (; r < rows; ++r) {
    float total = bias ? bias[r] : 0.0f;
    for (int64_t c = 0; c < cols; ++c) total += m[r * cols + c] * v[c];
    y[r] = total;
  }
}

template <class F>
TESSERA_INLINE void each(float* x, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(x + i, f(load(x + i)));
  if (i == n) return;
  const Part part(static_cast<int>(n - i));
  part.store(x + i, f(part.load(x + i)));
}

#define TESSERA_FORMULA(expression) \
  [=](Vec x) __attribute__((always_inline)) { return expression; }

void activate(Activation f, float a, float b, float* values, int64_t n) {
  switch (f) {
    case Activation::kAffine:
      return each(values, n, TESSERA_FORMULA(a * x + b));
    case Activation::kElu:
      return each(values, n, TESSERA_FORMULA(where_less(x, Vec{}, a * (exp_normal(x) - 1.0f), x)));
    case Activation::kHardSigmoid:
      return each(values, n, TESSERA_FORMULA(clamped(a * x + b, 0.0f, 1.0f)));
    case Activation::kLeakyRelu:
      return each(values, n, TESSERA_FORMULA(where_less(x, Vec{}, a * x, x)));
    case Activation::kRelu:
      return each(values, n, TESSERA_FORMULA(max_of(Vec{}, x)));
    case Activation::kScaledTanh:
      return each(values, n, TESSERA_FORMULA(a * tanh_of(b * x)));
    case Activation::kSigmoid:
      return each(values, n, TESSERA_FORMULA(sigmoid_of(x)));
    case Activation::kSoftplus:
      return each(values, n, TESSERA_FORMULA(softplus_of(x)));
    case Activation::kSoftsign:
      return each(values, n, TESSERA_FORMULA(x / (1.0f + abs_of(x))));
    case Activation::kTanh:
      return each(values, n, TESSERA_FORMULA(tanh_of(x)));
    case Activation::kThresholdedRelu:
      return each(values, n, TESSERA_FORMULA(where_less(x, splat(a), Vec{}, x)));
  }
}

struct Layer {
  const RnnArgs& a;
  int direction;
  const float *w, *r, *wb, *rb, *p;  // of the direction; the last three may be null
  float *h, *c;                      // state
  float *in, *back, *rest;           // scratch: gates of x, gates of h, H more

  void apply(int which, float* x) const {
    activate(a.f[direction][which], a.alpha[direction][which], a.beta[direction][which], x, a.H);
  }
  void clipped(int which, float* x) const {
    const float bound = a.clip;
    each(
        x,
        a.H, [bound](Vec v) __attribute__((always_inline)) { return clamped(v, -bound, bound); });
    apply(which, x);
  }
  // in = W x + b, back = R h + b, then the first `gates` gates of in hold their sum.
  void gates_of(const float* x, int64_t gates) const {
    product(w, wb, x, a.gates * a.H, a.I, in);
    product(r, rb, h, gates * a.H, a.H, back);
    for (int64_t i = 0; i < gates * a.H; ++i) in[i] += back[i];
  }
};

void rnn_step(const Layer& l, const float* x) {
  l.gates_of(x, 1);
  l.clipped(0, l.in);
  for (int64_t i = 0; i < l.a.H; ++i) l.h[i] = l.in[i];
}

void gru_step(const Layer& l, const float* x) {
  const int64_t H = l.a.H;
  l.gates_of(x, 2);
  float *z = l.in, *r = l.in + H, *candidate = l.in + 2 * H;
  l.clipped(0, z);
  l.clipped(0, r);
  const float *rh = l.r + 2 * H * H, *rbh = l.rb ? l.rb + 2 * H : nullptr;
  if (l.a.flag) {
    product(rh, rbh, l.h, H, H, l.back);
    for (int64_t i = 0; i < H; ++i) candidate[i] += r[i] * l.back[i];
  } else {
    for (int64_t i = 0; i < H; ++i) l.rest[i] = r[i] * l.h[i];
    product(rh, rbh, l.rest, H, H, l.back);
    for (int64_t i = 0; i < H; ++i) candidate[i] += l.back[i];
  }
  l.clipped(1, candidate);
  for (int64_t i = 0; i < H; ++i) l.h[i] = (1.0f - z[i]) * candidate[i] + z[i] * l.h[i];
}

void lstm_step(const Layer& l, const float* x) {
  const int64_t H = l.a.H;
  l.gates_of(x, 4);
  float *i = l.in, *o = l.in + H, *f = l.in + 2 * H, *g = l.in + 3 * H;
  for (int64_t k = 0; l.p && k < H; ++k) {
    i[k] += l.p[k] * l.c[k];
    f[k] += l.p[2 * H + k] * l.c[k];
  }
  l.clipped(0, i);
  l.clipped(0, f);
  l.clipped(1, g);
  for (int64_t k = 0; k < H; ++k) {
    const float forget = l.a.flag ? 1.0f - i[k] : f[k];
    l.c[k] = forget * l.c[k] + i[k] * g[k];
    if (l.p) o[k] += l.p[H + k] * l.c[k];
    l.rest[k] = l.c[k];
  }
  l.clipped(0, o);
  l.apply(2, l.rest);
  for (int64_t k = 0; k < H; ++k) l.h[k] = o[k] * l.rest[k];
}

}  // namespace

void rnn(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const RnnArgs*>(launch->constants);
  const int64_t H = a.H, G = a.gates;
  void* range[12] = {};
  uint32_t next = 0;
  for (int i = 0; i < 11; ++i)
    if (a.present & (1u << i)) range[i] = launch->ranges[next++].data;
  float* workspace = static_cast<float*>(launch->ranges[next].data);
  const auto floats = [&](int i) { return static_cast<float*>(range[i]); };
  for (uint32_t item = first; item < first + count; ++item) {
    const int64_t d = item / a.N, n = item % a.N, state = (d * a.N + n) * H;
    const int64_t length = !range[4]        ? a.T
                           : a.wide_lengths ? static_cast<const int64_t*>(range[4])[n]
                                            : static_cast<const int32_t*>(range[4])[n];
    if (length < 0 || length > a.T)
      return launch->fail(launch, "the length of a sequence is outside of 0 to its steps");
    float* scratch = workspace + item * rnn_scratch(H, G);
    const float* bias = floats(3) ? floats(3) + d * 2 * G * H : nullptr;
    const Layer l{a,
                  static_cast<int>(d),
                  floats(1) + d * G * H * a.I,
                  floats(2) + d * G * H * H,
                  bias,
                  bias ? bias + G * H : nullptr,
                  floats(7) ? floats(7) + d * 3 * H : nullptr,
                  scratch,
                  scratch + H,
                  scratch + 3 * H,
                  scratch + (3 + G) * H,
                  scratch + 2 * H};
    for (int64_t k = 0; k < H; ++k) {
      l.h[k] = floats(5) ? floats(5)[state + k] : 0.0f;
      l.c[k] = floats(6) ? floats(6)[state + k] : 0.0f;
    }
    const bool reverse = d == 1 || a.reverse;
    float* y = floats(8);
    for (int64_t s = 0; s < a.T; ++s) {
      const int64_t t = reverse && s < length ? length - 1 - s : s;
      if (s < length)
        (a.kind == RnnKind::kRnn   ? rnn_step
         : a.kind == RnnKind::kGru ? gru_step
                                   : lstm_step)(l, floats(0) + (t * a.N + n) * a.I);
      if (y)
        for (int64_t k = 0; k < H; ++k)
          y[((t * a.directions + d) * a.N + n) * H + k] = s < length ? l.h[k] : 0.0f;
    }
    for (int64_t k = 0; k < H; ++k) {
      if (floats(9)) floats(9)[state + k] = l.h[k];
      if (floats(10)) floats(10)[state + k] = l.c[k];
    }
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
