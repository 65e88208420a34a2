// Products and convolutions of u8 and i8 with a requantisation behind them, of real networks,
// beside oneDNN's: one process, one thread, in turn, the fastest of each. M is pixels or tokens, C
// = 1 per group is depthwise. Counters: us, of the cheapest claim; ratio: to oneDNN; peak: part of
// the FMA peak of f32 measured here. The label lists all claims: ratio to oneDNN.
//
//   OMP_NUM_THREADS=1 build/integer_bench --benchmark_filter=resnet50
#include <benchmark/benchmark.h>

#include "tessera/kernels/cpu/onednn_bench.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu {
namespace {

// K by K windows at stride S on C by H by H; H = 0: a product (M, C) by (C, N).
struct Layer {
  const char* network;
  int64_t C, H, N, K = 1, S = 1, G = 1, M = 0;

  int64_t pad() const { return K / 2; }
  int64_t out() const { return (H + 2 * pad() - K) / S + 1; }
  double flops() const {
    const int64_t pixels = H > 0 ? out() * out() : M;
    return 2.0 * static_cast<double>(pixels * N * (C / G) * K * K);
  }
  std::string str() const {
    return H > 0 ? fmt::format("conv_u8i8_c{}h{}n{}k{}s{}g{}", C, H, N, K, S, G)
                 : fmt::format("dot_u8i8_m{}k{}n{}", M, C, N);
  }
};

constexpr Layer kLayers[] = {
    {"square", 512, 0, 512, 1, 1, 1, 512},
    {"square", 1024, 0, 1024, 1, 1, 1, 1024},
    {"bert_base", 768, 0, 768, 1, 1, 1, 128},
    {"bert_base", 768, 0, 3072, 1, 1, 1, 128},
    {"bert_base", 3072, 0, 768, 1, 1, 1, 128},
    {"gpt2", 768, 0, 2304, 1, 1, 1, 1},
    {"odd", 333, 0, 555, 1, 1, 1, 17},
    {"resnet50", 3, 224, 64, 7, 2},
    {"resnet50", 64, 56, 64, 1},
    {"resnet50", 64, 56, 64, 3},
    {"resnet50", 64, 56, 256, 1},
    {"resnet50", 256, 56, 64, 1},
    {"resnet50", 128, 28, 128, 3},
    {"resnet50", 512, 28, 128, 1},
    {"resnet50", 256, 14, 256, 3},
    {"resnet50", 1024, 14, 256, 1},
    {"resnet50", 512, 7, 512, 3},
    {"resnet50", 2048, 7, 512, 1},
    {"mobilenet_v2", 32, 112, 32, 3, 1, 32},
    {"mobilenet_v2", 32, 112, 16, 1},
    {"mobilenet_v2", 96, 56, 24, 1},
    {"mobilenet_v2", 24, 56, 144, 1},
    {"mobilenet_v2", 144, 56, 144, 3, 1, 144},
    {"mobilenet_v2", 192, 28, 32, 1},
    {"mobilenet_v2", 384, 14, 384, 3, 1, 384},
    {"mobilenet_v2", 64, 14, 384, 1},
    {"mobilenet_v2", 960, 7, 160, 1},
};

op::Operand operand(DType dtype, op::Dims dims, bool constant = false) {
  op::Operand o;
  o.dtype = dtype;
  o.dims = std::move(dims);
  o.constant = constant;
  return o;
}

op::Problem problem_of(const Layer& l) {
  op::Problem p;
  const bool conv = l.H > 0;
  p.op = op::find(conv ? "conv_integer" : "dot_integer");
  const op::Dims y = conv ? op::Dims{1, l.N, l.out(), l.out()} : op::Dims{l.M, l.N};
  if (conv) {
    p.attrs.set("groups", l.G);
    p.attrs.set("strides", op::Ints{l.S, l.S});
    p.attrs.set("pads_begin", op::Ints{l.pad(), l.pad()});
    p.attrs.set("pads_end", op::Ints{l.pad(), l.pad()});
    p.in = {operand(DType::kU8, {1, l.C, l.H, l.H}),
            operand(DType::kI8, {l.N, l.C / l.G, l.K, l.K}, true)};
  } else {
    p.in = {operand(DType::kU8, {l.M, l.C}), operand(DType::kI8, {l.C, l.N}, true)};
  }
  p.arity = 2;
  p.in.push_back(operand(DType::kF32, conv ? op::Dims{l.N, 1, 1} : op::Dims{l.N}, true));
  p.in.push_back(operand(DType::kF32, {}, true));
  p.in.push_back(operand(DType::kU8, {}, true));
  p.result = operand(DType::kI32, y);
  p.out = {operand(DType::kU8, y)};
  const op::Operand floats = operand(DType::kF32, y);
  p.steps = {{op::find("convert"), {{"to", DType::kF32}}, {5}, floats},
             {op::find("mul"), {}, {6, 2}, floats},
             {op::find("quantize"), {{"to", DType::kU8}}, {7, 3, 4}, p.out[0]}};
  p.results = {8};
  if (conv) {
    if (l.C > 8) p.in[0].layout = op::channels_last(4);
    p.out[0].layout = op::channels_last(4);
  }
  return p;
}

// The same in oneDNN: weights in its layout, activations channels-last.
class Peer : public bench::OneDnn {
 public:
  explicit Peer(const Layer& l) {
    using namespace dnnl;
    using tag = memory::format_tag;
    const auto u8 = memory::data_type::u8, i8 = memory::data_type::s8;
    primitive_attr attr;
    attr.set_output_scales(2, std::vector<float>(static_cast<size_t>(l.N), 0.01f));
    if (l.H > 0) {
      const memory::dims weights = l.G > 1 ? memory::dims{l.G, l.N / l.G, l.C / l.G, l.K, l.K}
                                           : memory::dims{l.N, l.C, l.K, l.K};
      const convolution_forward::primitive_desc primitive(
          {prop_kind::forward_inference,
           algorithm::convolution_direct,
           {{1, l.C, l.H, l.H}, u8, tag::nhwc},
           {weights, i8, tag::any},
           {{1, l.N, l.out(), l.out()}, u8, tag::nhwc},
           {l.S, l.S},
           {l.pad(), l.pad()},
           {l.pad(), l.pad()}},
          attr, engine_);
      primitive_ = convolution_forward(primitive);
      add_all(primitive.src_desc(), primitive.weights_desc(), primitive.dst_desc());
    } else {
      const matmul::primitive_desc primitive(
          {{{l.M, l.C}, u8, tag::ab}, {{l.C, l.N}, i8, tag::any}, {{l.M, l.N}, u8, tag::ab}}, attr,
          engine_);
      primitive_ = matmul(primitive);
      add_all(primitive.src_desc(), primitive.weights_desc(), primitive.dst_desc());
    }
  }

