// Recurrent layers, step by step, in double. Letters as in op/rows_rnn.cc.
#include <algorithm>
#include <cmath>

#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

using Doubles = std::vector<double>;
using Function = double (*)(double x, double alpha, double beta);

struct Named {
  std::string_view name;
  Function function;
};
constexpr Named kFunctions[] = {
    {"affine", [](double x, double a, double b) { return a * x + b; }},
    {"elu", [](double x, double a, double) { return x >= 0 ? x : a * std::expm1(x); }},
    {"hard_sigmoid", [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
    {"leaky_relu", [](double x, double a, double) { return x >= 0 ? x : a * x; }},
    {"relu", [](double x, double, double) { return std::max(x, 0.0); }},
    {"scaled_tanh", [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"softplus", [](double x, double,
                    double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
    {"softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); }},
    {"tanh", [](double x, double, double) { return std::tanh(x); }},
    {"thresholded_relu", [](double x, double a, double) { return x >= a ? x : 0; }},
};

struct Activation {
  Function function = nullptr;
  double alpha = 0, beta = 0, clip = INFINITY;
  double operator()(double x) const { return unclipped(std::clamp(x, -clip, clip)); }
  double unclipped(double x) const { return function(x, alpha, beta); }
};

Doubles doubles(const Call& call, size_t input) {
  Doubles values;
  if (!call.has(input)) return values;
  values.reserve(static_cast<size_t>(call.t(input).count()));
  for (int64_t i = 0; i < call.t(input).count(); ++i) values.push_back(call.t(input).f64(i));
  return values;
}

// One direction of a layer. Vectors that are left out are empty.
struct Layer {
  int64_t N, I, H, G;
  const double *w, *r;        // (G*H, I), (G*H, H)
  const double *wb, *rb, *p;  // (G*H), (G*H), (3*H), or null
  std::vector<Activation> f;
  bool flag;  // linear_before_reset or input_forget

  double input(const double* x, int64_t k) const {  // row k of W x + its bias
    double sum = wb ? wb[k] : 0;
    for (int64_t i = 0; i < I; ++i) sum += w[k * I + i] * x[i];
    return sum;
  }
  double recurrence(const double* h, int64_t k) const {  // row k of R h + its bias
    double sum = rb ? rb[k] : 0;
    for (int64_t i = 0; i < H; ++i) sum += r[k * H + i] * h[i];
    return sum;
  }
};

// A step: h (H) and c (H) become those of the next time.
using Step = void (*)(const Layer&, const double* x, Doubles& h, Doubles& c);

void rnn_step(const Layer& l, const double* x, Doubles& h, Doubles&) {
  Doubles next(h.size());
  for (int64_t k = 0; k < l.H; ++k)
    next[static_cast<size_t>(k)] = l.f[0](l.input(x, k) + l.recurrence(h.data(), k));
  h = std::move(next);
}

void gru_step(const Layer& l, const double* x, Doubles& h, Doubles&) {
  const size_t H = h.size();
  Doubles z(H), r(H), reset(H), next(H);
  for (size_t k = 0; k < H; ++k) {
    const int64_t at = static_cast<int64_t>(k);
    z[k] = l.f[0](l.input(x, at) + l.recurrence(h.data(), at));
    r[k] = l.f[0](l.input(x, l.H + at) + l.recurrence(h.data(), l.H + at));
    reset[k] = r[k] * h[k];
  }
  for (size_t k = 0; k < H; ++k) {
    const int64_t at = 2 * l.H + static_cast<int64_t>(k);
    const double back = l.flag ? r[k] * l.recurrence(h.data(), at) : l.recurrence(reset.data(), at);
    next[k] = (1 - z[k]) * l.f[1](l.input(x, at) + back) + z[k] * h[k];
  }
  h = std::move(next);
}

void lstm_step(const Layer& l, const double* x, Doubles& h, Doubles& c) {
  const size_t H = h.size();
  Doubles next(H);
  for (size_t k = 0; k < H; ++k) {
    const int64_t at = static_cast<int64_t>(k);
    auto gate = [&](int64_t g) {
      return l.input(x, g * l.H + at) + l.recurrence(h.data(), g * l.H + at);
    };
    auto peep = [&](int64_t g, double cell) { return l.p ? l.p[g * l.H + at] * cell : 0; };
    const double i = l.f[0](gate(0) + peep(0, c[k]));
    const double f = l.flag ? 1 - i : l.f[0](gate(2) + peep(2, c[k]));
    const double cell = f * c[k] + i * l.f[1](gate(3));
    next[k] = l.f[0](gate(1) + peep(1, cell)) * l.f[2].unclipped(cell);
    c[k] = cell;
  }
  h = std::move(next);
}

Result<std::vector<Activation>> activations_of(const Call& call) {
  std::vector<Activation> list;
  const op::Strings names = call.attrs().strings("activations");
  const op::Floats alpha = call.attrs().floats("alpha"), beta = call.attrs().floats("beta");
  for (size_t i = 0; i < names.size(); ++i) {
    auto found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                              [&](auto& f) { return f.name == names[i]; });
    if (found == std::end(kFunctions)) return call.fail("unknown activation '{}'", names[i]);
    list.push_back({found->function, alpha[i], beta[i], call.attrs().f("clip", INFINITY)});
  }
  return list;
}

Result<std::vector<Value>> layer(const Call& call, int64_t G, Step step) {
  const Doubles x = doubles(call, 0), w = doubles(call, 1), r = doubles(call, 2),
                b = doubles(call, 3), h0 = doubles(call, 5), c0 = doubles(call, 6),
                p = doubles(call, 7);
  const int64_t T = call.t(0).dim(0), N = call.t(0).dim(1), I = call.t(0).dim(2),
                D = call.t(1).dim(0), H = call.t(2).dim(2);
  TRY_ASSIGN(const std::vector<Activation> f, activations_of(call));
  const auto per_direction = static_cast<int64_t>(f.size()) / D;
  std::vector<Value> results;
  TRY_ASSIGN(Tensor y, call.make(0));
  TRY_ASSIGN(Tensor last_h, call.make(1));
  TRY_ASSIGN(Tensor last_c, call.make(2));
  const bool flag =
      call.attrs().i("linear_before_reset") != 0 || call.attrs().i("input_forget") != 0;
  for (int64_t d = 0; d < D; ++d) {
    const bool reverse = d == 1 || call.attrs().s("direction") == "reverse";
    auto part = [d](const Doubles& v, int64_t size) {
      return v.empty() ? nullptr : v.data() + d * size;
    };
    const double* bias = part(b, 2 * G * H);
    const Layer l{N,
                  I,
                  H,
                  G,
                  part(w, G * H * I),
                  part(r, G * H * H),
                  bias,
                  bias ? bias + G * H : nullptr,
                  part(p, 3 * H),
                  {f.begin() + d * per_direction, f.begin() + (d + 1) * per_direction},
                  flag};
    for (int64_t n = 0; n < N; ++n) {
      const int64_t length = call.has(4) ? call.t(4).i64(n) : T;
      if (length < 0 || length > T)
        return call.fail("the length of sequence {} is {}, need 0 to {}", n, length, T);
      const int64_t state = (d * N + n) * H;
      Doubles h(static_cast<size_t>(H)), c(static_cast<size_t>(H));
      if (!h0.empty()) std::copy_n(h0.begin() + state, H, h.begin());
      if (!c0.empty()) std::copy_n(c0.begin() + state, H, c.begin());
      for (int64_t s = 0; s < length; ++s) {
        if (call.options.deadline && std::chrono::steady_clock::now() > *call.options.deadline)
          return error(Code::kDeadlineExceeded, "{}: the time limit has passed", call.op());
        const int64_t t = reverse ? length - 1 - s : s;
        step(l, x.data() + (t * N + n) * I, h, c);
        for (int64_t k = 0; k < H; ++k)
          y.set_f64(((t * D + d) * N + n) * H + k, h[static_cast<size_t>(k)]);
      }
      for (int64_t k = 0; k < H; ++k) {
        last_h.set_f64(state + k, h[static_cast<size_t>(k)]);
        last_c.set_f64(state + k, c[static_cast<size_t>(k)]);
      }
    }
  }
  return std::vector<Value>{std::move(y), std::move(last_h), std::move(last_c)};
}

Result<std::vector<Value>> rnn(const Call& call) { return layer(call, 1, rnn_step); }
Result<std::vector<Value>> gru(const Call& call) { return layer(call, 3, gru_step); }
Result<std::vector<Value>> lstm(const Call& call) { return layer(call, 4, lstm_step); }

constexpr Row kRows[] = {{"gru", gru}, {"lstm", lstm}, {"rnn", rnn}};

}  // namespace

std::span<const Row> rnn_rows() { return kRows; }

}  // namespace tessera::ir::reference
