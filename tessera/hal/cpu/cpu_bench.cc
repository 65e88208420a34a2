// What the HAL costs on the cpu backend. The design's budgets: an in-order launch at most 1 us, an
// allocator hit at most 1 us, a submission that waits at most 5 us.
//
//   cmake --build build --target tessera_hal_cpu_bench && build/tessera_hal_cpu_bench
#include <benchmark/benchmark.h>

#include "tessera/hal/allocator.h"
#include "tessera/hal/cpu/backend.h"
#include "tessera/hal/device.h"

namespace tessera::hal::cpu {
namespace {

void nothing(const tessera_launch*, uint32_t, uint32_t) {}
constexpr HostFunction kFunctions[] = {{"nothing", nothing}};

// The argument of each benchmark is the number of threads.
struct Machine {
  explicit Machine(const benchmark::State& state) : registry({{"cpu", plugin_main, ""}}) {
    device = *registry.open("cpu", {{"threads", std::to_string(state.range(0))}});
    executable = *device->load(kFunctions);
  }
  Registry registry;
  std::unique_ptr<Device> device;
  Executable executable;
};

void in_order_launch(benchmark::State& state) {
  Machine machine(state);
  Queue queue = *machine.device->queue({.run_on_submit = true});
  const Timeline done = *machine.device->timeline();
  uint64_t value = 0;
  for (auto _ : state) {
    ++value;
    benchmark::DoNotOptimize(queue.submit({launch({.executable = &machine.executable})},
                                          {done.at(value - 1)}, {done.at(value)}));
  }
}

void waiting_submission(benchmark::State& state) {
  Machine machine(state);
  Queue queue = *machine.device->queue();
  Timeline gate = *machine.device->timeline();
  const Timeline done = *machine.device->timeline();
  uint64_t value = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(queue.submit({launch({.executable = &machine.executable})},
                                          {gate.at(1)}, {done.at(++value)}));
  if (!gate.signal(1) || !done.wait(value)) state.SkipWithError("the submissions did not finish");
}

void allocator_hit(benchmark::State& state) {
  Machine machine(state);
  Allocator allocator(*machine.device);
  for (auto _ : state) benchmark::DoNotOptimize(allocator.allocate(Bytes(4096)));
}

BENCHMARK(in_order_launch)->Arg(1)->Arg(2);
BENCHMARK(waiting_submission)->Arg(1)->Arg(2)->Iterations(10000);
BENCHMARK(allocator_hit)->Arg(1);

}  // namespace
}  // namespace tessera::hal::cpu

BENCHMARK_MAIN();
