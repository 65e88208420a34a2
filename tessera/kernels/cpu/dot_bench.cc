// Matrix products of real networks beside oneDNN's and OpenBLAS's: one process, one thread, all in
// turn, the fastest of each. Weights are packed before, by oneDNN too, and come from memory unless
// the network is "square"; OpenBLAS takes them as they are, and no steps behind the product.
// Counters: us, of the cheapest claim; ratio: to the faster rival; onednn, openblas: to each
// (openblas 0: not installed); peak: part of the FMA peak measured here; gbs: bytes of all operands
// per nanosecond. The label lists all claims: ratio to the faster rival.
//
// Products with weights are there in bf16, too (forced): oneDNN then reads a in bf16, which we
// round on the way, and OpenBLAS has none.
//
//   OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 build/dot_bench --benchmark_filter=bert
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include "tessera/kernels/cpu/onednn_bench.h"

namespace tessera::kernels::cpu {
namespace {

enum Right { kWeights, kWeightsT, kValues, kValuesT };  // T: stored (N, K)
enum Behind { kNothing, kBias, kBiasGelu, kBiasResidual };

// B products of (M, K) by (K, N).
struct Shape {
  const char* network;
  int64_t B, M, K, N;
  Right right = kWeights;
  Behind behind = kNothing;
  int64_t joint = 0;  // floats of a token, if b (and a of a product with its transpose) are heads
                      // of a joint projection
  DType multiplies = DType::kF32;

