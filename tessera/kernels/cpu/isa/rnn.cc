// rnn_input, rnn: see rnn_args.h. A step goes over the panels of hidden units: products with the
// state before it, in registers, for all gates of 16 units; then what the cell makes of them.
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/math.h"
#include "tessera/kernels/cpu/isa/tile_product.h"
#include "tessera/kernels/cpu/rnn_args.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int kSequences = kLanes == 16 ? 6 : 2;  // in registers together
constexpr int kVecs = kPanel / kLanes;            // of a panel's units
constexpr int kMaxGates = 4;

// The sums of several gates are this far apart.
using Sums = float[kSequences][kMaxGates][kPanel];

// V vectors of units of products of R states with G gates of a panel.
template <int R, int G, int V>
TESSERA_INLINE void sums_of(const float* panel, int64_t depth, const float* const* h, int64_t unit,
                            Sums& to) {
  // As many chains of sums as hide the latency of one.
  constexpr int kOwn = R * G * V, kChains = kOwn >= 8 ? 1 : kOwn >= 4 ? 2 : kOwn >= 2 ? 4 : 8;
  Vec sum[kChains][R][G][V] = {};
  const auto add = [&](int chain, int64_t k) __attribute__((always_inline)) {
    Vec weight[G][V];
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) {
      TESSERA_UNROLL
      for (int v = 0; v < V; ++v)
        weight[g][v] = load(panel + (k * G + g) * kPanel + unit + v * kLanes);
    }
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec x = splat(h[r][k]);
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) {
        TESSERA_UNROLL
        for (int v = 0; v < V; ++v) sum[chain][r][g][v] += x * weight[g][v];
      }
    }
  };
  int64_t k = 0;
  for (; k + kChains <= depth; k += kChains) {
    TESSERA_UNROLL
    for (int c = 0; c < kChains; ++c) add(c, k + c);
  }
  for (; k < depth; ++k) add(0, k);
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) {
      TESSERA_UNROLL
      for (int v = 0; v < V; ++v) {
        TESSERA_UNROLL
        for (int c = 1; c < kChains; ++c) sum[0][r][g][v] += sum[c][r][g][v];
        store(&to[r][g][unit + v * kLanes], sum[0][r][g][v]);
      }
    }
  }
}

template <int R, int G>
void gate_sums(const float* panel, int64_t depth, const float* const* h, Sums& to) {
  constexpr int kTogether = R == 1 && kVecs > 1 ? 2 : 1;
  for (int64_t unit = 0; unit < kPanel; unit += kTogether * kLanes)
    sums_of<R, G, kTogether>(panel, depth, h, unit, to);
}

using SumsFn = void (*)(const float*, int64_t, const float* const*, Sums&);
template <int G>
struct SumsTable {
  SumsFn fn[kSequences + 1] = {};
  template <int R>
  constexpr void fill() {
    fn[R] = gate_sums<R, G>;
    if constexpr (R < kSequences) fill<R + 1>();
  }
  constexpr SumsTable() { fill<1>(); }
};
template <int G>
constexpr SumsTable<G> kSums;

#define TESSERA_ON_VECTOR __attribute__((noinline))
TESSERA_ON_VECTOR Vec activated(Activation f, float a, float b, Vec x) {
  switch (f) {
    case Activation::kAffine:
      return a * x + b;
    case Activation::kElu:
      return where_less(x, Vec{}, a * (exp_normal(x) - 1.0f), x);
    case Activation::kHardSigmoid:
      return clamped(a * x + b, 0.0f, 1.0f);
    case Activation::kLeakyRelu:
      return where_less(x, Vec{}, a * x, x);
    case Activation::kRelu:
      return max_of(Vec{}, x);
    case Activation::kScaledTanh:
      return a * tanh_of(b * x);
    case Activation::kSigmoid:
      return sigmoid_of(x);
    case Activation::kSoftplus:
      return softplus_of(x);
    case Activation::kSoftsign:
      return x / (1.0f + abs_of(x));
    case Activation::kTanh:
      return tanh_of(x);
    case Activation::kThresholdedRelu:
      return where_less(x, splat(a), Vec{}, x);
  }
  return x;
}
#undef TESSERA_ON_VECTOR

