// Element-wise functions, chains of them and kernels on rows, beside oneDNN where it has the
// primitive, else beside the same operators launched one by one: one process, one thread, the two
// in turn, the fastest of each. Counters: us; ratio, to the rival's time; memcpy, the part of
// memcpy's speed, measured in the same turns, at which inputs are read and outputs written.
//
//   OMP_NUM_THREADS=1 build/elementwise_bench --benchmark_filter=gelu
#include <benchmark/benchmark.h>

#include <functional>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include "tessera/kernels/cpu/bench.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu {
namespace {

using bench::Kernel;
using op::Dims;

op::Operand operand(Dims dims, bool last = false) {
  op::Operand o;
  o.dims = std::move(dims);
  if (last) o.layout = op::channels_last(o.rank());
  return o;
}

op::Problem single(std::string_view name, std::vector<op::Operand> in, op::Operand out,
                   op::Attrs attrs = {}) {
  op::Problem p;
  p.op = op::find(name);
  p.attrs = std::move(attrs);
  p.in = std::move(in);
  p.out = {std::move(out)};
  return p;
}

// Appends a step that reads the last result and, if given, another input.
void append(op::Problem& p, std::string_view name, std::optional<op::Operand> other = {}) {
  if (!p.fused()) {
    p.arity = p.in.size();
    p.result = p.out[0];
  }
  int last = static_cast<int>(p.in.size() + p.steps.size());
  if (other) {
    // Values of the group move up by one input.
    for (op::Step& s : p.steps)
      for (int& v : s.in)
        if (v >= static_cast<int>(p.in.size())) ++v;
    p.in.push_back(*other);
    ++last;
  }
  p.steps.push_back({op::find(name), {}, {last}, p.out[0]});
  if (other) p.steps.back().in.push_back(static_cast<int>(p.in.size()) - 1);
  p.results = {last + 1};
}

struct Case {
  std::string name;
  op::Problem problem;
  std::vector<op::Problem> apart = {};  // the rival: the same one by one
  std::function<void(const dnnl::engine&, dnnl::stream&, std::function<void()>&,
                     std::vector<dnnl::memory>&)>
      peer = {};
};

double bytes_of(const op::Problem& p) {
  double sum = 0;
  for (const op::Operand& o : p.in) sum += static_cast<double>(o.count()) * bits_of(o.dtype) / 8;
  for (const op::Operand& o : p.out) sum += static_cast<double>(o.count()) * bits_of(o.dtype) / 8;
  return sum;
}

using dnnl::algorithm;
using dnnl::memory;
using tag = memory::format_tag;

memory::desc flat(int64_t rows, int64_t cols) {
  return {{rows, cols}, memory::data_type::f32, tag::ab};
}

// A forward primitive of one source and one destination.
template <class Primitive, class Desc>
auto peer_of(Desc desc, memory::desc shape) {
  return [=](const dnnl::engine& engine, dnnl::stream& stream, std::function<void()>& run,
             std::vector<memory>& held) {
    const typename Primitive::primitive_desc pd(desc, engine);
    held = {memory(shape, engine), memory(shape, engine)};
    std::unordered_map<int, memory> args{{DNNL_ARG_SRC, held[0]}, {DNNL_ARG_DST, held[1]}};
    run = [primitive = Primitive(pd), args, &stream] {
      primitive.execute(stream, args);
      stream.wait();
    };
  };
}

Case function(const char* name, algorithm kind, float alpha, float beta, int64_t rows,
              int64_t cols) {
  const auto shape = flat(rows, cols);
  return {
      fmt::format("{}_{}x{}", name, rows, cols),
      single(name, {operand({rows, cols})}, operand({rows, cols})),
      {},
      peer_of<dnnl::eltwise_forward>(
          dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_inference, kind, shape, alpha, beta),
          shape)};
}

