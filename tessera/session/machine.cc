#include "tessera/session/machine.h"

#include "tessera/hal/cpu/backend.h"

namespace tessera::session {

hal::Registry& registry() {
  // The visible list of backends.
  static hal::Registry all({{"cpu", hal::cpu::plugin_main, ""}});
  return all;
}

namespace {

// The visible list of claim sources, in order of preference at equal cost.
std::vector<const op::ClaimSource*> sources() { return {}; }

}  // namespace

Result<std::shared_ptr<Machine>> Machine::open(const std::string& device, int threads, Bytes memory_limit) {
  auto machine = std::make_shared<Machine>();
  hal::Options options;
  if (threads > 0) options.emplace_back("threads", std::to_string(threads));
  options.emplace_back("memory_limit", std::to_string(memory_limit.value));
  TRY_ASSIGN(auto opened, registry().open(device, options));
  machine->runtime.device = std::move(opened);
  machine->runtime.sources = sources();
  machine->runtime.weights = std::make_shared<runtime::WeightStore>(machine->runtime.device);
  return machine;
}

}  // namespace tessera::session