// The activations of a direction: first() of most gates, second() of candidates, third() of the
// cell's state.
struct UsualActivations {
  Vec first(Vec x) const { return sigmoid_of(x); }
  Vec second(Vec x) const { return tanh_of(x); }
  Vec third(Vec x) const { return tanh_of(x); }
};
struct TanhActivations {
  Vec first(Vec x) const { return tanh_of(x); }
};
struct AnyActivations {
  const RnnArgs& a;
  int64_t d;
  Vec plain(int i, Vec x) const { return activated(a.f[d][i], a.alpha[d][i], a.beta[d][i], x); }
  Vec clipped(int i, Vec x) const { return plain(i, clamped(x, -a.clip, a.clip)); }
  Vec first(Vec x) const { return clipped(0, x); }
  Vec second(Vec x) const { return clipped(1, x); }
  Vec third(Vec x) const { return plain(2, x); }
};

// What all sequences of a direction have in common. Vectors of whole panels.
struct Layer {
  int64_t H, P, G;
  const float* r;
  bool flag;
  const float *peepholes, *candidate_bias;  // null: none
  bool backwards;  // over the panels: every other step, which finds the last ones in the cache
};

// A sequence at a step.
struct Sequence {
  float *h, *next;          // states
  float *c, *update, *own;  // lstm: cell; gru: update gate, reset state
  const float* x;           // (P, G, unit): W x and the biases
  float* y;                 // null: not wanted
  int64_t n, length;
};

// A panel's part of a sequence, a vector of units.
struct Units {
  const Layer& l;
  const Sequence& s;
  int64_t panel, unit;
  const float (&sums)[kMaxGates][kPanel];

  int64_t at() const { return panel * kPanel + unit; }
  Vec sum(int gate) const { return load(&sums[gate][unit]); }
  Vec input(int gate) const { return load(s.x + (panel * l.G + gate) * kPanel + unit); }
  Vec peep(int gate, Vec cell, Vec x) const {
    return l.peepholes ? x + load(l.peepholes + gate * l.P * kPanel + at()) * cell : x;
  }
  void yield(Vec h) const {
    store(s.next + at(), h);
    const int64_t left = l.H - at();
    if (!s.y || left <= 0) return;
    if (left >= kLanes)
      store(s.y + at(), h);
    else
      Part(static_cast<int>(left)).store(s.y + at(), h);
  }
};

// What a step does with the sums of a group of gates; state(): what they are products with.
template <class F>
struct RnnCell {
  static constexpr int kGates = 1;
  static const float* state(const Sequence& s) { return s.h; }
  TESSERA_INLINE void run(const F& f, const Units& u) { u.yield(f.first(u.sum(0) + u.input(0))); }
};

template <class F>
struct LstmCell {
  static constexpr int kGates = 4;
  static const float* state(const Sequence& s) { return s.h; }
  TESSERA_INLINE void run(const F& f, const Units& u) {
    const Vec cell = load(u.s.c + u.at());
    const Vec in = f.first(u.peep(0, cell, u.sum(0) + u.input(0)));
    const Vec keep = u.l.flag ? 1.0f - in : f.first(u.peep(2, cell, u.sum(2) + u.input(2)));
    const Vec next = keep * cell + in * f.second(u.sum(3) + u.input(3));
    store(u.s.c + u.at(), next);
    u.yield(f.first(u.peep(1, next, u.sum(1) + u.input(1))) * f.third(next));
  }
};

TESSERA_INLINE Vec blend(Vec share, Vec x, Vec y) { return (1.0f - share) * x + share * y; }

// The reset gate works on the product.
template <class F>
struct LinearGruCell {
  static constexpr int kGates = 3;
  static const float* state(const Sequence& s) { return s.h; }
  TESSERA_INLINE void run(const F& f, const Units& u) {
    const Vec update = f.first(u.sum(0) + u.input(0)), reset = f.first(u.sum(1) + u.input(1));
    const Vec bias = u.l.candidate_bias ? load(u.l.candidate_bias + u.at()) : Vec{};
    const Vec candidate = f.second(reset * (u.sum(2) + bias) + u.input(2));
    u.yield(blend(update, candidate, load(u.s.h + u.at())));
  }
};

// The reset gate works on the state: the candidate's product comes after it.
template <class F>
struct GruGates {
  static constexpr int kGates = 2;
  static const float* state(const Sequence& s) { return s.h; }
  TESSERA_INLINE void run(const F& f, const Units& u) {
    store(u.s.update + u.at(), f.first(u.sum(0) + u.input(0)));
    store(u.s.own + u.at(), f.first(u.sum(1) + u.input(1)) * load(u.s.h + u.at()));
  }
};
template <class F>
struct GruCandidate {
  static constexpr int kGates = 1;
  static const float* state(const Sequence& s) { return s.own; }
  TESSERA_INLINE void run(const F& f, const Units& u) {
    const Vec candidate = f.second(u.sum(0) + u.input(2));
    u.yield(blend(load(u.s.update + u.at()), candidate, load(u.s.h + u.at())));
  }
};