  int64_t a_row() const { return joint > 0 && right == kValuesT ? joint : K; }
  int64_t a_batch() const { return a_row() == K ? M * K : K; }
  int64_t b_row() const { return joint > 0 ? joint : transposed() ? K : N; }
  int64_t b_batch() const { return joint > 0 ? (transposed() ? K : N) : K * N; }
  int64_t a_size() const { return a_row() == K ? B * M * K : M * joint; }
  int64_t b_size() const { return joint > 0 ? (transposed() ? N : K) * joint : B * K * N; }
  bool weights() const { return right == kWeights || right == kWeightsT; }
  bool transposed() const { return right == kWeightsT || right == kValuesT; }
  // Copies of the weights: together they are larger than any cache, as those of a network are.
  int64_t copies() const {
    constexpr int64_t kFar = int64_t{96} << 20;
    return weights() && std::string_view(network) != "square" ? kFar / (4 * K * N) + 1 : 1;
  }
  double flops() const { return 2.0 * static_cast<double>(B * M * K * N); }
  double bytes() const { return 4.0 * static_cast<double>(B * (M * K + K * N + M * N)); }
  std::string str() const {
    constexpr const char* kRight[] = {"w", "wt", "v", "vt"};
    constexpr const char* kBehind[] = {"", "_bias", "_bias_gelu", "_bias_residual"};
    return fmt::format("dot_{}_{}m{}k{}n{}_{}{}{}", name_of(multiplies),
                       B > 1 ? fmt::format("b{}", B) : "", M, K, N, kRight[right], kBehind[behind],
                       joint > 0 ? "_heads" : "");
  }
};

constexpr Shape kShapes[] = {
    {"square", 1, 512, 512, 512},
    {"square", 1, 1024, 1024, 1024},
    {"square", 1, 2048, 2048, 2048},
    {"square", 1, 512, 512, 512, kValues},
    {"square", 1, 1024, 1024, 1024, kValues},
    {"square", 1, 2048, 2048, 2048, kValues},
    {"square", 1, 512, 512, 512, kValuesT},
    {"square", 1, 1024, 1024, 1024, kValuesT},
    {"square", 1, 2048, 2048, 2048, kValuesT},
    {"bert_base", 1, 128, 768, 768, kWeights, kBias},
    {"bert_base", 1, 128, 768, 2304, kWeights, kBias},
    {"bert_base", 1, 128, 768, 3072, kWeights, kBiasGelu},
    {"bert_base", 1, 128, 3072, 768, kWeights, kBiasResidual},
    {"bert_base", 12, 128, 64, 128, kValuesT},
    {"bert_base", 12, 128, 128, 64, kValues},
    {"bert_base", 12, 128, 64, 128, kValuesT, kNothing, 2304},
    {"bert_base", 12, 128, 128, 64, kValues, kNothing, 2304},
    {"minilm", 1, 128, 384, 384, kWeights, kBias},
    {"minilm", 1, 128, 384, 1536, kWeights, kBiasGelu},
    {"minilm", 1, 128, 1536, 384, kWeights, kBiasResidual},
    {"minilm", 12, 128, 32, 128, kValuesT},
    {"minilm", 12, 128, 128, 32, kValues},
    {"vit_b_16", 1, 197, 768, 768, kWeightsT, kBias},
    {"vit_b_16", 1, 197, 768, 2304, kWeightsT, kBias},
    {"vit_b_16", 1, 197, 768, 3072, kWeightsT, kBiasGelu},
    {"vit_b_16", 1, 197, 3072, 768, kWeightsT, kBiasResidual},
    {"vit_b_16", 12, 197, 64, 197, kValuesT},
    {"vit_b_16", 12, 197, 197, 64, kValues},
    {"vit_b_16", 12, 197, 64, 197, kValuesT, kNothing, 2304},
    {"vit_b_16", 12, 197, 197, 64, kValues, kNothing, 2304},
    {"swin_t", 1, 3136, 96, 288, kWeightsT, kBias},
    {"swin_t", 1, 3136, 96, 384, kWeightsT, kBiasGelu},
    {"swin_t", 1, 3136, 384, 96, kWeightsT, kBiasResidual},
    {"swin_t", 1, 784, 192, 576, kWeightsT, kBias},
    {"swin_t", 1, 196, 384, 1536, kWeightsT, kBiasGelu},
    {"swin_t", 1, 49, 768, 3072, kWeightsT, kBiasGelu},
    {"swin_t", 192, 49, 32, 49, kValuesT},
    {"swin_t", 192, 49, 49, 32, kValues},
    {"convnext_tiny", 1, 3136, 96, 384, kWeights, kBiasGelu},
    {"convnext_tiny", 1, 196, 1536, 384, kWeights, kBias},
    {"gpt2", 1, 64, 768, 50257},
    {"gpt2", 1, 8, 768, 50257},
    {"gpt2", 1, 1, 768, 50257},
    {"gpt2", 1, 1, 768, 2304, kWeights, kBias},
    {"gpt2", 1, 1, 3072, 768, kWeights, kBiasResidual},
    {"gpt2", 12, 1, 64, 512, kValuesT},
    {"gpt2", 12, 1, 512, 64, kValues},
    {"gpt2", 12, 512, 64, 512, kValuesT},
    {"gpt2", 12, 512, 512, 64, kValues},
    {"gpt2", 12, 512, 64, 512, kValuesT, kNothing, 768},
    {"gpt2", 12, 512, 512, 64, kValues, kNothing, 768},
    {"gpt2", 12, 1, 64, 512, kValuesT, kNothing, 768},
    {"gpt2", 12, 1, 512, 64, kValues, kNothing, 768},
    {"llama_150m", 1, 64, 768, 2048},
    {"llama_150m", 1, 1, 768, 2048},
    {"alexnet", 1, 1, 9216, 4096, kWeightsT, kBias},
    {"vgg19", 1, 1, 25088, 4096, kWeightsT, kBias},
    {"resnet50", 1, 1, 2048, 1000, kWeightsT, kBias},
    {"odd", 1, 2, 1000, 1000},
    {"odd", 1, 4, 999, 1001},
    {"odd", 1, 17, 333, 555, kWeights, kBias},
    {"odd", 1, 31, 500, 77},
    {"odd", 1, 100, 100, 100},
    {"odd", 1, 100, 100, 100, kValues},
    {"odd", 1, 256, 256, 10},
    {"odd", 1, 4096, 256, 1},
    {"odd", 1, 4, 800, 800, kValues},
    {"odd", 1, 16, 800, 800, kValues},
    {"odd", 1, 4, 800, 800, kValuesT},
    {"odd", 1, 16, 800, 800, kValuesT},
};

op::Operand operand(op::Dims dims, bool constant = false) {
  op::Operand o;
  o.dims = std::move(dims);
  o.constant = constant;
  return o;
}

op::Problem problem_of(const Shape& s) {
  auto dims = [&](int64_t rows, int64_t cols) {
    return s.B > 1 ? op::Dims{s.B, rows, cols} : op::Dims{rows, cols};
  };
  op::Problem p;
  p.op = op::find("dot");
  if (s.transposed()) p.attrs.set("transpose_b", int64_t{1});
  if (s.multiplies != DType::kF32) {
    p.attrs.set("compute", s.multiplies);
    p.attrs.set("compute_forced", int64_t{1});
  }
  p.in = {operand(dims(s.M, s.K)),
          operand(s.transposed() ? dims(s.N, s.K) : dims(s.K, s.N), s.weights())};
  p.out = {operand(dims(s.M, s.N))};
  if (s.a_row() != s.K) p.in[0].strides = {s.a_batch(), s.a_row(), 1};
  if (s.joint > 0) p.in[1].strides = {s.b_batch(), s.b_row(), 1};
  if (s.behind == kNothing) return p;
  p.arity = 2;
  p.result = p.out[0];
  p.in.push_back(operand({s.N}, true));
  if (s.behind == kBiasResidual) p.in.push_back(p.result);
  const int first = static_cast<int>(p.in.size());
  p.steps.push_back({op::find("add"), {}, {first, 2}, p.result});
  if (s.behind == kBiasGelu) p.steps.push_back({op::find("gelu"), {}, {first + 1}, p.result});
  if (s.behind == kBiasResidual) p.steps.push_back({op::find("add"), {}, {first + 1, 3}, p.result});
  p.results = {first + static_cast<int>(p.steps.size())};
  return p;
}

// The same in oneDNN: weights in the layout that it likes best.
class Peer : public bench::OneDnn {
 public:
  explicit Peer(const Shape& s) {
    using namespace dnnl;
    const auto f32 = memory::data_type::f32,
               in = s.multiplies == DType::kF32 ? f32 : memory::data_type::bf16;
    auto desc = [&](int64_t rows, int64_t cols, bool transposed, memory::data_type type) {
      const int64_t row = transposed ? 1 : cols, col = transposed ? rows : 1;
      return s.B > 1 ? memory::desc({s.B, rows, cols}, type, {rows * cols, row, col})
                     : memory::desc({rows, cols}, type, {row, col});
    };
    memory::desc a = desc(s.M, s.K, false, in);
    if (s.a_row() != s.K) a = memory::desc({s.B, s.M, s.K}, in, {s.a_batch(), s.a_row(), 1});
    const int64_t b_row = s.transposed() ? 1 : s.joint, b_col = s.transposed() ? s.joint : 1;
    const memory::desc y = desc(s.M, s.N, false, f32),
                       b = s.joint > 0
                               ? memory::desc({s.B, s.K, s.N}, in, {s.b_batch(), b_row, b_col})
                           : s.weights() ? memory::desc({s.K, s.N}, in, memory::format_tag::any)
                                         : desc(s.K, s.N, s.transposed(), in),
                       bias({1, s.N}, f32, memory::format_tag::ab);
    post_ops ops;
    if (s.behind == kBiasGelu) ops.append_eltwise(1.0f, algorithm::eltwise_gelu_erf, 0.0f, 0.0f);
    if (s.behind == kBiasResidual) ops.append_binary(algorithm::binary_add, y);
    primitive_attr attr;
    attr.set_post_ops(ops);
    const matmul::primitive_desc primitive(
        s.behind == kNothing ? matmul::desc(a, b, y) : matmul::desc(a, b, bias, y), attr, engine_);
    primitive_ = matmul(primitive);
    add(DNNL_ARG_SRC, primitive.src_desc());
    for (int64_t i = s.copies(); i > 0; --i) {
      add(DNNL_ARG_WEIGHTS, primitive.weights_desc());
      weights_.push_back(arguments_.at(DNNL_ARG_WEIGHTS));
      if (i > 1) arguments_.erase(DNNL_ARG_WEIGHTS);
    }
    add(DNNL_ARG_DST, primitive.dst_desc());
    if (s.behind != kNothing) add(DNNL_ARG_BIAS, bias);
    if (s.behind == kBiasResidual) add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, y);
  }
  void run() {
    arguments_.at(DNNL_ARG_WEIGHTS) = weights_[turn_++ % weights_.size()];
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  std::vector<dnnl::memory> weights_;
  size_t turn_ = 0;
};

class OpenBlas {
 public:
  explicit OpenBlas(const Shape& s)
      : s_(s),
        a_(bench::buffer(s.a_size() * 4)),
        b_(bench::buffer(s.copies() * s.b_size() * 4)),
        y_(bench::buffer(s.B * s.M * s.N * 4)) {}
  bool there() const { return s_.multiplies == DType::kF32 && sgemm() != nullptr; }
  void run() {
    constexpr int kRowMajor = 101, kNo = 111, kTranspose = 112;
    const int M = static_cast<int>(s_.M), N = static_cast<int>(s_.N), K = static_cast<int>(s_.K);
    auto at = [](const bench::Buffer& b, int64_t i) {
      return reinterpret_cast<float*>(b.get()) + i;
    };
    const int64_t copy = turn_++ % s_.copies() * s_.b_size();
    for (int64_t i = 0; i < s_.B; ++i)
      sgemm()(kRowMajor, kNo, s_.transposed() ? kTranspose : kNo, M, N, K, 1.0f,
              at(a_, i * s_.a_batch()), static_cast<int>(s_.a_row()),
              at(b_, copy + i * s_.b_batch()), static_cast<int>(s_.b_row()), 0.0f,
              at(y_, i * s_.M * s_.N), N);
  }

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  static Sgemm sgemm() {
    static const Sgemm function = [] {
      void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
      return library ? reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm")) : nullptr;
    }();
    return function;
  }

