// What reads as a problem prints as a string that reads as the same problem, and costs a finite
// time on every kind of chip, or is refused.
#include <cmath>
#include <cstdlib>

#include "tessera/chip/catalog.h"
#include "tessera/cost/cost.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const std::vector<chip::Chip> chips = [] {
    std::vector<chip::Chip> list;
    for (const char* id : {"ascend910b2", "ascend310p3", "h100_sxm", "tpu_v5e", "cpu_amx"})
      if (auto chip = chip::Catalog().load(id)) list.push_back(*std::move(chip));
    return list;
  }();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto problem = cost::parse_problem(text);
  if (!problem) return 0;
  const auto printed = cost::canonical(text);
  if (!printed || cost::canonical(*printed).value_or("") != *printed) std::abort();
  const auto again = cost::parse_problem(*printed);
  if (!again || again->str() != problem->str()) std::abort();
  for (const chip::Chip& chip : chips) {
    const auto e = cost::estimate(chip, cost::in_own_layouts(chip, *problem));
    if (e && !(std::isfinite(e->time.high.value) && e->time.low <= e->time.expected)) std::abort();
  }
  return 0;
}
