// Groups of operators as networks have them: code made for the group beside the kernel that would
// run it else. One process, one thread, the two in turn, the fastest of each. Counters: us, of the
// compiled group; ratio, to the kernel's time; ratio_said, the same by their claims.
//
//   build/codegen_bench --benchmark_filter=gelu
#include <benchmark/benchmark.h>

#include "tessera/runtime/measure.h"
#include "tessera/session/machine.h"

namespace tessera::session {
namespace {

using op::Dims;
using op::Operand;
using op::Problem;

Operand operand(Dims dims, DType dtype = DType::kF32) {
  Operand o;
  o.dims = std::move(dims);
  o.dtype = dtype;
  return o;
}

// name(inputs) of input 0's shape;
struct Group {
  Problem problem;

  Group(std::string_view name, std::vector<Operand> in, op::Attrs attrs = {}) {
    problem.op = op::find(name);
    problem.attrs = std::move(attrs);
    problem.out = {in[0]};
    problem.in = std::move(in);
  }
  Group& then(std::string_view name, std::optional<Operand> other = {}) {
    Problem& p = problem;
    if (!p.fused()) {
      p.arity = p.in.size();
      p.result = p.out[0];
    }
    const auto inputs = static_cast<int>(p.in.size());
    int last = inputs + static_cast<int>(p.steps.size());
    std::vector<int> in{last};
    if (other) {
      for (op::Step& s : p.steps)
        for (int& v : s.in) v += v >= inputs;
      p.in.push_back(*other);
      in = {++last, inputs};
    }
    p.steps.push_back({op::find(name), {}, in, p.out[0]});
    p.results = {last + 1};
    return *this;
  }
};

struct Case {
  std::string name;
  Group group;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto rows = [](int64_t m, int64_t n) { return operand({m, n}); };
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{49, 960}, {784, 192}, {3136, 96}}) {
    const std::string size = fmt::format("_{}x{}", m, n);
    list.push_back({"add" + size, Group("add", {rows(m, n), rows(m, n)})});
    list.push_back({"scale_residual" + size,
                    Group("mul", {rows(m, n), operand({n})}).then("add", rows(m, n))});
    list.push_back({"bias_gelu" + size, Group("add", {rows(m, n), operand({n})}).then("gelu")});
    list.push_back(
        {"hard_swish_mul" + size, Group("hard_swish", {rows(m, n)}).then("mul", operand({n}))});
    list.push_back({"silu_residual" + size, Group("silu", {rows(m, n)}).then("add", rows(m, n))});
    list.push_back({"long_chain" + size, Group("add", {rows(m, n), operand({n})})
                                             .then("tanh")
                                             .then("mul", rows(m, n))
                                             .then("sigmoid")
                                             .then("add", operand({m, 1}))
                                             .then("max", operand({1}))
                                             .then("mul", rows(m, n))
                                             .then("erf")
                                             .then("add", rows(m, n))
                                             .then("sub", operand({n}))});
  }
  const Operand scores = operand({64, 3, 49, 49});
  list.push_back(
      {"window_bias_mask",
       Group("add", {scores, operand({3, 49, 49})}).then("add", operand({64, 1, 49, 49}))});
  list.push_back({"softmax_49", Group("softmax", {scores}, {{"axis", int64_t{-1}}})});
  list.push_back({"softmax_mask_49",
                  Group("softmax", {scores}, {{"axis", int64_t{-1}}}).then("mul", operand({49}))});
  list.push_back({"norm_residual_197x768",
                  Group("layer_norm", {rows(197, 768), operand({768}), operand({768})},
                        {{"axis", int64_t{-1}}})
                      .then("add", rows(197, 768))});
  return list;
}

const op::Claim* best(const std::vector<op::Claim>& claims) {
  const op::Claim* found = nullptr;
  for (const op::Claim& c : claims)
    if (c.supported() && (!found || c.cost < found->cost)) found = &c;
  return found;
}

void run(benchmark::State& state, const Machine& machine, const Problem& p) {
  const op::ClaimSource* kernels = machine.runtime.sources.front();
  const std::vector<op::Claim> theirs = kernels->probe(p), ours = machine.generated->probe(p);
  const op::Claim *kernel = best(theirs), *compiled = best(ours);
  if (!compiled) return state.SkipWithError(ours[0].refusal.c_str());
  double least = 1e9, rival = 1e9;
  for (auto _ : state)
    for (int turn = 0; turn < 5; ++turn) {
      const auto time = [&](const op::ClaimSource& source, const op::Claim& claim,
                            double& best_so_far) {
        const auto s = runtime::measure(machine.runtime, source, p, claim, Seconds(0.02));
        if (s) best_so_far = std::min(best_so_far, s->value);
      };
      time(*machine.generated, *compiled, least);
      if (kernel) time(*kernels, *kernel, rival);
    }
  state.counters["us"] = least * 1e6;
  if (!kernel) return;
  state.counters["ratio"] = least / rival;
  state.counters["ratio_said"] =
      static_cast<double>(compiled->cost.value) / static_cast<double>(kernel->cost.value);
}

}  // namespace
}  // namespace tessera::session

int main(int argc, char** argv) {
  using namespace tessera;
  using namespace tessera::session;
  benchmark::Initialize(&argc, argv);
  const auto machine =
      Machine::open("cpu", 1, Bytes(int64_t{4} << 30), "", "own", codegen::mlir::Mode::kAlways);
  if (!machine) return 1;
  for (const Case& c : cases())
    benchmark::RegisterBenchmark(c.name.c_str(),
                                 [&machine, problem = c.group.problem](benchmark::State& state) {
                                   run(state, **machine, problem);
                                 })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
