#include "tessera/session/machine.h"

#include <algorithm>

#include "tessera/hal/cpu/backend.h"
#include "tessera/hal/null/backend.h"
#include "tessera/kernels/cpu/isa.h"
#include "tessera/kernels/cpu/table.h"
#include "tessera/session/calibration.h"

namespace tessera::session {

hal::Registry& registry() {
  // The visible list of backends.
  static hal::Registry all(
      {{"cpu", hal::cpu::plugin_main, ""}, {"null", hal::null::plugin_main, ""}});
  return all;
}

namespace {

// The visible list of claim sources, in order of preference at equal cost.
std::vector<const kernels::Table*> tables(kernels::cpu::Isa isa) {
  return {&kernels::cpu::table(isa)};
}

Result<kernels::cpu::Isa> isa_of(std::string_view name) {
  const kernels::cpu::Isa best = kernels::cpu::best_isa();
  if (name.empty()) return best;
  const auto asked = kernels::cpu::isa_from_name(name);
  if (!asked) return error(Code::kInvalidArgument, "no instruction set '{}'", name);
  return std::min(*asked, best);
}

}  // namespace

Result<std::shared_ptr<Machine>> Machine::open(const std::string& device, int threads,
                                               Bytes memory_limit, std::string_view isa_name) {
  TRY_ASSIGN(const kernels::cpu::Isa isa, isa_of(isa_name));
  auto machine = std::make_shared<Machine>();
  hal::Options options;
  if (threads > 0) options.emplace_back("threads", std::to_string(threads));
  options.emplace_back("memory_limit", std::to_string(memory_limit.value));
  TRY_ASSIGN(auto opened, registry().open(device, options));
  machine->runtime.memory.device = std::move(opened);
  machine->runtime.memory.allocator = std::make_shared<hal::Allocator>(
      *machine->runtime.memory.device, hal::AllocatorOptions{.limit = memory_limit});
  std::vector<hal::HostFunction> functions;
  for (const kernels::Table* table : tables(isa)) {
    if (auto own = stored_calibration(kernels::cpu::name_of(isa)))
      table = machine->calibrated
                  .emplace_back(std::make_unique<const kernels::Table>(table->with(own->rates)))
                  .get();
    machine->rates = table->rates();
    machine->runtime.sources.push_back(table);
    for (const kernels::Entry& entry : table->entries()) {
      machine->runtime.entries.emplace(entry.name, static_cast<uint32_t>(functions.size()));
      functions.push_back({entry.name.data(), entry.function});
    }
  }
  TRY_ASSIGN(machine->runtime.executable, machine->runtime.memory.device->load(functions));
  machine->runtime.binaries = std::make_shared<runtime::BinaryStore>(machine->runtime.memory.device);
  machine->runtime.weights = std::make_shared<runtime::WeightStore>(machine->runtime.memory);
  return machine;
}

}  // namespace tessera::session