 private:
  void add_all(const dnnl::memory::desc& x, const dnnl::memory::desc& w,
               const dnnl::memory::desc& y) {
    add(DNNL_ARG_SRC, x);
    add(DNNL_ARG_WEIGHTS, w);
    add(DNNL_ARG_DST, y);
  }
};

void run(benchmark::State& state, const Layer& layer) {
  bench::Claims claims(problem_of(layer));
  if (claims.empty()) return state.SkipWithError("no claim");
  Peer peer(layer);
  double other = bench::kNever;
  for (auto _ : state)
    state.SetIterationTime(bench::seconds([&] {
      bench::time([&] { peer.run(); }, other);
      claims.time();
    }));
  const double own = claims.own();
  state.SetLabel(claims.label(other));
  state.counters["us"] = own * 1e6;
  state.counters["ratio"] = own / other;
  state.counters["peak"] = layer.flops() / own / bench::fma_peak();
}

}  // namespace

void register_layers() {
  for (const Layer& layer : kLayers)
    benchmark::RegisterBenchmark(fmt::format("{}/{}", layer.network, layer.str()).c_str(),
                                 [&layer](benchmark::State& state) { run(state, layer); })
        ->UseManualTime()
        ->MinTime(0.1)
        ->Unit(benchmark::kMicrosecond);
}

}  // namespace tessera::kernels::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  tessera::kernels::cpu::register_layers();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