Case softmax(int64_t rows, int64_t cols) {
  const auto shape = flat(rows, cols);
  return {fmt::format("softmax_{}x{}", rows, cols),
          single("softmax", {operand({rows, cols})}, operand({rows, cols})),
          {},
          peer_of<dnnl::softmax_forward>(
              dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, shape, 1), shape)};
}

Case layer_norm(int64_t rows, int64_t cols) {
  const auto shape = flat(rows, cols);
  Case c{fmt::format("layer_norm_{}x{}", rows, cols),
         single("layer_norm", {operand({rows, cols}), operand({cols}), operand({cols})},
                operand({rows, cols}))};
  c.peer = [=](const dnnl::engine& engine, dnnl::stream& stream, std::function<void()>& run,
               std::vector<memory>& held) {
    const dnnl::layer_normalization_forward::desc desc(
        dnnl::prop_kind::forward_inference, shape, 1e-5f,
        dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift);
    const dnnl::layer_normalization_forward::primitive_desc pd(desc, engine);
    const memory::desc row{{cols}, memory::data_type::f32, tag::a};
    held = {memory(shape, engine), memory(shape, engine), memory(row, engine), memory(row, engine)};
    std::unordered_map<int, memory> args{{DNNL_ARG_SRC, held[0]},
                                         {DNNL_ARG_DST, held[1]},
                                         {DNNL_ARG_SCALE, held[2]},
                                         {DNNL_ARG_SHIFT, held[3]}};
    run = [primitive = dnnl::layer_normalization_forward(pd), args, &stream] {
      primitive.execute(stream, args);
      stream.wait();
    };
  };
  return c;
}

Case lrn(int64_t channels, int64_t size) {
  const memory::desc shape{{1, channels, size, size}, memory::data_type::f32, tag::nhwc};
  const auto x = operand({1, channels, size, size}, true);
  return {fmt::format("lrn_c{}h{}", channels, size),
          single("lrn", {x}, x, {{"size", int64_t{5}}, {"alpha", 1e-4}, {"beta", 0.75}}),
          {},
          peer_of<dnnl::lrn_forward>(
              dnnl::lrn_forward::desc(dnnl::prop_kind::forward_inference,
                                      algorithm::lrn_across_channels, shape, 5, 1e-4f, 0.75f, 1.0f),
              shape)};
}

