// Speed of matrix units' arithmetic, on one core: numerics_bench [--benchmark_filter=ascend].
#include <random>

#include <benchmark/benchmark.h>

#include "tessera/chip/catalog.h"
#include "tessera/hal/sim/numerics.h"

namespace tessera::hal::sim {
namespace {

constexpr int64_t kM = 128, kN = 256, kK = 512;

void multiply(benchmark::State& state, const std::string& chip, const std::string& type) {
  const auto unit = MatrixUnit::make(*chip::Catalog().load(chip), type);
  if (!unit) return state.SkipWithError(unit.error().message.c_str());
  const DType dtype = dtype_from_name(type).value_or(DType::kF32);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto values = [&](int64_t count) {
    std::vector<float> x(count);
    for (float& v : x)
      v = is_float(dtype) ? static_cast<float>(decode(float_format(dtype),
                                                      encode(float_format(dtype), normal(random))))
                          : static_cast<float>(static_cast<int>(random() % 256) - 128);
    return x;
  };
  const std::vector<float> a = values(kM * kK), b = values(kK * kN);
  std::vector<float> c(kM * kN);
  std::vector<int32_t> integers(kM * kN);
  for (auto _ : state) {
    if (unit->accumulate() == DType::kI32)
      unit->multiply(kM, kN, kK, a.data(), kK, b.data(), kN, integers.data(), kN);
    else
      unit->multiply(kM, kN, kK, a.data(), kK, b.data(), kN, c.data(), kN);
    benchmark::DoNotOptimize(c.data());
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * kM * kN * kK, benchmark::Counter::kIsIterationInvariantRate);
}

const bool registered = [] {
  const std::pair<const char*, const char*> cases[] = {
      {"ascend910b2", "f16"},   {"ascend910b2", "bf16"},  {"ascend910b2", "f32"},
      {"ascend910b2", "hf32"},  {"ascend910b2", "i8"},    {"ascend910a", "f16"},
      {"tpu_v5e", "bf16"},      {"v100_sxm", "f16"},      {"a100_sxm_80gb", "tf32"},
      {"h100_sxm", "f16"},      {"h100_sxm", "f8e4m3fn"}, {"b200", "f4e2m1"},
      {"mi100", "f16"},         {"mi250x", "f16"},        {"mi300x", "bf16"},
      {"mi300x", "f8e4m3fnuz"}, {"cpu_amx", "bf16"},      {"cpu_avx512", "f32"}};
  for (const auto& [chip, type] : cases)
    benchmark::RegisterBenchmark((std::string(chip) + "_" + type).c_str(), multiply, chip, type)
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.3);
  return true;
}();

}  // namespace
}  // namespace tessera::hal::sim

BENCHMARK_MAIN();