  Shape s_;
  int64_t turn_ = 0;
  bench::Buffer a_, b_, y_;
};

void dot(benchmark::State& state, const Shape& shape) {
  bench::Claims claims(problem_of(shape), shape.copies());
  if (claims.empty()) return state.SkipWithError("no claim");
  Peer onednn(shape);
  OpenBlas openblas(shape);
  double one = bench::kNever, blas = bench::kNever;
  for (auto _ : state)
    state.SetIterationTime(bench::seconds([&] {
      bench::time([&] { onednn.run(); }, one);
      if (openblas.there()) bench::time([&] { openblas.run(); }, blas);
      claims.time();
    }));
  const double other = std::min(one, blas), own = claims.own();
  state.SetLabel(claims.label(other));
  state.counters["us"] = own * 1e6;
  state.counters["ratio"] = own / other;
  state.counters["onednn"] = own / one;
  state.counters["openblas"] = own / blas;
  state.counters["peak"] = shape.flops() / own / bench::fma_peak();
  state.counters["gbs"] = shape.bytes() / own * 1e-9;
}

}  // namespace

void register_shapes() {
  for (DType type : {DType::kF32, DType::kBF16})
    for (Shape shape : kShapes) {
      if (type != DType::kF32 && !shape.weights()) continue;
      shape.multiplies = type;
      benchmark::RegisterBenchmark(fmt::format("{}/{}", shape.network, shape.str()).c_str(),
                                   [shape](benchmark::State& state) { dot(state, shape); })
          ->UseManualTime()
          ->MinTime(0.2)
          ->Unit(benchmark::kMicrosecond);
    }
}

}  // namespace tessera::kernels::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  tessera::kernels::cpu::register_shapes();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
