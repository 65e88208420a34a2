// What parses verifies, and prints to JSON that reads back the same.
#include <cstdlib>

#include "tessera/plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  auto plan = plan::from_json({reinterpret_cast<const char*>(data), size});
  if (!plan) return 0;
  const std::string json = plan::to_json(*plan);
  auto again = plan::from_json(json);
  if (!again || plan::to_json(*again) != json) std::abort();
  static_cast<void>(plan::lay_out(plan->main, plan->planned_for));
  return 0;
}