// A group of gates of a step, of all sequences.
template <class Cell, class F>
void pass(const Layer& l, const F& f, const float* weights, const Sequence* sequences,
          int64_t count) {
  const int64_t tiles = (count + kSequences - 1) / kSequences;
  for (int64_t i = 0; i < l.P; ++i) {
    const int64_t p = l.backwards ? l.P - 1 - i : i;
    const float* panel = weights + p * l.H * Cell::kGates * kPanel;
    int64_t first = 0;
    for (int64_t tile = tiles; tile > 0; --tile) {
      const int64_t rows = (count - first + tile - 1) / tile;
      alignas(64) Sums sums;
      const float* states[kSequences];
      for (int64_t r = 0; r < rows; ++r) states[r] = Cell::state(sequences[first + r]);
      kSums<Cell::kGates>.fn[rows](panel, l.H, states, sums);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t unit = 0; unit < kPanel; unit += kLanes)
          Cell::run(f, Units{l, sequences[first + r], p, unit, sums[r]});
      first += rows;
    }
  }
}

template <class F>
void gru_step(const Layer& l, const F& f, const Sequence* sequences, int64_t count) {
  if (l.flag) return pass<LinearGruCell<F>>(l, f, l.r, sequences, count);
  pass<GruGates<F>>(l, f, l.r, sequences, count);
  pass<GruCandidate<F>>(l, f, l.r + 2 * l.P * kPanel * l.H, sequences, count);
}

void step(const RnnArgs& a, const Layer& l, int64_t d, const Sequence* sequences, int64_t count) {
  const AnyActivations any{a, d};
  const UsualActivations usual;
  switch (a.kind) {
    case RnnKind::kRnn:
      return a.usual ? pass<RnnCell<TanhActivations>>(l, TanhActivations{}, l.r, sequences, count)
                     : pass<RnnCell<AnyActivations>>(l, any, l.r, sequences, count);
    case RnnKind::kGru:
      return a.usual ? gru_step(l, usual, sequences, count) : gru_step(l, any, sequences, count);
    case RnnKind::kLstm:
      return a.usual ? pass<LstmCell<UsualActivations>>(l, usual, l.r, sequences, count)
                     : pass<LstmCell<AnyActivations>>(l, any, l.r, sequences, count);
  }
}

// A vector of H as whole panels; 0 where there is none.
void widen(const float* from, int64_t H, int64_t P, float* to) {
  for (int64_t k = 0; k < P * kPanel; ++k) to[k] = from && k < H ? from[k] : 0.0f;
}

// Of the optional ranges, by their bits.
struct RnnRanges {
  void* at[11] = {};
  const float* r;
  const float* gates;
  float* scratch;
  RnnRanges(const RnnArgs& a, const tessera_range* range) {
    r = static_cast<const float*>((range++)->data);
    gates = static_cast<const float*>((range++)->data);
    for (int i = 3; i < 11; ++i)
      if (a.present & (1u << i)) at[i] = (range++)->data;
    scratch = static_cast<float*>(range->data);
  }
  // Element `offset`; null where there is no such range.
  float* floats(int i, int64_t offset = 0) const {
    return at[i] ? static_cast<float*>(at[i]) + offset : nullptr;
  }
  int64_t length(const RnnArgs& a, int64_t n) const {
    return !at[4]           ? a.T
           : a.wide_lengths ? static_cast<const int64_t*>(at[4])[n]
                            : static_cast<const int32_t*>(at[4])[n];
  }
};

