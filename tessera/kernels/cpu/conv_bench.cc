// Convolutions of real networks on channels-last operands beside oneDNN's, which may choose any
// layout: one process, one thread, the two in turn, the fastest of each. Counters: us, times of the
// cheapest claim; ratio, to oneDNN's; peak, part of the FMA peak measured here. The label lists all
// claims: ratio to oneDNN's (estimate of the cost in us).
//
// All are there in bf16, too (forced): oneDNN then reads x in bf16, which we round on the way.
//
//   OMP_NUM_THREADS=1 build/conv_bench --benchmark_filter=resnet50
#include <benchmark/benchmark.h>

#include "tessera/kernels/cpu/onednn_bench.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu {
namespace {

// C, M: channels in and out, over all groups; H: size of the square input; K, S: kernel and stride.
struct Layer {
  const char* network;
  int count;  // in the network
  int64_t C, H, M, K, S = 1, G = 1;
  DType multiplies = DType::kF32;

  int64_t pad() const { return K / 2; }
  int64_t out() const { return (H + 2 * pad() - K) / S + 1; }
  double flops() const { return 2.0 * static_cast<double>(out() * out() * M * K * K * C / G); }
  std::string str() const {
    std::string s = fmt::format("conv_{}_c{}h{}_m{}r{}", name_of(multiplies), C, H, M, K);
    if (S > 1) s += fmt::format("t{}", S);
    if (G > 1) s += fmt::format("g{}", G);
    return s;
  }
};

constexpr Layer kLayers[] = {
    {"resnet50", 1, 3, 224, 64, 7, 2},
    {"resnet50", 1, 64, 56, 64, 1},
    {"resnet50", 3, 64, 56, 64, 3},
    {"resnet50", 4, 64, 56, 256, 1},
    {"resnet50", 2, 256, 56, 64, 1},
    {"resnet50", 1, 256, 56, 128, 1},
    {"resnet50", 1, 128, 56, 128, 3, 2},
    {"resnet50", 4, 128, 28, 512, 1},
    {"resnet50", 1, 256, 56, 512, 1, 2},
    {"resnet50", 3, 512, 28, 128, 1},
    {"resnet50", 3, 128, 28, 128, 3},
    {"resnet50", 1, 512, 28, 256, 1},
    {"resnet50", 1, 256, 28, 256, 3, 2},
    {"resnet50", 6, 256, 14, 1024, 1},
    {"resnet50", 1, 512, 28, 1024, 1, 2},
    {"resnet50", 5, 1024, 14, 256, 1},
    {"resnet50", 5, 256, 14, 256, 3},
    {"resnet50", 1, 1024, 14, 512, 1},
    {"resnet50", 1, 512, 14, 512, 3, 2},
    {"resnet50", 3, 512, 7, 2048, 1},
    {"resnet50", 1, 1024, 14, 2048, 1, 2},
    {"resnet50", 2, 2048, 7, 512, 1},
    {"resnet50", 2, 512, 7, 512, 3},
    {"vgg19", 1, 3, 224, 64, 3},
    {"vgg19", 1, 64, 224, 64, 3},
    {"vgg19", 1, 64, 112, 128, 3},
    {"vgg19", 1, 128, 112, 128, 3},
    {"vgg19", 1, 128, 56, 256, 3},
    {"vgg19", 3, 256, 56, 256, 3},
    {"vgg19", 1, 256, 28, 512, 3},
    {"vgg19", 3, 512, 28, 512, 3},
    {"vgg19", 4, 512, 14, 512, 3},
    {"mobilenet_v2", 1, 3, 224, 32, 3, 2},
    {"mobilenet_v2", 1, 32, 112, 32, 3, 1, 32},
    {"mobilenet_v2", 1, 32, 112, 16, 1},
    {"mobilenet_v2", 1, 16, 112, 96, 1},
    {"mobilenet_v2", 1, 96, 112, 96, 3, 2, 96},
    {"mobilenet_v2", 1, 96, 56, 24, 1},
    {"mobilenet_v2", 2, 24, 56, 144, 1},
    {"mobilenet_v2", 1, 144, 56, 144, 3, 1, 144},
    {"mobilenet_v2", 1, 144, 56, 24, 1},
    {"mobilenet_v2", 1, 144, 56, 144, 3, 2, 144},
    {"mobilenet_v2", 1, 144, 28, 32, 1},
    {"mobilenet_v2", 3, 32, 28, 192, 1},
    {"mobilenet_v2", 2, 192, 28, 192, 3, 1, 192},
    {"mobilenet_v2", 2, 192, 28, 32, 1},
    {"mobilenet_v2", 1, 192, 28, 192, 3, 2, 192},
    {"mobilenet_v2", 1, 192, 14, 64, 1},
    {"mobilenet_v2", 4, 64, 14, 384, 1},
    {"mobilenet_v2", 4, 384, 14, 384, 3, 1, 384},
    {"mobilenet_v2", 3, 384, 14, 64, 1},
    {"mobilenet_v2", 1, 384, 14, 96, 1},
    {"mobilenet_v2", 3, 96, 14, 576, 1},
    {"mobilenet_v2", 2, 576, 14, 576, 3, 1, 576},
    {"mobilenet_v2", 2, 576, 14, 96, 1},
    {"mobilenet_v2", 1, 576, 14, 576, 3, 2, 576},
    {"mobilenet_v2", 1, 576, 7, 160, 1},
    {"mobilenet_v2", 3, 160, 7, 960, 1},
    {"mobilenet_v2", 3, 960, 7, 960, 3, 1, 960},
    {"mobilenet_v2", 2, 960, 7, 160, 1},
    {"mobilenet_v2", 1, 960, 7, 320, 1},
    {"mobilenet_v2", 1, 320, 7, 1280, 1},
    {"shufflenet", 1, 3, 224, 24, 3, 2},
    {"shufflenet", 1, 24, 56, 112, 1, 1, 4},
    {"shufflenet", 1, 112, 56, 112, 3, 2, 112},
    {"shufflenet", 7, 136, 28, 136, 1, 1, 4},
    {"shufflenet", 3, 136, 28, 136, 3, 1, 136},
    {"shufflenet", 15, 272, 14, 272, 1, 1, 4},
    {"shufflenet", 7, 272, 14, 272, 3, 1, 272},
    {"shufflenet", 6, 544, 7, 544, 1, 1, 4},
    {"shufflenet", 3, 544, 7, 544, 3, 1, 544},
    {"regnet_y_400mf", 1, 32, 112, 48, 1},
    {"regnet_y_400mf", 1, 48, 112, 48, 3, 2, 6},
    {"regnet_y_400mf", 1, 48, 56, 104, 1},
    {"regnet_y_400mf", 1, 104, 56, 104, 3, 2, 13},
    {"regnet_y_400mf", 5, 104, 28, 104, 1},
    {"regnet_y_400mf", 2, 104, 28, 104, 3, 1, 13},
    {"regnet_y_400mf", 1, 104, 28, 208, 1},
    {"regnet_y_400mf", 1, 208, 28, 208, 3, 2, 26},
    {"regnet_y_400mf", 11, 208, 14, 208, 1},
    {"regnet_y_400mf", 5, 208, 14, 208, 3, 1, 26},
    {"regnet_y_400mf", 1, 208, 14, 440, 1},
    {"regnet_y_400mf", 1, 440, 14, 440, 3, 2, 55},
    {"regnet_y_400mf", 11, 440, 7, 440, 1},
    {"regnet_y_400mf", 5, 440, 7, 440, 3, 1, 55},
    {"regnet_y_400mf", 5, 440, 1, 110, 1},
    {"regnet_y_400mf", 5, 110, 1, 440, 1},
    {"efficientnet_b0", 1, 144, 56, 144, 5, 2, 144},
    {"efficientnet_b0", 1, 144, 28, 40, 1},
    {"efficientnet_b0", 2, 40, 28, 240, 1},
    {"efficientnet_b0", 1, 240, 28, 240, 5, 1, 240},
    {"efficientnet_b0", 1, 240, 28, 240, 3, 2, 240},
    {"efficientnet_b0", 3, 80, 14, 480, 1},
    {"efficientnet_b0", 2, 480, 14, 480, 3, 1, 480},
    {"efficientnet_b0", 2, 480, 14, 80, 1},
    {"efficientnet_b0", 1, 480, 14, 480, 5, 1, 480},
    {"efficientnet_b0", 3, 112, 14, 672, 1},
    {"efficientnet_b0", 2, 672, 14, 672, 5, 1, 672},
    {"efficientnet_b0", 2, 672, 14, 112, 1},
    {"efficientnet_b0", 1, 672, 14, 672, 5, 2, 672},
    {"efficientnet_b0", 4, 192, 7, 1152, 1},
    {"efficientnet_b0", 3, 1152, 7, 1152, 5, 1, 1152},
    {"efficientnet_b0", 3, 1152, 7, 192, 1},
    {"efficientnet_b0", 4, 1152, 1, 48, 1},
    {"efficientnet_b0", 4, 48, 1, 1152, 1},
    {"squeezenet", 1, 64, 55, 16, 1},
    {"squeezenet", 2, 16, 55, 64, 1},
    {"squeezenet", 2, 16, 55, 64, 3},
    {"squeezenet", 1, 128, 27, 32, 1},
    {"squeezenet", 2, 32, 27, 128, 3},
    {"squeezenet", 2, 48, 13, 192, 3},
    {"squeezenet", 2, 64, 13, 256, 3},
    {"squeezenet", 1, 512, 13, 1000, 1},
    {"densenet121", 6, 128, 56, 32, 3},
    {"densenet121", 3, 160, 56, 128, 1},
    {"densenet121", 12, 128, 28, 32, 3},
    {"densenet121", 6, 256, 28, 128, 1},
    {"densenet121", 6, 416, 28, 128, 1},
    {"densenet121", 24, 128, 14, 32, 3},
    {"densenet121", 12, 416, 14, 128, 1},
    {"densenet121", 12, 800, 14, 128, 1},
    {"densenet121", 16, 128, 7, 32, 3},
    {"densenet121", 16, 768, 7, 128, 1},
    {"inception_v1", 1, 16, 28, 32, 5},
    {"inception_v1", 1, 32, 28, 96, 5},
    {"inception_v1", 3, 24, 14, 64, 5},
    {"inception_v1", 2, 32, 14, 128, 5},
    {"inception_v1", 2, 48, 7, 128, 5},
    {"alexnet", 1, 96, 27, 256, 5, 1, 2},
    {"alexnet", 1, 384, 13, 384, 3, 1, 2},
    {"convnext_tiny", 3, 96, 56, 96, 7, 1, 96},
    {"convnext_tiny", 9, 384, 14, 384, 7, 1, 384},
};

op::Operand operand(op::Dims dims, bool last) {
  op::Operand o;
  o.dims = std::move(dims);
  if (last) o.layout = op::channels_last(o.rank());
  return o;
}

// With a bias and relu. Images come row-major.
op::Problem problem_of(const Layer& l) {
  const auto both = [](int64_t v) { return op::Ints{v, v}; };
  op::Problem p;
  p.op = op::find("conv");
  p.attrs = {{"strides", both(l.S)},
             {"pads_begin", both(l.pad())},
             {"pads_end", both(l.pad())},
             {"groups", l.G}};
  if (l.multiplies != DType::kF32) {
    p.attrs.set("compute", l.multiplies);
    p.attrs.set("compute_forced", int64_t{1});
  }
  p.in = {operand({1, l.C, l.H, l.H}, l.C > 3), operand({l.M, l.C / l.G, l.K, l.K}, false),
          operand({l.M}, false)};
  p.in[1].constant = p.in[2].constant = true;
  p.arity = 3;
  p.result = operand({1, l.M, l.out(), l.out()}, false);
  p.out = {operand(p.result.dims, true)};
  p.steps.push_back({op::find("relu"), {}, {3}, p.result});
  p.results = {4};
  return p;
}

// The same in oneDNN: weights in its layout, activations in the one that it likes best.
class Peer : public bench::OneDnn {
 public:
  explicit Peer(const Layer& l) {
    using namespace dnnl;
    using tag = memory::format_tag;
    const auto f32 = memory::data_type::f32,
               in = l.multiplies == DType::kF32 ? f32 : memory::data_type::bf16;
    const memory::dims weights = l.G > 1 ? memory::dims{l.G, l.M / l.G, l.C / l.G, l.K, l.K}
                                         : memory::dims{l.M, l.C, l.K, l.K};
    post_ops ops;
    ops.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
    primitive_attr attr;
    attr.set_post_ops(ops);
    const convolution_forward::primitive_desc primitive(
        {prop_kind::forward_inference,
         algorithm::convolution_direct,
         {{1, l.C, l.H, l.H}, in, tag::any},
         {weights, in, tag::any},
         {{l.M}, f32, tag::x},
         {{1, l.M, l.out(), l.out()}, f32, tag::any},
         {l.S, l.S},
         {l.pad(), l.pad()},
         {l.pad(), l.pad()}},
        attr, engine_);
    primitive_ = convolution_forward(primitive);
    const std::pair<int, memory::desc> descs[] = {{DNNL_ARG_SRC, primitive.src_desc()},
                                                  {DNNL_ARG_WEIGHTS, primitive.weights_desc()},
                                                  {DNNL_ARG_BIAS, primitive.bias_desc()},
                                                  {DNNL_ARG_DST, primitive.dst_desc()}};
    for (const auto& [arg, desc] : descs) add(arg, desc);
  }
};

void conv(benchmark::State& state, const Layer& layer) {
  bench::Claims claims(problem_of(layer));
  if (claims.empty()) return state.SkipWithError("no claim");
  Peer peer(layer);
  double other = bench::kNever;
  constexpr double kHopeless = 3;
  claims.time();
  for (auto _ : state)
    state.SetIterationTime(bench::seconds([&] {
      bench::time([&] { peer.run(); }, other);
      claims.time(kHopeless * other);
    }));
  const double own = claims.own();
  state.SetLabel(claims.label(other));
  state.counters["us"] = own * 1e6;
  state.counters["ratio"] = own / other;
  state.counters["peak"] = layer.flops() / own / bench::fma_peak();
  state.counters["saved_us"] = (other - own) * 1e6 * layer.count;
}

}  // namespace

void register_layers() {
  for (DType type : {DType::kF32, DType::kBF16})
    for (Layer layer : kLayers) {
      layer.multiplies = type;
      benchmark::RegisterBenchmark(
          fmt::format("{}/{}x{}", layer.network, layer.str(), layer.count).c_str(),
          [layer](benchmark::State& state) { conv(state, layer); })
          ->UseManualTime()
          ->MinTime(0.1)
          ->Unit(benchmark::kMicrosecond);
    }
}

}  // namespace tessera::kernels::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  tessera::kernels::cpu::register_layers();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
