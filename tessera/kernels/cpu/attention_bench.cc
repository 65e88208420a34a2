// Attention of real networks: processor time, the fastest of many. Counters: gflops, of what is not
// hidden; peak: part of the FMA peak measured here; gbs: bytes of all operands per nanosecond.
//
//   build/attention_bench --benchmark_filter=prefill
#include <benchmark/benchmark.h>

#include "tessera/kernels/cpu/bench.h"

namespace tessera::kernels::cpu {
namespace {

struct Shape {
  const char* name;
  int64_t H, K, S, T, E;
  int64_t past = 0;
  bool causal = false;
};

constexpr Shape kShapes[] = {
    {"prefill/12x1024x64", 12, 12, 1024, 1024, 64},
    {"prefill/12x1024x64_causal", 12, 12, 1024, 1024, 64, 0, true},
    {"prefill/12x128x64", 12, 12, 128, 128, 64},
    {"prefill/12x197x64", 12, 12, 197, 197, 64},
    {"prefill/192x49x32", 192, 192, 49, 49, 32},
    {"prefill/16_4x512x128_causal", 16, 4, 512, 512, 128, 0, true},
    {"decode/12x1x64_past64", 12, 12, 1, 1, 64, 64},
    {"decode/12x1x64_past1024", 12, 12, 1, 1, 64, 1024},
    {"decode/12x1x64_past16384", 12, 12, 1, 1, 64, 16384},
    {"decode/32_8x1x128_past4096", 32, 8, 1, 1, 128, 4096},
};

op::Operand operand(op::Dims dims) {
  op::Operand o;
  o.dims = std::move(dims);
  return o;
}

// With a past, present keys and values are results.
op::Problem problem_of(const Shape& s) {
  op::Problem p;
  p.op = op::find("attention");
  p.attrs.set("causal", int64_t{s.causal});
  p.in = {operand({1, s.H, s.S, s.E}), operand({1, s.K, s.T, s.E}), operand({1, s.K, s.T, s.E})};
  p.out = {operand({1, s.H, s.S, s.E})};
  if (s.past == 0) return p;
  p.in.emplace_back().present = false;
  for (int i = 0; i < 2; ++i) {
    p.in.push_back(operand({1, s.K, s.past, s.E}));
    p.out.push_back(operand({1, s.K, s.past + s.T, s.E}));
  }
  return p;
}

void attention(benchmark::State& state, const Shape& s) {
  const op::Problem problem = problem_of(s);
  const op::Claim claim = table().probe(problem)[0];
  if (!claim.supported()) return state.SkipWithError(claim.refusal.c_str());
  bench::Kernel kernel(problem, claim);
  double best = 1e9;
  for (auto _ : state) bench::time([&] { kernel.run(); }, best);
  const double keys = static_cast<double>(s.past + s.T),
               seen = s.causal ? keys - static_cast<double>(s.S - 1) / 2 : keys;
  const double gflops = 4e-9 * static_cast<double>(s.H * s.S * s.E) * seen / best;
  state.counters["us"] = best * 1e6;
  state.counters["gflops"] = gflops;
  state.counters["peak"] = gflops * 1e9 / bench::fma_peak();
  state.counters["gbs"] = 4e-9 * static_cast<double>(s.E) *
                          (2 * static_cast<double>(s.H * s.S) +
                           static_cast<double>(2 * s.K) * (s.past > 0 ? 2 * keys : keys)) /
                          best;
}

const bool kRegistered = [] {
  for (const Shape& s : kShapes)
    benchmark::RegisterBenchmark(s.name, [&s](benchmark::State& state) {
      attention(state, s);
    })->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace tessera::kernels::cpu

BENCHMARK_MAIN();