// Sequences [n0, n1) of a direction. False if a length is impossible.
bool run(const RnnArgs& a, const RnnRanges& ranges, int64_t d, int64_t n0, int64_t n1,
         float* scratch) {
  const int64_t H = a.H, G = a.gates, P = panels_of(H), wide = P * kPanel;
  float* const peepholes = scratch;
  float* const bias = scratch + 3 * wide;
  scratch += 4 * wide;
  for (int g = 0; g < 3; ++g) widen(ranges.floats(7, (d * 3 + g) * H), H, P, peepholes + g * wide);
  widen(ranges.floats(3, (d * 2 + 1) * G * H + (G - 1) * H), H, P, bias);
  Layer layer{H,
              P,
              G,
              ranges.r + d * wide * G * H,
              a.flag != 0,
              ranges.at[7] ? peepholes : nullptr,
              ranges.at[3] ? bias : nullptr,
              false};
  Sequence all[kRnnBatch];
  const int64_t count = n1 - n0;
  for (int64_t i = 0; i < count; ++i, scratch += 5 * wide) {
    const int64_t n = n0 + i, state = (d * a.N + n) * H, length = ranges.length(a, n);
    if (length < 0 || length > a.T) return false;
    all[i] = {scratch,
              scratch + wide,
              scratch + 2 * wide,
              scratch + 3 * wide,
              scratch + 4 * wide,
              nullptr,
              nullptr,
              n,
              length};
    widen(ranges.floats(5, state), H, P, all[i].h);
    widen(ranges.floats(6, state), H, P, all[i].c);
  }
  const bool reverse = d == 1 || a.reverse;
  for (int64_t t = 0; t < a.T; ++t) {
    Sequence active[kRnnBatch];
    int64_t running = 0;
    for (int64_t i = 0; i < count; ++i) {
      Sequence& s = all[i];
      if (t >= s.length) {
        if (float* y = ranges.floats(8, ((t * a.directions + d) * a.N + s.n) * H))
          __builtin_memset(y, 0, static_cast<size_t>(H) * sizeof(float));
        continue;
      }
      const int64_t at = reverse ? s.length - 1 - t : t;
      s.x = ranges.gates + ((d * a.T + at) * a.N + s.n) * G * wide;
      s.y = ranges.floats(8, ((at * a.directions + d) * a.N + s.n) * H);
      active[running++] = s;
      float* const h = s.h;
      s.h = s.next;
      s.next = h;
    }
    if (running > 0) step(a, layer, d, active, running);
    layer.backwards = !layer.backwards;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t state = (d * a.N + all[i].n) * H;
    const auto bytes = static_cast<size_t>(H) * sizeof(float);
    if (float* h = ranges.floats(9, state)) __builtin_memcpy(h, all[i].h, bytes);
    if (float* c = ranges.floats(10, state)) __builtin_memcpy(c, all[i].c, bytes);
  }
  return true;
}

// Row of the result of rnn_input that holds the biases of W and R: panels [p0, p1) of gates.
void bias_row(const RnnInputArgs& a, const float* bias, int64_t p0, int64_t p1, float* to) {
  for (int64_t p = p0; p < p1; ++p, to += kPanel) {
    const int64_t gate = p % a.G, unit = p / a.G * kPanel;
    const float *own = bias + gate * a.H, *back = own + a.G * a.H;
    const bool both = !a.linear || gate + 1 < a.G;
    for (int64_t u = 0; u < kPanel; ++u) {
      const int64_t k = unit + u;
      to[u] = k >= a.H ? 0.0f : both ? own[k] + back[k] : own[k];
    }
  }
}

}  // namespace

void rnn_input(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const RnnInputArgs*>(launch->constants);
  const tessera_range* range = launch->ranges;
  const auto* x = static_cast<const float*>((range++)->data);
  const auto* w = static_cast<const float*>((range++)->data);
  const auto* bias = static_cast<const float*>(a.biased ? (range++)->data : nullptr);
  auto* y = static_cast<float*>(range->data);
  const int64_t panels = panels_of(a.H) * a.G, width = panels * kPanel;
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t p0 = i % a.panel_items * a.panel_step, p1 = least(panels, p0 + a.panel_step),
                  block = i / a.panel_items, d = block / a.row_items,
                  m0 = block % a.row_items * a.row_step, m1 = least(a.rows, m0 + a.row_step);
    if (p0 >= p1 || m0 >= m1) continue;
    float* const to = y + (d * a.rows + m0) * width + p0 * kPanel;
    const int64_t cols = (p1 - p0) * kPanel;
    if (bias) {
      bias_row(a, bias + d * 2 * a.G * a.H, p0, p1, to);
      for (int64_t m = 1; m < m1 - m0; ++m)
        __builtin_memcpy(to + m * width, to, static_cast<size_t>(cols) * sizeof(float));
    }
    Block product{};
    product.rows = m1 - m0;
    product.cols = cols;
    product.depth = a.I;
    product.a = x + m0 * a.I;
    product.lda = a.I;
    product.b = w + (d * panels + p0) * kPanel * a.I;
    product.panel_stride = kPanel * a.I;
    product.c = to;
    product.ldc = width;
    product.accumulate = bias != nullptr;
    block_product(product);
  }
}

void rnn(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const RnnArgs*>(launch->constants);
  const RnnRanges ranges(a, launch->ranges);
  const int64_t blocks = (a.N + a.batch - 1) / a.batch;
  for (int64_t i = first; i < int64_t{first} + count; ++i) {
    const int64_t d = i / blocks, n0 = i % blocks * a.batch;
    if (!run(a, ranges, d, n0, least(a.N, n0 + a.batch),
             ranges.scratch + i * rnn_scratch(a.H, a.batch)))
      return launch->fail(launch, "the length of a sequence is outside of 0 to its steps");
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
