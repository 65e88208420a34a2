#include "tessera/session/machine.h"

#include <algorithm>

#include "tessera/chip/catalog.h"
#include "tessera/hal/cpu/backend.h"
#include "tessera/hal/null/backend.h"
#include "tessera/hal/sim/backend.h"
#include "tessera/kernels/cpu/isa.h"
#include "tessera/kernels/cpu/table.h"
#include "tessera/kernels/onednn/table.h"
#include "tessera/session/calibration.h"

namespace tessera::session {

hal::Registry& registry() {
  // The visible list of backends.
  static hal::Registry all({{"cpu", hal::cpu::plugin_main, ""},
                            {"null", hal::null::plugin_main, ""},
                            {"sim", hal::sim::plugin_main, ""}});
  return all;
}

namespace {

// What oneDNN measured better by less is left to our own kernels.
constexpr double kClearly = 0.95;

bool is_onednn(std::string_view kernel) { return kernel.starts_with("onednn."); }

bool measured_onednn(const kernels::Rates& rates) {
  return std::ranges::any_of(rates.efficiency, [](const auto& e) { return is_onednn(e.first); });
}

kernels::Rates onednn_rates(kernels::Rates rates, bool forced) {
  for (auto& [kernel, part] : rates.efficiency)
    if (is_onednn(kernel)) part *= kClearly;
  if (!forced) return rates;
  rates.flops_per_ps *= 1e3;
  rates.bytes_per_ps *= 1e3;
  rates.launch_ps /= 1e3;
  rates.origin = "forced";
  return rates;
}

// The visible list of claim sources, in order of preference at equal cost; the first one's rates
// are the machine's.
Result<std::vector<kernels::Table>> tables_of(kernels::cpu::Isa isa, std::string_view provider) {
  constexpr std::string_view kProviders[] = {"auto", "own", "all", "onednn"};
  if (std::ranges::find(kProviders, provider) == std::end(kProviders))
    return error(Code::kInvalidArgument, "no provider '{}': {}", provider,
                 fmt::join(kProviders, ", "));
  const kernels::Table& own = kernels::cpu::table(isa);
  const auto calibration = stored_calibration(kernels::cpu::name_of(isa));
  const kernels::Rates rates = calibration ? calibration->rates : own.rates();
  std::vector<kernels::Table> list{own.with(rates)};
  if (provider == "all" || provider == "onednn" || (provider == "auto" && measured_onednn(rates)))
    list.push_back(kernels::onednn::table().with(onednn_rates(rates, provider == "onednn")));
  return list;
}

Result<kernels::cpu::Isa> isa_of(std::string_view name) {
  const kernels::cpu::Isa best = kernels::cpu::best_isa();
  if (name.empty()) return best;
  const auto asked = kernels::cpu::isa_from_name(name);
  if (!asked) return error(Code::kInvalidArgument, "no instruction set '{}' on this machine", name);
  return std::min(*asked, best);
}

// Kernels that run on the host's own processor.
Status use_tables(Machine& machine, kernels::cpu::Isa isa, std::string_view provider,
                  codegen::mlir::Mode codegen) {
  std::vector<hal::HostFunction> functions;
  TRY_ASSIGN(machine.tables, tables_of(isa, provider));
  machine.rates = machine.tables.front().rates();
  for (const kernels::Table& table : machine.tables) {
    machine.runtime.sources.push_back(&table);
    for (const kernels::Entry& entry : table.entries()) {
      machine.runtime.entries.emplace(entry.name, static_cast<uint32_t>(functions.size()));
      functions.push_back({entry.name.data(), entry.function});
    }
  }
  namespace mlir = codegen::mlir;
  if (codegen != mlir::Mode::kNone) {
    machine.generated = std::make_unique<const mlir::Source>(
        codegen, mlir::target_for(kernels::cpu::name_of(isa)), machine.rates,
        mlir::Cache(mlir::Cache::default_folder()));
    machine.runtime.sources.push_back(machine.generated.get());
  }
  TRY_ASSIGN(machine.runtime.executable, machine.runtime.memory.device->load(functions));
  return {};
}

// A simulated chip runs what is made for it.
Status simulate(Machine& machine, const std::string& id) {
  TRY_ASSIGN(chip::Chip chip, chip::Catalog::of_environment().load(id));
  machine.rates.origin = fmt::format("chip {}", id);
  machine.simulated = std::make_unique<const codegen::sim::Source>(
      std::make_shared<const chip::Chip>(std::move(chip)));
  machine.runtime.sources.push_back(machine.simulated.get());
  return {};
}

}  // namespace

Result<std::shared_ptr<Machine>> Machine::open(const std::string& device, int threads,
                                               Bytes memory_limit, std::string_view isa_name,
                                               std::string_view provider,
                                               codegen::mlir::Mode codegen) {
  TRY_ASSIGN(const kernels::cpu::Isa isa, isa_of(isa_name));
  auto machine = std::make_shared<Machine>();
  hal::Options options;
  if (threads > 0) options.emplace_back("threads", std::to_string(threads));
  options.emplace_back("memory_limit", std::to_string(memory_limit.value));
  TRY_ASSIGN(auto opened, registry().open(device, options));
  machine->runtime.memory.device = std::move(opened);
  machine->runtime.memory.allocator = std::make_shared<hal::Allocator>(
      *machine->runtime.memory.device, hal::AllocatorOptions{.limit = memory_limit});
  const hal::DeviceInfo& info = machine->runtime.memory.device->info();
  if (std::ranges::find(info.formats, "engine") != info.formats.end())
    TRY(simulate(*machine, info.chip));
  else
    TRY(use_tables(*machine, isa, provider, codegen));
  machine->runtime.binaries =
      std::make_shared<runtime::BinaryStore>(machine->runtime.memory.device);
  machine->runtime.weights = std::make_shared<runtime::WeightStore>(machine->runtime.memory);
  return machine;
}

}  // namespace tessera::session