// Each chain, and its operators one by one.
Case chain(std::string name, op::Problem anchor,
           const std::vector<std::pair<const char*, std::optional<op::Operand>>>& steps) {
  Case c{std::move(name), anchor, {anchor}};
  for (const auto& [step, other] : steps) {
    append(c.problem, step, other);
    std::vector<op::Operand> in{anchor.out[0]};
    if (other) in.push_back(*other);
    c.apart.push_back(single(step, std::move(in), anchor.out[0]));
  }
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  struct Function {
    const char* name;
    algorithm kind;
    float alpha, beta;
  };
  for (const Function& f : {Function{"relu", algorithm::eltwise_relu, 0, 0},
                            {"exp", algorithm::eltwise_exp, 0, 0},
                            {"log", algorithm::eltwise_log, 0, 0},
                            {"tanh", algorithm::eltwise_tanh, 0, 0},
                            {"sigmoid", algorithm::eltwise_logistic, 0, 0},
                            {"silu", algorithm::eltwise_swish, 1, 0},
                            {"gelu", algorithm::eltwise_gelu_erf, 0, 0},
                            {"hard_swish", algorithm::eltwise_hardswish, 0, 0},
                            {"elu", algorithm::eltwise_elu, 1, 0},
                            {"softplus", algorithm::eltwise_soft_relu, 0, 0},
                            {"mish", algorithm::eltwise_mish, 0, 0},
                            {"sqrt", algorithm::eltwise_sqrt, 0, 0}})
    for (int64_t rows : {4, 197})
      list.push_back(function(f.name, f.kind, f.alpha, f.beta, rows, 3072));
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{12 * 197, 197},
                            {64 * 3 * 49, 49},
                            {12 * 128, 128},
                            {1, 50257},
                            {1, 1000}})
    list.push_back(softmax(rows, cols));
  for (auto [rows, cols] :
       {std::pair<int64_t, int64_t>{197, 768}, {3136, 96}, {128, 384}, {1, 768}, {49, 768}})
    list.push_back(layer_norm(rows, cols));
  list.push_back(lrn(96, 55));
  list.push_back(lrn(192, 28));
  const Dims map{1, 64, 56, 56}, deep{1, 960, 7, 7};
  for (bool last : {false, true}) {
    const char* kind = last ? "last" : "first";
    list.push_back(
        chain(fmt::format("add_relu_{}", kind),
              single("add", {operand(map, last), operand(map, last)}, operand(map, last)),
              {{"relu", {}}}));
    list.push_back(
        chain(fmt::format("scale_shift_relu_{}", kind),
              single("mul", {operand(map, last), operand({1, 64, 1, 1}, last)}, operand(map, last)),
              {{"add", operand({1, 64, 1, 1}, last)}, {"relu", {}}}));
    list.push_back(chain(
        fmt::format("gate_{}", kind),
        single("mul", {operand(deep, last), operand({1, 960, 1, 1}, last)}, operand(deep, last)),
        {{"hard_swish", {}}}));
  }
  const Dims hidden{128, 2048};
  list.push_back(
      chain("gelu_spelled_out", single("mul", {operand(hidden), operand({})}, operand(hidden)),
            {{"erf", {}}, {"add", operand({})}, {"mul", operand(hidden)}, {"mul", operand({})}}));
  list.push_back(chain("residual_scale",
                       single("mul", {operand({3136, 96}), operand({96})}, operand({3136, 96})),
                       {{"add", operand({3136, 96})}}));
  return list;
}

void run(benchmark::State& state, const Case& c) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::function<void()> rival = [] {};
  std::vector<memory> held;
  const auto claims = table().probe(c.problem);
  const op::Claim* claim = cheapest(claims);
  if (!claim) return state.SkipWithError("no claim");
  Kernel kernel(c.problem, *claim);
  std::vector<std::unique_ptr<Kernel>> apart;
  for (const op::Problem& p : c.apart) {
    const auto own = table().probe(p);
    apart.push_back(std::make_unique<Kernel>(p, *cheapest(own)));
  }
  if (c.peer) {
    c.peer(engine, stream, rival, held);
    for (memory& m : held) {
      auto* data = static_cast<float*>(m.get_data_handle());
      for (size_t i = 0; i < m.get_desc().get_size() / 4; ++i)
        data[i] = 0.01f * static_cast<float>(i % 17);
    }
  } else {
    rival = [&] {
      for (auto& k : apart) k->run();
    };
  }
  const double bytes = bytes_of(c.problem);
  const auto half = static_cast<size_t>(bytes / 2);
  const bench::Buffer from = bench::buffer(static_cast<int64_t>(half)),
                      to = bench::buffer(static_cast<int64_t>(half));
  double own = 1e9, other = 1e9, copy = 1e9;
  for (auto _ : state)
    state.SetIterationTime(bench::seconds([&] {
      bench::time([&] { kernel.run(); }, own);
      bench::time(rival, other);
      bench::time([&] { std::memcpy(to.get(), from.get(), half); }, copy);
    }));
  state.counters["us"] = own * 1e6;
  state.counters["ratio"] = own / other;
  state.counters["memcpy"] = copy / own;
}

}  // namespace
}  // namespace tessera::kernels::cpu

int main(int argc, char** argv) {
  for (auto& c : tessera::kernels::cpu::cases())
    benchmark::RegisterBenchmark(c.name.c_str(), [c](benchmark::State& s) {
      tessera::kernels::cpu::run(s, c);
    })->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
