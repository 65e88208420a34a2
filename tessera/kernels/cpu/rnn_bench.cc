// LSTM layers beside oneDNN's, weights packed by both: processor time, in turn, the fastest of
// each. Counters: us; ratio: to oneDNN; peak: part of the FMA peak measured here.
//
//   OMP_NUM_THREADS=1 build/rnn_bench --benchmark_filter=i256
#include <benchmark/benchmark.h>

#include "tessera/kernels/cpu/onednn_bench.h"

namespace tessera::kernels::cpu {
namespace {

struct Shape {
  int64_t T, N, I, H;
  double flops() const { return 8.0 * static_cast<double>(T * N * H * (I + H)); }
  std::string str() const { return fmt::format("lstm_f32_t{}n{}i{}h{}", T, N, I, H); }
};

constexpr Shape kShapes[] = {
    {100, 1, 256, 256}, {50, 8, 256, 256}, {20, 64, 256, 256}, {40, 1, 128, 128},
    {1, 1, 128, 128},   {80, 1, 96, 48},   {100, 1, 512, 512}, {30, 3, 100, 100},
};

op::Operand operand(op::Dims dims, bool constant = false) {
  op::Operand o;
  o.dims = std::move(dims);
  o.constant = constant;
  return o;
}

op::Problem problem_of(const Shape& s) {
  op::Problem p;
  p.op = op::find("lstm");
  p.attrs = {{"direction", std::string("forward")},
             {"activations", op::Strings{"sigmoid", "tanh", "tanh"}},
             {"alpha", op::Floats(3, 0.0)},
             {"beta", op::Floats(3, 0.0)}};
  p.in = {operand({s.T, s.N, s.I}), operand({1, 4 * s.H, s.I}, true),
          operand({1, 4 * s.H, s.H}, true), operand({1, 8 * s.H}, true)};
  p.out = {operand({s.T, 1, s.N, s.H}), operand({1, s.N, s.H}), operand({1, s.N, s.H})};
  return p;
}

class Peer : public bench::OneDnn {
 public:
  explicit Peer(const Shape& s) {
    using namespace dnnl;
    using tag = memory::format_tag;
    const auto f32 = memory::data_type::f32;
    const memory::desc none;
    const lstm_forward::primitive_desc primitive(
        lstm_forward::desc(prop_kind::forward_inference, rnn_direction::unidirectional_left2right,
                           memory::desc({s.T, s.N, s.I}, f32, tag::tnc), none, none,
                           memory::desc({1, 1, s.I, 4, s.H}, f32, tag::any),
                           memory::desc({1, 1, s.H, 4, s.H}, f32, tag::any),
                           memory::desc({1, 1, 4, s.H}, f32, tag::ldgo),
                           memory::desc({s.T, s.N, s.H}, f32, tag::tnc), none, none),
        engine_);
    primitive_ = lstm_forward(primitive);
    add(DNNL_ARG_SRC_LAYER, primitive.src_layer_desc());
    add(DNNL_ARG_WEIGHTS_LAYER, primitive.weights_layer_desc());
    add(DNNL_ARG_WEIGHTS_ITER, primitive.weights_iter_desc());
    add(DNNL_ARG_BIAS, primitive.bias_desc());
    add(DNNL_ARG_DST_LAYER, primitive.dst_layer_desc());
  }
};

void lstm(benchmark::State& state, const Shape& s) {
  const op::Problem problem = problem_of(s);
  const op::Claim claim = table().probe(problem)[0];
  if (!claim.supported()) return state.SkipWithError(claim.refusal.c_str());
  bench::Kernel kernel(problem, claim);
  Peer rival(s);
  double own = 1e9, one = 1e9;
  for (auto _ : state) {
    bench::time([&] { kernel.run(); }, own);
    bench::time([&] { rival.run(); }, one);
  }
  state.counters["us"] = own * 1e6;
  state.counters["ratio"] = own / one;
  state.counters["peak"] = s.flops() / own / bench::fma_peak();
}

const bool kRegistered = [] {
  for (const Shape& s : kShapes)
    benchmark::RegisterBenchmark(s.str().c_str(), [&s](benchmark::State& state) {
      lstm(state, s);
    })->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace tessera::kernels::cpu

BENCHMARK_MAIN();
