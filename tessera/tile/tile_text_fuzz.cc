// What parses prints to text that reads back the same; the verifier judges it, and a schedule of
// it, without harm.
#include <cstdlib>

#include "tessera/tile/schedule.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera::tile;
  const auto program = parse({reinterpret_cast<const char*>(data), size});
  if (!program) return 0;
  const std::string text = print(*program);
  const auto again = parse(text);
  if (!again || print(*again) != text) std::abort();
  if (verify(*program).has_value() != verify(*again).has_value()) std::abort();
  if (!verify(*program)) return 0;
  Schedule schedule;
  tessera::op::Bindings symbols;
  for (size_t a = 0; a < program->axes.size(); ++a)
    schedule.axes.push_back({static_cast<int64_t>(a % 3), 1});
  for (const std::string& name : program->symbols())
    symbols[name] = static_cast<int64_t>(name.size()) * 1000;
  (void)check(*program, schedule, symbols);
  (void)grid_size(*program, schedule, symbols);
  return 0;
}
